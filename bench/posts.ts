// `npx node bench/posts.ts elasticsearch|splunk_hec`: the cost of an event in a sink that posts, beyond its encoding,
// in CPU microseconds of this process: the envelope of an event, the request, gzip if it is on, and reading the
// responses. The receiver is another process that accepts everything. If a sink has several batches unacknowledged, so
// has the bench, since one poll covers them all.

import { elasticsearchSink } from '../connectors/sinks/elasticsearch.ts';
import { splunkHecSink } from '../connectors/sinks/splunk-hec.ts';
import { encodeLines } from '../src/send/encode.ts';
import { openSink, someEvents } from '../test/support/sink-opening.ts';
import { startHelper } from './program.ts';

const batchEvents = 1_000;
const rounds = 60;
const inFlightMax = 8;
const never = new AbortController().signal;

const [definition, mode] =
  process.argv[2] === 'splunk_hec' ? [splunkHecSink, 'hec'] : [elasticsearchSink, 'bulk'];

const inFlight = mode === 'hec' ? inFlightMax : 1;

const helper = await startHelper('./counting-sink.ts', mode);
for (const compression of ['none', 'gzip']) {
  const token = mode === 'hec' ? { token: 'none' } : {};
  const config = { url: `http://127.0.0.1:${helper.port}`, compression, ...token };
  const { sink, batch, format } = await openSink(definition, config);
  const events = someEvents(batchEvents);
  const whole = batch(events);
  const costs = { plain: 0, documents: 0, sending: 0 };
  for (let round = -10; round < rounds; round += 1) {
    const plain = await cpuOf(() => encodeLines(events, format));
    const documents = await cpuOf(() => encodeLines(events, format.document ?? format));
    const sending = await cpuOf(async () => {
      const answers = [];
      for (let sent = 0; sent < inFlight; sent += 1) {
        await sink.ready?.(never);
        answers.push(sink.send(whole, never));
      }
      for (const { outcome } of await Promise.all(answers)) {
        if (outcome !== 'delivered') throw new Error(outcome);
      }
    });
    if (round < 0) continue;
    costs.plain += plain;
    costs.documents += documents;
    costs.sending += sending / inFlight;
  }
  const perEvent = (sum: number) => Number((sum / rounds / batchEvents).toFixed(2));
  console.table({
    [compression]: {
      'encoding us/event': perEvent(costs.plain),
      'around it us/event': perEvent(costs.documents - costs.plain),
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
