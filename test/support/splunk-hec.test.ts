// That the scripted Splunk does what Splunk's documents say, and what its users have suffered from.
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { type Splunk, splunkTokens, startSplunk } from './splunk-hec.ts';

const channel = '0aeeac95-ac74-4aa9-b30d-6c4c0ac581ba';
const other = '7a3f0e57-0000-4000-8000-00000000000b';

interface Asking {
  readonly path?: string;
  readonly token?: string | null;
  readonly channel?: string | null;
  readonly cookie?: string | undefined;
  readonly gzip?: boolean;
}

async function ask(splunk: Splunk, body: string, asking: Asking = {}) {
  const { path = '/services/collector/event', token = splunkTokens.acked.token, cookie } = asking;
  const headers = {
    ...(token !== null && { authorization: `Splunk ${token}` }),
    ...(asking.channel !== null && { 'x-splunk-request-channel': asking.channel ?? channel }),
    ...(cookie !== undefined && { cookie }),
    ...(asking.gzip === true && { 'content-encoding': 'gzip' }),
  };
  const bytes = asking.gzip === true ? gzipSync(body) : body;
  const answer = await request(splunk.url + path, { method: 'POST', headers, body: bytes });
  const text = await answer.body.text();
  const given = String(answer.headers['set-cookie'] ?? '').split(';')[0];
  return { status: answer.statusCode, said: JSON.parse(text), cookie: given };
}

const event = (text: string, more: object = {}) =>
  JSON.stringify({ event: { text }, fields: { sluice_uid: text }, ...more });
const poll = (splunk: Splunk, acks: readonly number[], asking: Asking = {}) =>
  ask(splunk, JSON.stringify({ acks }), { path: '/services/collector/ack', ...asking });
const uids = (splunk: Splunk) => splunk.indexed.map(({ fields }) => fields.sluice_uid);

describe('a post', () => {
  test('takes events one after the other, gzip too, and finds each field again', async () => {
    const splunk = await startSplunk();
    const rich = {
      time: 1700000000.123,
      host: 'h',
      source: 's',
      sourcetype: 't',
      index: 'security',
    };

    const answer = await ask(splunk, `${event('a "}{', rich)}\n${event('b')}`, { gzip: true });

    expect(answer).toMatchObject({ status: 200, said: { text: 'Success', code: 0, ackId: 0 } });
    expect(splunk.indexed).toMatchObject([
      { ...rich, raw: '{"text":"a \\"}{"}', fields: { sluice_uid: 'a "}{' } },
      { index: 'main', time: null, sourcetype: null },
    ]);
  });

  test('cuts events longer than TRUNCATE, and reports nothing', async () => {
    const splunk = await startSplunk();

    const { status } = await ask(splunk, event('x'.repeat(20_000)));

    expect([status, splunk.indexed[0]?.raw.length]).toEqual([200, 10_000]);
  });

  const wrong: readonly [string, number, number, string, Asking][] = [
    ['no token', 401, 2, event('a'), { token: null }],
    ['an unknown token', 403, 4, event('a'), { token: 'nobody' }],
    ['a disabled token', 403, 1, event('a'), { token: splunkTokens.disabled.token }],
    ['a token that is no word', 401, 3, event('a'), { token: 'two words' }],
    ['a token in the query', 400, 16, event('a'), { path: '/services/collector/event?token=t' }],
    ['no channel', 400, 10, event('a'), { channel: null }],
    ['a channel that is no GUID', 400, 11, event('a'), { channel: 'mine' }],
    ['nothing', 400, 5, ' \n', {}],
    ['a list', 400, 6, `[${event('a')}]`, {}],
    ['half an object', 400, 6, event('a').slice(0, -1), {}],
    ['no event', 400, 12, '{"time":1}', {}],
    ['a blank event', 400, 13, '{"event":""}', {}],
    ['an index that is not the token’s', 400, 7, event('a', { index: 'secret' }), {}],
    ['nested fields', 400, 15, '{"event":"a","fields":{"a":{"b":"c"}}}', {}],
    ['fields that are numbers', 400, 15, '{"event":"a","fields":{"a":1}}', {}],
  ];
  test.each(wrong)('with %s is answered %i, code %i', async (_, status, code, body, asking) => {
    const splunk = await startSplunk();

    const answer = await ask(splunk, body, asking);

    expect(answer).toMatchObject({ status, said: { code } });
    expect(answer.said).not.toHaveProperty('ackId');
    expect(splunk.indexed).toEqual([]);
  });

  test('accepts the events before a wrong one, which it numbers', async () => {
    const splunk = await startSplunk();

    const answer = await ask(splunk, event('a') + event('b', { index: 'secret' }) + event('c'));

    expect(answer.said).toEqual({ text: 'Incorrect index', code: 7, 'invalid-event-number': 1 });
    expect(uids(splunk)).toEqual(['a']);
  });

  test('has no ackId where the token has no acknowledgement, and no poll either', async () => {
    const splunk = await startSplunk();
    const { token } = splunkTokens.plain;

    const posted = await ask(splunk, event('a'), { token, channel: null });
    const polled = await poll(splunk, [0], { token });

    expect(posted.said).toEqual({ text: 'Success', code: 0 });
    expect(polled).toMatchObject({ status: 400, said: { code: 14 } });
  });

  test.each([9, 18, 19, 20, 23] as const)('is answered 503 with code %i', async (code) => {
    const splunk = await startSplunk({ indexers: 1 });
    splunk.indexers[0]?.say(code);

    const posted = await ask(splunk, event('a'));
    const polled = await poll(splunk, [0]);

    expect(posted).toMatchObject({ status: 503, said: { code } });
    expect(polled.status).toBe(code === 9 || code === 18 ? 200 : 503);
    expect(splunk.indexed).toEqual([]);
  });

  test('is answered as busy where too many wait in its channel, and in no other', async () => {
    const splunk = await startSplunk({ indexers: 1, pendingMax: 2 });
    splunk.indexers[0]?.hold();

    const codes = [];
    for (const text of ['a', 'b', 'c']) codes.push((await ask(splunk, event(text))).said.code);
    const elsewhere = await ask(splunk, event('d'), { channel: other });

    expect(codes).toEqual([0, 0, 9]);
    expect(elsewhere.said).toMatchObject({ code: 0, ackId: 0 });
  });
});

