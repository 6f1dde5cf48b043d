// When the syslog sink gives the memory of lines back over TCP and TLS: only once neither the sink nor the kernel reads it.
// The tests overwrite the lines at that moment, as another use of the memory could.

import { setImmediate as loopTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import type { Batch } from '../../../src/contracts/sink.ts';
import { makeCa } from '../../support/certificates.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { startTcpReceiver } from '../../support/tcp-receiver.ts';
import { uidOf } from './syslog-resend.ts';

const never = new AbortController().signal;

const kinds = (['octet_counting', 'newline'] as const).flatMap((framing) =>
  (['tcp', 'tls'] as const).map((transport) => ({ framing, transport })),
);

async function opened({ framing, transport }: (typeof kinds)[number]) {
  const tls = transport === 'tls' ? await makeCa() : undefined;
  const receiver = await startTcpReceiver({ behaviour: { kind: 'stall' }, ...(tls && { tls }) });
  const address = `${transport}://localhost:${receiver.port}`;
  const config = {
    address,
    framing,
    resend_window: '200ms',
    ...(tls && { tls: { ca_file: tls.caFile } }),
  };
  const { sink, batch } = await openSink(syslogSink, config);
  let taken = 0;
  const send = (part: Batch) =>
    sink.send(part, never, () => {
      taken += 1;
      part.lines.bytes.fill(0);
    });
  return { receiver, batch, send, taken: () => taken };
}

test.each(kinds)(
  'a slow receiver gets every byte over $transport with $framing framing',
  async (kind) => {
    const { receiver, batch, send, taken } = await opened(kind);
    const events = someEvents(12_000); // more than the kernels take while the receiver does not read
    const parts = Array.from({ length: 24 }, (_, i) => batch(events.slice(i * 500, i * 500 + 500)));

    const sent = Promise.all(parts.map(send));
    await receiver.waitFor(() => receiver.open > 0);
    receiver.behave({ kind: 'read' });
    const answers = await sent;

    expect(new Set(answers.map(({ outcome }) => outcome))).toEqual(new Set(['delivered']));
    expect(receiver.frames.map(({ text }) => uidOf(text))).toEqual(events.map(({ uid }) => uid));
    expect(taken()).toBe(parts.length);
  },
);

test('lines that the kernel reads themselves are not given back when the connection breaks', async () => {
  const { receiver, batch, send, taken } = await opened({ framing: 'newline', transport: 'tcp' });
  const large = batch(someEvents(20_000));

  const sent = send(large);
  receiver.behave({ kind: 'slow', bytesPerSecond: 100_000 });
  await receiver.waitFor(1);
  receiver.resetAll();

  expect(await sent).toMatchObject({ outcome: 'retry' });
  // The callbacks of its writes come after that.
  for (let turn = 0; turn < 10; turn += 1) await loopTurn();
  expect(taken()).toBe(0);
  expect(large.lines.bytes.includes(0)).toBe(false);
});
