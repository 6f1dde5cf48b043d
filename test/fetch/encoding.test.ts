// Records with bytes that are not UTF-8: kept as they came under the uid that they had, marked on the event, and one
// condition for each stream, whatever kind of stream it is.

import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { PageContext } from '../../src/contracts/event.ts';
import type { ListStream, Stream } from '../../src/contracts/source.ts';
import type { Append, FetchSpool, HeldPage } from '../../src/contracts/spool.ts';
import { StreamResponses } from '../../src/fetch/answers.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { makeFormat } from '../formats/make-format.ts';
import { heldIn } from '../list/reading.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { waitUntil } from '../support/temp.ts';
import { headersFor, listening } from '../webhooks/listening.ts';

/** Latin-1: E9 is é there, and the beginning of nothing in UTF-8. */
const latin = Buffer.from('{"id":"evt-1","name":"caf\u00e9","n":1.0}', 'latin1');
const fine = Buffer.from('{"id":"evt-2","name":"café"}');
const never = new AbortController().signal;

function listOf(body: Uint8Array): ListStream {
  return {
    ...{ kind: 'list', name: 'src', source: 'src', pagination: { style: 'none' } },
    upstream: { get: async () => ({ outcome: 'ok', url: '', headers: {}, body }) },
  } as unknown as ListStream;
}

const streams: Readonly<Record<string, (body: Uint8Array) => Stream>> = {
  list: listOf,
  collection: (body) =>
    ({ kind: 'collection', name: 'src', source: 'src', list: listOf(body) }) as unknown as Stream,
  parents: (body) =>
    ({
      kind: 'parents',
      name: 'src',
      source: 'src',
      listOf: () => listOf(body),
    }) as unknown as Stream,
};

/** Requests once through what a poller of this stream sees. */
async function request(stream: Stream): Promise<void> {
  const query = { path: '/src', template: '/src', query: [] };
  if (stream.kind === 'list') await stream.upstream.get(query, never);
  if (stream.kind === 'collection') await stream.list.upstream.get(query, never);
  if (stream.kind === 'parents') await stream.listOf('a')?.upstream.get(query, never);
}

test.for(
  Object.keys(streams).flatMap((kind) => [undefined, 0].map((everyMs) => [kind, everyMs] as const)),
)(
  'a stream of the kind %s reports the condition once, over restarts (answers kept: %s)',
  async ([kind, everyMs]) => {
    const conditions: string[] = [];
    let fails = 1;
    const checkpoints = new Map<string, Append['checkpoint']>();
    const spool = {
      recall: async (name: string) => ({
        checkpoint: checkpoints.get(name) ?? null,
        identities: [],
      }),
      append: async ({ stream, pages, checkpoint }: Append) => {
        const own = pages.filter(({ context }) => context.kind === 'condition');
        if (own.length > 0 && fails-- > 0) throw new Error('disk full');
        for (const { body } of own) conditions.push(Buffer.from(body).toString());
        if (checkpoint !== undefined) checkpoints.set(stream, checkpoint);
        return 0;
      },
    } as unknown as FetchSpool;
    const made = (body: Uint8Array) =>
      new StreamResponses(streams[kind]?.(body) ?? listOf(body), {
        ...{ spool, tools: { clock: manualClock(), log: silent } },
        everyMs: () => everyMs,
      });
    const poll = (answers: StreamResponses) =>
      answers.during(async () => {
        await request(answers.stream);
        return { outcome: 'done', fresh: 0, more: false };
      });

    await poll(made(fine));
    const none = conditions.length;
    const answers = made(latin);
    const failed = await poll(answers);
    for (let polls = 0; polls < 3; polls += 1) await poll(answers);
    for (let restarts = 0; restarts < 2; restarts += 1) await poll(made(latin));

    expect([none, failed.outcome]).toEqual([0, 'retry']);
    expect(conditions).toHaveLength(1);
    expect(JSON.parse(conditions[0] ?? '')).toMatchObject([
      { condition: 'source.invalid_utf8', stream: 'src' },
    ]);
  },
);

test('a webhook is kept byte for byte, and the condition comes once', async () => {
  const { url, spool, held } = await listening();
  for (const body of [latin, fine, Buffer.concat([Buffer.from(' '), latin])]) {
    // What is signed is bytes.
    const headers = headersFor({ id: randomUUID(), body: body as unknown as string });
    const response = await fetch(url, { method: 'POST', body: new Uint8Array(body), headers });
    expect(response.status).toBe(200);
  }

  const conditions = async () => (await held()).filter(({ kind }) => kind === 'condition');
  await waitUntil(async () => (await conditions()).length > 0, { what: 'the condition' });
  expect((await conditions()).map(({ text }) => JSON.parse(text).condition)).toEqual([
    'source.invalid_utf8',
  ]);
  const bodies: Buffer[] = [];
  for (const { body, context } of await spool.read(0, 1 << 20)) {
    if (context.kind === 'log') bodies.push(Buffer.from(body));
  }
  expect(bodies[0]?.includes(latin)).toBe(true);
  expect((await heldIn(spool)).length).toBe(4);
});

test('the event has a marker, raw data has the bytes, and others of its page are as they were', () => {
  const context: PageContext = { source: 'src', stream: 'src', kind: 'log', fetchedAt: 1 };
  const body = Buffer.concat([Buffer.from('['), latin, Buffer.from(','), fine, Buffer.from(']')]);
  const page: HeldPage = {
    ...{ context, body, items: '', kept: null, uids: new Uint8Array(64), first: 0, count: 2 },
  };
  const normalise = compileNormaliser('log', { time: [], id: 'id' });
  const { events } = new PageDecoder(() => normalise).decode(page);
  const [wrong, right] = events;
  if (wrong === undefined || right === undefined) throw new Error('there are two');
  const write = (format: string, settings: object, event = wrong) =>
    Buffer.from(makeFormat(format, { ...settings }).encode(event));
  const json = (event = wrong) => JSON.parse(write('json', { raw_data: true }, event).toString());
  const marker = { name: 'invalid_utf8', value: 'raw_data is base64' };

  expect(json().metadata.tags).toContainEqual(marker);
  expect(Buffer.from(json().raw_data, 'base64')).toEqual(latin);
  expect(json().raw_data_size).toBe(latin.length);
  expect(json().unmapped.name).toBe('caf\ufffd');
  expect(json(right).metadata.tags ?? []).not.toContainEqual(marker);
  expect(json(right).raw_data).toBe(fine.toString());
  expect(write('json', { schema: 'original' })).toEqual(latin);
  const ecs = JSON.parse(write('ecs', { raw_data: true }).toString());
  expect(Buffer.from(ecs.event.original, 'base64')).toEqual(latin);
});