describe('acknowledgement', () => {
  test('counts from 0 for each channel and indexer, and returns true once', async () => {
    const splunk = await startSplunk();
    const first = await ask(splunk, event('a'));
    const second = await ask(splunk, event('b'), { cookie: first.cookie });
    const elsewhere = await ask(splunk, event('c'));
    const otherChannel = await ask(splunk, event('d'), { cookie: first.cookie, channel: other });

    const reported = await poll(splunk, [0, 1, 2], { cookie: first.cookie });
    const again = await poll(splunk, [0, 1], { cookie: first.cookie });

    const ids = [first, second, elsewhere, otherChannel].map(({ said }) => said.ackId);
    expect(ids).toEqual([0, 1, 0, 0]);
    expect(elsewhere.cookie).not.toBe(first.cookie);
    expect(reported.said).toEqual({ acks: { 0: true, 1: true, 2: false } });
    expect(again.said).toEqual({ acks: { 0: false, 1: false } });
  });

  test('reaches another indexer once the cookie has ended, which never says true', async () => {
    const splunk = await startSplunk();
    const { cookie } = await ask(splunk, event('a'));
    splunk.expireCookies();

    const polled = await poll(splunk, [0], { cookie });

    expect(polled.said).toEqual({ acks: { 0: false } });
    expect(polled.cookie).not.toBe(cookie);
  });

  test('can say of a channel that it knows none such', async () => {
    const splunk = await startSplunk({ unknownChannel: 'refused' });

    const polled = await poll(splunk, [0]);

    expect(polled).toMatchObject({ status: 400, said: { code: 11 } });
  });

  test('waits while nothing is written, and is true of all that is', async () => {
    const splunk = await startSplunk({ indexers: 1 });
    splunk.indexers[0]?.hold();
    await ask(splunk, event('a'));

    const early = await poll(splunk, [0]);
    const nothing = uids(splunk);
    splunk.indexers[0]?.release();
    const late = await poll(splunk, [0]);

    expect([early.said.acks, nothing]).toEqual([{ 0: false }, []]);
    expect([late.said.acks, uids(splunk)]).toEqual([{ 0: true }, ['a']]);
  });

  test('comes after so many polls in vain', async () => {
    const splunk = await startSplunk({ indexers: 1, pollsInVain: 2 });
    await ask(splunk, event('a'));

    const said = [];
    for (let i = 0; i < 4; i++) said.push((await poll(splunk, [0])).said.acks['0']);

    expect(said).toEqual([false, false, true, false]);
    expect(uids(splunk)).toEqual(['a']);
  });

  test('of a killed indexer never comes, and its numbers begin again', async () => {
    const splunk = await startSplunk({ indexers: 1 });
    const [indexer] = splunk.indexers;
    indexer?.hold();
    const { cookie } = await ask(splunk, event('a'));
    indexer?.kill();

    const away = await request(`${splunk.url}/services/collector/event`, { method: 'POST' });
    indexer?.restart();
    indexer?.release();
    const polled = await poll(splunk, [0], { cookie });
    const next = await ask(splunk, event('b'), { cookie });

    expect(away.statusCode).toBe(503);
    expect(await away.body.text()).toMatch(/^<html>/);
    expect(polled.said.acks).toEqual({ 0: false });
    expect(next.said.ackId).toBe(0);
    expect(uids(splunk)).toEqual(['b']);
  });

  test('goes to the other indexer while one is killed', async () => {
    const splunk = await startSplunk();
    const { cookie } = await ask(splunk, event('a'));
    const at = splunk.indexed[0]?.indexer ?? 0;
    splunk.indexers[at]?.kill();

    const next = await ask(splunk, event('b'), { cookie });

    expect(next.cookie).not.toBe(cookie);
    expect(splunk.indexed[1]?.indexer).not.toBe(at);
  });
});

test('a proxy answers with a page, and the events that it passed on arrived', async () => {
  const splunk = await startSplunk();
  splunk.interfere((_, pass) => {
    pass();
    return { answer: 'reply', status: 200, body: '<html>Sign in</html>' };
  });

  const answer = await request(`${splunk.url}/services/collector/event`, {
    method: 'POST',
    headers: { authorization: `Splunk ${splunkTokens.plain.token}` },
    body: event('a'),
  });

  expect(await answer.body.text()).toBe('<html>Sign in</html>');
  expect(uids(splunk)).toEqual(['a']);
});
