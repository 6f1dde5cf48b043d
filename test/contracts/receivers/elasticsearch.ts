// A real OpenSearch as the receiver of the elasticsearch sink, behind a server that loses requests and answers, or forwards
// only some events, where the mood says so. What it refuses for good an ingest pipeline refuses there.

import {
  type HttpAnswer,
  type HttpAnswerer,
  startHttpReceiver,
} from '../../support/http-receiver.ts';
import { type OpenSearch, sharedOpenSearch } from '../../support/opensearch.ts';
import { failures, type Mood, type Receiver, type ReceiverKind, refusedText } from './receiver.ts';

const eventsMax = 4;
let started = 0;

/** The receiver of the elasticsearch sink. */
export const elasticsearchKind: ReceiverKind = {
  type: 'elasticsearch',
  name: 'elasticsearch',
  unable: {},
  async start(mood, random): Promise<Receiver> {
    const cluster = await sharedOpenSearch();
    started += 1;
    const prefix = `contract-${process.pid}-${started}`;
    const picky = mood === 'picky' || mood === 'mixed';
    if (picky) await refuseInPipeline(cluster, prefix);
    let failed = 0;
    const front = await startHttpReceiver({
      answer: forwarding(cluster.url, { mood, random, fail: () => (failed += 1) }),
    });
    if (mood === 'away') await front.close();
    return {
      config: {
        url: front.url,
        index: `${prefix}-{class}-{date}`,
        timeout: mood === 'mute' ? '300ms' : '60s',
        ...(picky && { pipeline: prefix }),
      },
      failures: () => failed,
      arrived: () => uidsAt(cluster, `${prefix}-*`),
    };
  },
};

/** The ids of all documents, in the order in which they were written. */
export async function uidsAt(
  cluster: Pick<OpenSearch, 'ask'>,
  indices: string,
): Promise<readonly string[]> {
  await cluster.ask('POST', `/${indices}/_refresh`);
  const query = { size: 10_000, sort: ['_seq_no'], _source: false };
  const { hits } = await cluster.ask('POST', `/${indices}/_search`, query);
  return hits.hits.map(({ _id }: { readonly _id: string }) => _id);
}

async function refuseInPipeline(cluster: Pick<OpenSearch, 'ask'>, name: string): Promise<void> {
  // Anywhere: the document's message is a sentence about the event.
  const patterns = [`^(?!.*${refusedText})`];
  await cluster.ask('PUT', `/_ingest/pipeline/${name}`, {
    processors: [{ grok: { field: 'message', patterns } }],
  });
}

/** Forwards requests, or loses them or their answers. */
function forwarding(
  url: string,
  { mood, random, fail }: { mood: Mood; random: () => number; fail: () => void },
): HttpAnswerer {
  return async ({ path, headers, body }) => {
    if (mood === 'mute') return { answer: 'hang' };
    if (mood === 'mixed' && body.toString().split('\n').length > eventsMax * 2 + 1) {
      return { answer: 'reply', status: 413 };
    }
    const shakes = mood === 'shaky' || mood === 'mixed';
    if (shakes && random() < 0.3) {
      fail();
      return await forwardedInPart({ url: url + path, body, random });
    }
    const breaks = shakes && random() < 0.5;
    if (breaks) fail();
    const arrives = !breaks || random() < 0.3;
    const answer = arrives
      ? await forwarded(url + path, headers['content-type'] ?? '', body)
      : null;
    if (answer !== null && !breaks) return answer;
    return failures[Math.floor(random() * failures.length)] ?? { answer: 'reset' };
  };
}

/** Forwards the first events, and answers that the cluster is too busy for the others, so that the order can be judged. */
async function forwardedInPart(request: {
  readonly url: string;
  readonly body: Buffer;
  readonly random: () => number;
}): Promise<HttpAnswer> {
  const { url, body, random } = request;
  const lines = body.toString().trimEnd().split('\n');
  const events = lines.length / 2;
  const taken = Math.floor(random() * events);
  const first = Buffer.from(
    lines
      .slice(0, 2 * taken)
      .map((line) => `${line}\n`)
      .join(''),
  );
  const answer = await forwarded(url, 'application/x-ndjson', first);
  const given = taken === 0 ? [] : JSON.parse(answer.body).items;
  const error = { type: 'rejected_execution_exception', reason: 'queue is full' };
  const busy = Array.from({ length: events - taken }, () => ({ create: { status: 429, error } }));
  const items = [...given, ...busy];
  return { answer: 'reply', status: 200, body: JSON.stringify({ errors: true, items }) };
}

async function forwarded(url: string, contentType: string, body: Buffer) {
  const headers = { 'content-type': contentType };
  const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) });
  const text = await response.text();
  return { answer: 'reply', status: response.status, body: text } as const;
}
