// The splunk_hec sink: its requests, and the meaning of each kind of response. Responses come from a scripted server;
// indexers behind a balancer, in every mode, are in the contract suite.

import { describe, expect, test } from 'vitest';
import { splunkHecSink } from '../../../connectors/sinks/splunk-hec.ts';
import { anEvent } from '../../support/an-event.ts';
import {
  type HttpAnswer,
  type ReceivedRequest,
  startHttpReceiver,
} from '../../support/http-receiver.ts';
import {
  type OpeningWishes,
  openSink,
  parseSettings,
  someEvents,
  testTools,
} from '../../support/sink-opening.ts';
import { waitUntil } from '../../support/temp.ts';

const never = new AbortController().signal;
const token = 'b3a5e6c0-token';
const html: HttpAnswer = {
  answer: 'reply',
  status: 200,
  headers: { 'content-type': 'text/html' },
  body: '<html><title>Sign in</title></html>',
};

const reply = (body: unknown, status = 200, headers: Record<string, string> = {}): HttpAnswer => ({
  answer: 'reply',
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const taken = (ackId?: number, headers: Record<string, string> = {}) =>
  reply({ text: 'Success', code: 0, ...(ackId !== undefined && { ackId }) }, 200, headers);
const failed = (status: number, code: number, more: object = {}) =>
  reply({ text: `code ${code}`, code, ...more }, status);
const acks = (said: Record<number, boolean>, headers: Record<string, string> = {}) =>
  reply({ acks: said }, 200, headers);

interface CollectorResponses {
  readonly events?: (request: ReceivedRequest, nth: number) => HttpAnswer;
  readonly acks?: (ids: readonly number[], nth: number) => HttpAnswer;
}

/** A collector with scripted responses; by default it accepts everything, and indexes at once. */
async function collector(
  reported: CollectorResponses = {},
  config: object = {},
  wishes: OpeningWishes = {},
) {
  let [posts, asks] = [0, 0];
  const receiver = await startHttpReceiver({
    answer(request) {
      if (!request.path.endsWith('/ack')) {
        posts += 1;
        return reported.events?.(request, posts) ?? taken(posts - 1);
      }
      asks += 1;
      const ids: readonly number[] = JSON.parse(request.body.toString()).acks;
      const all = Object.fromEntries(ids.map((id) => [id, true]));
      return reported.acks?.(ids, asks) ?? acks(all);
    },
  });
  const settings = { url: receiver.url, token, ...config };
  const opened = await openSink(splunkHecSink, settings, wishes);
  const { sink, batch } = opened;
  const send = (events = someEvents(2), signal = never) => sink.send(batch(events), signal);
  const posted = () => receiver.requests.filter(({ path }) => path.endsWith('/event'));
  const asked = () => receiver.requests.filter(({ path }) => path.endsWith('/ack'));
  return { ...opened, receiver, send, posted, asked };
}

const channelOf = ({ headers }: ReceivedRequest) => headers['x-splunk-request-channel'];
const sentIn = ({ body }: ReceivedRequest) =>
  body
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

describe('splunk_hec sends', () => {
  test('each event in an envelope, with its uid as an indexed field', async () => {
    const { send, posted } = await collector(
      {},
      { index: { audit: 'security' }, sourcetype: { other: 'x' }, host: 'edge' },
    );
    const events = someEvents(2);

    await send(events);

    const [request] = posted();
    expect(request?.headers.authorization).toBe(`Splunk ${token}`);
    expect(channelOf(request as ReceivedRequest)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(sentIn(request as ReceivedRequest)).toEqual(
      events.map(({ uid, ocsf }) => ({
        time: 1772600767.089,
        host: 'edge',
        source: 'audit/c-1',
        sourcetype: 'sluice:ocsf',
        index: 'security',
        fields: { sluice_uid: uid },
        event: JSON.parse(JSON.stringify(ocsf)),
      })),
    );
  });

  test('a line of text as the event', async () => {
    const { send, posted, format } = await collector({}, {}, { format: 'cef' });
    const event = anEvent();

    await send([event]);

    const [envelope] = sentIn(posted()[0] as ReceivedRequest);
    expect(envelope).toMatchObject({ sourcetype: 'sluice:cef', event: format.encode(event) });
  });

  test.each([0, Date.UTC(1999, 11, 31), Date.UTC(2026, 2, 6), 8.64e15, -1])(
    'the time at which it was read where its own is %d',
    async (time) => {
      const { send, posted } = await collector();

      await send([anEvent({ ocsf: { time } })]);

      expect(sentIn(posted()[0] as ReceivedRequest)[0].time).toBe(1772600797);
    },
  );

  test.each(['', '/', '/services/collector', '/services/collector/event/'])(
    'to the same path where the address ends with "%s"',
    async (end) => {
      const { receiver, batch } = await collector();
      const { sink } = await openSink(splunkHecSink, { url: `${receiver.url}/hec${end}`, token });

      await sink.send(batch(someEvents(1)), never);

      expect(receiver.requests.map(({ path }) => path)).toEqual([
        '/hec/services/collector/event',
        '/hec/services/collector/ack',
      ]);
    },
  );
});

describe('splunk_hec waits for the indexer', () => {
  test('by polling on the same channel and with the cookies of the post, until it is true', async () => {
    const cookies = 'lb=one; Path=/; Expires=Wed, 21 Oct 2099 07:28:00 GMT, b="2"; HttpOnly';
    const { send, asked, posted } = await collector({
      events: () => taken(7, { 'set-cookie': cookies }),
      acks: (_, nth) => acks({ 7: nth > 2 }),
    });

    const answer = await send();

    expect(answer).toEqual({ outcome: 'delivered' });
    expect(asked()).toHaveLength(3);
    for (const request of asked()) {
      expect(channelOf(request)).toBe(channelOf(posted()[0] as ReceivedRequest));
      expect(request.headers.cookie).toBe('lb=one; b="2"');
      expect(JSON.parse(request.body.toString())).toEqual({ acks: [7] });
    }
  });

  test('with several batches in flight, each by its own id', async () => {
    const indexed = new Set<number>();
    const { send, asked } = await collector({
      acks: (ids) => acks(Object.fromEntries(ids.map((id) => [id, indexed.has(id)]))),
    });
    const ended: number[] = [];
    const sends = [0, 1, 2].map((nth) =>
      send(someEvents(2, nth * 2)).then(({ outcome }) => {
        expect(outcome).toBe('delivered');
        ended.push(nth);
      }),
    );

    await waitUntil(() => asked().at(-1)?.body.toString() === '{"acks":[0,1,2]}', {
      what: 'three',
    });
    indexed.add(1);
    await waitUntil(() => ended.length === 1, { what: 'the second' });
    indexed.add(0).add(2);
    await Promise.all(sends);

    expect(ended[0]).toBe(1);
  });

  test('and sends again events that are not acknowledged in time', async () => {
    const { send } = await collector(
      { acks: (ids) => acks(Object.fromEntries(ids.map((id) => [id, false]))) },
      { ack_timeout: '300ms' },
    );

    expect(await send()).toMatchObject({
      outcome: 'retry',
      cause: {
        code: 'sink_unreachable',
        message: expect.stringContaining('no acknowledgement within'),
      },
    });
  });

  test.each<[string, HttpAnswer]>([
    ['other batches', acks({ 5: true, 99: true })],
    ['what is not true', reply({ acks: { 0: 'true' } })],
    ['a login page', html],
    ['nothing', reply({})],
    ['half an answer', { answer: 'cut' }],
    ['an error', failed(503, 19)],
    ['another token', failed(403, 4)],
  ])('and takes an answer of %s for none', async (_what, answer) => {
    const { send } = await collector({ acks: () => answer }, { ack_timeout: '300ms' });

    expect(await send()).toMatchObject({ outcome: 'retry' });
  });

  test('and reports to an operator if it cannot poll', async () => {
    const { send, sink } = await collector({
      acks: (_, nth) => (nth < 4 ? html : acks({ 0: true })),
    });

    const answer = send();
    await waitUntil(() => sink.notice?.() !== null, { what: 'a notice' });

    expect(sink.notice?.()?.what).toContain('not from an HTTP Event Collector (text/html)');
    expect(await answer).toEqual({ outcome: 'delivered' });
    expect(sink.notice?.()).toBeNull();
  });

  test('no longer than it is given', async () => {
    const { send, sink } = await collector({ acks: () => acks({ 0: false }) });
    const kill = new AbortController();
    const answer = send(someEvents(1), kill.signal);

    const closed = sink.close();
    kill.abort(new Error('giving up'));

    await expect(answer).rejects.toThrow('giving up');
    await closed;
  });

  test('not at all with ack: off', async () => {
    const { send, asked } = await collector({ events: () => taken() }, { ack: 'off' });

    expect(await send()).toEqual({ outcome: 'delivered' });
    expect(asked()).toEqual([]);
  });
});

describe('splunk_hec sends again on a new channel', () => {
  const lost: readonly [string, CollectorResponses][] = [
    ['another cookie comes with the word', { acks: () => acks({}, { 'set-cookie': 'lb=two' }) }],
    ['the channel is unknown', { acks: () => failed(400, 11) }],
  ];
  test.each(lost)('waiting events if %s', async (_what, reported) => {
    const { send, posted } = await collector({
      events: (_, nth) => taken(nth - 1, { 'set-cookie': 'lb=one' }),
      acks: (ids, nth) =>
        (nth === 1 ? reported.acks?.(ids, nth) : null) ?? acks({ [ids[0] ?? 0]: true }),
    });

    expect(await send()).toMatchObject({ outcome: 'retry' });
    expect(await send()).toEqual({ outcome: 'delivered' });
    const [before, after] = posted().map(channelOf);
    expect(after).not.toBe(before);
  });

  const broken: readonly [string, HttpAnswer][] = [
    ['is given an id that still waits', taken(0)],
    ['is answered by nobody knows whom', { answer: 'cut' }],
    ['is reset', { answer: 'reset' }],
    ['is answered by a proxy', { answer: 'reply', status: 502, body: 'Bad Gateway' }],
    ['is answered by a login page', html],
    ['is told that the channel is not known', failed(400, 11)],
  ];
  test.each(broken)('waiting events if a second batch %s', async (_what, second) => {
    const { send, posted } = await collector({
      events: (_, nth) => (nth === 2 ? second : taken(nth === 1 ? 0 : nth)),
      acks: (ids, nth) => acks(Object.fromEntries(ids.map((id) => [id, nth > 2 && id > 2]))),
    });
    const first = send(someEvents(2));
    await waitUntil(() => posted().length === 1, { what: 'the first' });

    expect((await send(someEvents(2, 2))).outcome).not.toBe('delivered');
    expect(await first).toMatchObject({ outcome: 'retry' });
    expect(await send(someEvents(2))).toEqual({ outcome: 'delivered' });
    const channels = posted().map(channelOf);
    expect(channels[1]).toBe(channels[0]);
    expect(channels[2]).not.toBe(channels[0]);
  });

  test('not the waiting events if a cookie selects the indexer, though a second batch is cut', async () => {
    const indexed = { now: false };
    const { send, posted, asked } = await collector({
      events: (_, nth) => (nth === 2 ? { answer: 'cut' } : taken(0, { 'set-cookie': 'lb=one' })),
      acks: (ids) => acks({ [ids[0] ?? 0]: indexed.now }),
    });
    const first = send(someEvents(2));
    await waitUntil(() => posted().length === 1, { what: 'the first' });

    expect((await send(someEvents(2, 2))).outcome).toBe('retry');
    indexed.now = true;

    expect(await first).toEqual({ outcome: 'delivered' });
    expect(await send(someEvents(2, 2))).toEqual({ outcome: 'delivered' });
    expect(new Set(asked().map(channelOf))).toEqual(
      new Set([posted()[0], posted()[2]].map((one) => one && channelOf(one))),
    );
  });

  test('waiting events if another cookie comes with the response to a second batch', async () => {
    const { send, posted } = await collector({
      events: (_, nth) => taken(0, { 'set-cookie': `lb=${nth === 1 ? 'one' : 'two'}` }),
      acks: (ids, nth) => acks({ [ids[0] ?? 0]: nth > 3 }),
    });
    const first = send(someEvents(2));
    await waitUntil(() => posted().length === 1, { what: 'the first' });

    const second = send(someEvents(2, 2));

    expect(await first).toMatchObject({ outcome: 'retry' });
    expect(await second).toEqual({ outcome: 'delivered' });
  });

  test('not the waiting events while the indexer is only busy, or cannot be reached', async () => {
    const indexed = { now: false };
    const { send, receiver, posted } = await collector({
      events: (_, nth) => (nth === 1 ? taken(0) : failed(503, 9)),
      acks: () => acks({ 0: indexed.now }),
    });
    const first = send(someEvents(2));
    await waitUntil(() => posted().length === 1, { what: 'the first' });

    expect(await send(someEvents(2, 2))).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_throttled' },
    });
    await receiver.close();
    expect(await send(someEvents(2, 2))).toMatchObject({ outcome: 'retry' });
    indexed.now = true;
    await receiver.reopen();

    expect(await first).toEqual({ outcome: 'delivered' });
  });

  test('nothing behind a batch that is to be sent again', async () => {
    const { send, posted } = await collector({
      events: (_, nth) => (nth === 1 ? failed(503, 9) : taken(nth)),
    });

    const [first, second] = await Promise.all([send(someEvents(2)), send(someEvents(2, 2))]);
    expect([first.outcome, second.outcome]).toEqual(['retry', 'retry']);
    expect(posted()).toHaveLength(1);

    await Promise.all([send(someEvents(2)), send(someEvents(2, 2))]);
    expect(posted()).toHaveLength(3);
  });

  test('and continues if a balancer sends another cookie with every response', async () => {
    let cookie = 0;
    const next = () => ({ 'set-cookie': `lb=${cookie++}` });
    const { send } = await collector({
      events: (_, nth) => taken(nth, next()),
      acks: (ids, nth) => acks({ [ids[0] ?? 0]: nth % 4 === 0 }, next()),
    });

    const outcomes: string[] = [];
    while (outcomes.at(-1) !== 'delivered') outcomes.push((await send()).outcome);
    expect(outcomes.length).toBeLessThan(5);
    expect(await send()).toEqual({ outcome: 'delivered' });
    expect(await send()).toEqual({ outcome: 'delivered' });
  });
});

test('splunk_hec treats a cookie that comes with an acknowledgement as no other indexer', async () => {
  const { send, asked } = await collector({
    events: (_, nth) => taken(nth - 1, { 'set-cookie': 'lb=one' }),
    acks: (ids, nth) =>
      ids.length < 2 && nth === 1
        ? acks({})
        : acks({ [ids[0] ?? 0]: true }, { 'set-cookie': `lb=${nth}` }),
  });

  const sends = [send(someEvents(2)), send(someEvents(2, 2))];

  expect(await Promise.all(sends)).toEqual([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
  expect(asked().length).toBeGreaterThan(1);
});

describe('splunk_hec takes an answer', () => {
  test.each<[string, HttpAnswer, object]>([
    ['without an id for a token that does not acknowledge', taken(), { scope: 'sink' }],
    ['with HTML for none', html, { scope: 'sink' }],
    ['with half of its JSON for none', reply('{"text":"Succ'), { scope: 'sink' }],
    ['200 with another code for none', failed(200, 8), { scope: 'sink' }],
    ['1 for the sink', failed(403, 1), { scope: 'sink' }],
    ['2 for the sink', failed(401, 2), { scope: 'sink' }],
    ['3 for the sink', failed(401, 3), { scope: 'sink' }],
    ['4 for the sink', failed(403, 4), { scope: 'sink' }],
    ['5 for the sink', failed(400, 5), { scope: 'sink' }],
    ['7 for the sink', failed(400, 7), { scope: 'sink' }],
    ['10 for the sink', failed(400, 10), { scope: 'sink' }],
    ['14 for the sink', failed(400, 14), { scope: 'sink' }],
    ['16 for the sink', failed(400, 16), { scope: 'sink' }],
    ['21 for the sink', failed(400, 21), { scope: 'sink' }],
    ['of a code of tomorrow for the sink', failed(400, 99), { scope: 'sink' }],
    [
      '400 of a proxy for the sink',
      { answer: 'reply', status: 400, body: 'Bad Request' },
      { scope: 'sink' },
    ],
    ['8 for later', failed(500, 8), { outcome: 'retry' }],
    ['9 for later', failed(503, 9), { outcome: 'retry', cause: { code: 'sink_throttled' } }],
    ['18 for later', failed(503, 18), { outcome: 'retry' }],
    ['19 for later', failed(503, 19), { outcome: 'retry' }],
    ['20 for later', failed(503, 20), { outcome: 'retry' }],
    ['23 for later', failed(503, 23), { outcome: 'retry' }],
    ['429 for later', failed(429, 26), { outcome: 'retry', cause: { code: 'sink_throttled' } }],
  ])('%s', async (_what, answer, meaning) => {
    const { send } = await collector({ events: () => answer });

    expect(await send()).toMatchObject(meaning);
  });

  test('of a wrong index, one of several, for this destination, with its name', async () => {
    const { send } = await collector(
      { events: () => failed(400, 7, { 'invalid-event-number': 1 }) },
      { index: { audit: 'gone' } },
    );

    expect(await send()).toMatchObject({
      ...{ outcome: 'refused', scope: 'batch', by: 'destination' },
      cause: { next: expect.stringContaining('index gone') },
    });
  });

  test.each([6, 12, 13, 15])(
    '%d for an event, which is refused where it is so by itself',
    async (code) => {
      const events = someEvents(5);
      const isBad = (uid: string) => uid === events[3]?.uid;
      const { send, posted } = await collector({
        events(request, nth) {
          const uids = sentIn(request).map(({ fields }) => fields.sluice_uid);
          const at = uids.findIndex(isBad);
          return at < 0 ? taken(nth) : failed(400, code, { 'invalid-event-number': at });
        },
      });
      await send(someEvents(1, 9));

      const answer = await send(events);

      expect(answer).toMatchObject({ outcome: 'partly', again: [] });
      expect(answer).toMatchObject({ refused: [{ uid: events[3]?.uid }] });
      expect(posted().map((request) => sentIn(request).length)).toEqual([1, 5, 3, 1, 1]);
    },
  );

  test('that refuses event after event for no proof: one request and its first event', async () => {
    const { send, posted } = await collector({
      events: () => failed(400, 15, { 'invalid-event-number': 0 }),
    });

    const answer = await send();

    expect(answer).toMatchObject({ outcome: 'partly', refused: [{}] });
    expect(posted().filter(({ path }) => path.endsWith('/event'))).toHaveLength(2);
  });
});

describe('splunk_hec is tried out', () => {
  const probe = async (reported: CollectorResponses, config: object = {}) => {
    const { receiver, posted } = await collector(reported);
    const settings = parseSettings(splunkHecSink, { url: receiver.url, token, ...config });
    await splunkHecSink.probe(settings, testTools(), never);
    expect(posted().every(({ body }) => body.length === 0)).toBe(true);
  };

  test('without an event', async () => {
    await probe({ acks: () => acks({ 0: false }) });
    await probe({ events: () => failed(400, 5) }, { ack: 'off' });
  });

  test.each<[string, CollectorResponses, object, string]>([
    ['acknowledges nothing', { acks: () => failed(400, 14) }, {}, 'ack: off'],
    ['knows another token', { acks: () => failed(403, 4) }, {}, 'token'],
    ['is a login page', { acks: () => html }, {}, 'url'],
    ['knows another token, off', { events: () => failed(403, 4) }, { ack: 'off' }, 'token'],
    ['is a login page, off', { events: () => html }, { ack: 'off' }, 'url'],
  ])('and names the next step if it %s', async (_what, reported, config, next) => {
    await expect(probe(reported, config)).rejects.toMatchObject({
      code: 'sink_refused',
      next: expect.stringContaining(next),
    });
  });
});
