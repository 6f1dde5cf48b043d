// A syslog server over TCP as the receiver of the syslog sink. It sends no response, so it can reject nothing; and with
// `confirm: window` a server that reads nothing looks like a slow one, so the silent one is tested with `confirm:
// close`.

import { startTcpReceiver } from '../../support/tcp-receiver.ts';
import { type Receiver, type ReceiverKind, uidsIn } from './receiver.ts';

const refusesNothing = 'a syslog receiver answers nothing, so it cannot refuse a message';

/** The receiver of the syslog sink, for one way to confirm. */
export function syslogKind(confirm: 'window' | 'close'): ReceiverKind {
  return {
    type: 'syslog',
    name: `syslog (tcp, confirm: ${confirm})`,
    unable: {
      picky: refusesNothing,
      mixed: refusesNothing,
      ...(confirm === 'window' && { mute: 'nobody can tell who reads nothing from who is slow' }),
    },
    async start(mood, random): Promise<Receiver> {
      const receiver = await startTcpReceiver();
      if (mood === 'shaky') {
        receiver.behave({ kind: 'reset', probability: 0.3, seed: Math.floor(random() * 1e9) });
      }
      if (mood === 'mute') receiver.behave({ kind: 'stall' });
      if (mood === 'away') await receiver.close();
      return {
        config: {
          address: `tcp://127.0.0.1:${receiver.port}`,
          max_message: 65_536,
          resend_window: '100ms',
          stall_timeout: '500ms',
          confirm,
        },
        failures: () => receiver.resets,
        arrived: () => receiver.frames.flatMap(({ text }) => uidsIn(text).slice(0, 1)),
      };
    },
  };
}
