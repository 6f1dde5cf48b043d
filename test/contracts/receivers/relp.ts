// A RELP server as the receiver of the syslog sink over relp://: each message has a response, so it can be rejected.
// The real server is in test/connectors/sinks/syslog-relp-rsyslog.test.ts.

import { type RelpAnswer, startRelpReceiver } from '../../support/relp-receiver.ts';
import { type Mood, type Receiver, type ReceiverKind, refusedText, uidsIn } from './receiver.ts';

/** The receiver of the syslog sink over RELP. */
export const relpKind: ReceiverKind = {
  type: 'syslog',
  name: 'syslog (relp)',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const receiver = await startRelpReceiver({
      answer: (message) => answerIn(mood, random, message),
      together: mood === 'willing' ? 1 : 5,
    });
    if (mood === 'away') await receiver.close();
    return {
      config: {
        address: `relp://127.0.0.1:${receiver.port}`,
        max_message: 65_536,
        stall_timeout: mood === 'mute' ? '500ms' : '60s',
      },
      failures: () => receiver.cuts,
      arrived: () => receiver.messages.flatMap((message) => uidsIn(message).slice(0, 1)),
    };
  },
};

function answerIn(mood: Mood, random: () => number, message: string): RelpAnswer {
  if (mood === 'mute') return 'nothing';
  const isShaky = (mood === 'shaky' || mood === 'mixed') && random() < 0.1;
  const isRefused = (mood === 'picky' || mood === 'mixed') && message.includes(refusedText);
  if (isRefused) return isShaky ? 'cut' : '500 not this one';
  const ends = ['cut', 'take and cut', 'half'] as const;
  return isShaky ? (ends[Math.floor(random() * ends.length)] ?? 'cut') : '200 OK';
}
