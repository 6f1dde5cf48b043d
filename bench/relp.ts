// `npx node bench/relp.ts`: the cost of an event in the syslog sink over RELP beyond its encoding, in CPU microseconds
// of this process: the frames, the writes, and reading each response. The receiver is another process that acknowledges
// everything.

import { syslogSink } from '../connectors/sinks/syslog.ts';
import { openSink, someEvents } from '../test/support/sink-opening.ts';
import { startHelper } from './program.ts';

const batchEvents = 1_000;
const rounds = 200;
const never = new AbortController().signal;

const helper = await startHelper('./counting-sink.ts', 'relp');
for (const window of [128, 1000]) {
  const config = { address: `relp://127.0.0.1:${helper.port}`, window };
  const { sink, batch } = await openSink(syslogSink, config, { format: 'cef' });
  const whole = batch(someEvents(batchEvents));
  const before = { cpu: process.cpuUsage(), at: performance.now() };
  for (let round = -20; round < rounds; round += 1) {
    if (round === 0) Object.assign(before, { cpu: process.cpuUsage(), at: performance.now() });
    const { outcome } = await sink.send(whole, never);
    if (outcome !== 'delivered') throw new Error(outcome);
  }
  const { user, system } = process.cpuUsage(before.cpu);
  const events = rounds * batchEvents;
  console.table({
    [`window ${window}`]: {
      'sending us/event': Number(((user + system) / events).toFixed(2)),
      'events/second': Math.round(events / ((performance.now() - before.at) / 1000)),
      'bytes/event': Math.round(whole.lines.bytes.length / batchEvents),
    },
  });
  await sink.close();
}
helper.child.kill();
process.exit(0);
