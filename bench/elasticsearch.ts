// `npx node bench/elasticsearch.ts`: what the elasticsearch sink costs an event beyond its encoding, in CPU microseconds
// of this process: the action lines, the request, gzip where it is on, and reading the answer for each event. The far side
// is another process that says yes to everything.

import { elasticsearchSink } from '../connectors/sinks/elasticsearch.ts';
import { encodeLines } from '../src/send/encode.ts';
import { openSink, someEvents } from '../test/support/sink-opening.ts';
import { startHelper } from './program.ts';

const batchEvents = 1_000;
const rounds = 60;
const never = new AbortController().signal;

const helper = await startHelper('./counting-sink.ts', 'bulk');
for (const compression of ['none', 'gzip']) {
  const config = { url: `http://127.0.0.1:${helper.port}`, compression };
  const { sink, batch, format } = await openSink(elasticsearchSink, config);
  const events = someEvents(batchEvents);
  const whole = batch(events);
  const costs = { plain: 0, documents: 0, sending: 0 };
  for (let round = -10; round < rounds; round += 1) {
    const plain = await cpuOf(() => encodeLines(events, format));
    const documents = await cpuOf(() => encodeLines(events, format.document ?? format));
    const sending = await cpuOf(async () => {
      const { outcome } = await sink.send(whole, never);
      if (outcome !== 'delivered') throw new Error(outcome);
    });
    if (round < 0) continue;
    costs.plain += plain;
    costs.documents += documents;
    costs.sending += sending;
  }
  const perEvent = (sum: number) => Number((sum / rounds / batchEvents).toFixed(2));
  console.table({
    [compression]: {
      'encoding us/event': perEvent(costs.plain),
      'action lines us/event': perEvent(costs.documents - costs.plain),
      'sending us/event': perEvent(costs.sending),
      'bytes/event': Math.round(whole.lines.bytes.length / batchEvents),
    },
  });
  await sink.close();
}
helper.child.kill();
process.exit(0);

async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
