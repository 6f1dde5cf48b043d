// A real sender with many batches in flight to indexers that acknowledge one by one: what one of them loses is sent
// again, and nothing that another has written.

import { expect, test } from 'vitest';
import { splunkHecSink } from '../../connectors/sinks/splunk-hec.ts';
import { formats } from '../../formats/index.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { type PlannedSink, Senders } from '../../src/send/sending.ts';
import { anAppend } from '../support/a-page.ts';
import { parseSettings, testTools } from '../support/sink-opening.ts';
import { splunkTokens, startSplunk } from '../support/splunk-hec.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

function splunkAt(url: string, more: { readonly index?: object } = {}): PlannedSink {
  const { token } = splunkTokens.acked;
  const settings = parseSettings(splunkHecSink, { url, token, ack_timeout: '1s', ...more });
  const json = formats.find(({ type }) => type === 'json');
  if (json === undefined) throw new Error('there is no format json');
  const made = json.make({ type: 'json', schema: 'ocsf', raw_data: false });
  const document = splunkHecSink.document?.(settings, made);
  return {
    name: 'splunk',
    definition: splunkHecSink,
    settings,
    format: document === undefined ? made : { ...made, document },
    formatKey: 'json',
    bounds: { eventsMax: 10, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
}

test('sends again events that an indexer loses, and none that is written after them', async () => {
  const splunk = await startSplunk({ indexers: 1 });
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 0, bytesMax: 1e9, eager: true },
    sinks: ['splunk'],
  });
  const ids = Array.from({ length: 200 }, (_, i) => String(i));
  for (let n = 0; n < 200; n += 10) await spool.append(anAppend({ ids: ids.slice(n, n + 10) }));
  const sending = new Senders(
    { spool, tools: testTools(), random: () => 0 },
    { sources: [{ name: 'audit', reading: { id: 'id', time: ['timestamp'] } }], routes: [] },
  );
  splunk.indexers[0]?.loseNext();

  sending.start(await sending.open([splunkAt(splunk.url)]));
  await waitUntil(() => sending.state[0]?.position === 200, {
    what: () => `all to be delivered: ${JSON.stringify(sending.state)}`,
  });
  const [state] = sending.state;
  await sending.stop(1_000);

  const posts = splunk.requests.filter(({ path }) => path.endsWith('/event'));
  expect(posts).toHaveLength(21);
  expect(splunk.indexed).toHaveLength(200);
  expect(new Set(splunk.indexed.map(({ fields }) => fields.sluice_uid)).size).toBe(200);
  expect(state).toMatchObject({ delivered: 200, deadLetters: 0, retries: 1 });
  expect((await spool.progress('splunk')).position).toBe(200);
  await spool.close();
});

test('an index that does not exist delays only the events of its source, which follow in order once it is there', async () => {
  const indexes = ['security'];
  const { token } = splunkTokens.acked;
  const splunk = await startSplunk({ indexers: 1, tokens: [{ token, ack: true, indexes }] });
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 0, bytesMax: 1e9, eager: true },
    sinks: ['splunk'],
  });
  const reading = { id: 'id', time: ['timestamp'] };
  for (let n = 0; n < 6; n += 1)
    for (const source of ['audit', 'other'])
      await spool.append(anAppend({ stream: source, source, ids: [`${source}${n}`] }));
  const sending = new Senders(
    { spool, tools: testTools(), random: () => 0 },
    { sources: ['audit', 'other'].map((name) => ({ name, reading })), routes: [] },
  );

  sending.start(
    await sending.open([splunkAt(splunk.url, { index: { audit: 'security', other: 'gone' } })]),
  );
  await waitUntil(() => sending.state[0]?.position === 12, {
    what: () => `the position to pass all: ${JSON.stringify(sending.state)}`,
  });
  const before = { indexed: splunk.indexed.map(({ index }) => index), state: sending.state[0] };
  indexes.push('gone');
  const records = (index: string) =>
    splunk.indexed
      .filter((one) => one.index === index)
      .map(({ raw }) => /(audit|other)\d/.exec(raw)?.[0]);
  await waitUntil(() => records('gone').length === 6 && !sending.state[0]?.setAside.length, {
    what: () => `the others to follow: ${JSON.stringify(sending.state)}`,
  });
  await sending.stop(1_000);

  expect(new Set(before.indexed)).toEqual(new Set(['security']));
  expect(before.state).toMatchObject({ deadLetters: 0, setAside: [{ destination: 'gone' }] });
  const named = (source: string) => Array.from({ length: 6 }, (_, n) => `${source}${n}`);
  expect(records('gone')).toEqual(named('other'));
  // Splunk keeps what came before the refused event of a request, so the first may come again.
  expect([...new Set(records('security'))]).toEqual(named('audit'));
  await spool.close();
});
