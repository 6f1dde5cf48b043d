// A long text must not hide an event: OpenSearch accepts the event with the whole text in its document, and a rule finds it.

import { expect, test } from 'vitest';
import { withShortTerms } from '../../../connectors/sinks/elasticsearch/long-values.ts';
import { elasticsearchSink } from '../../../connectors/sinks/elasticsearch.ts';
import { queryRules } from '../../../deploy/siem/query-rules.ts';
import type { JsonObject } from '../../../src/contracts/json.ts';
import { deliver } from '../../contracts/deliver.ts';
import { makeFormat } from '../../formats/make-format.ts';
import { anEvent } from '../../support/an-event.ts';
import { sharedOpenSearch } from '../../support/opensearch.ts';
import { openSink, parseSettings, testTools } from '../../support/sink-opening.ts';

const long = `${'a'.repeat(40_000)}"é\u{1f600}`;

/** A number of so many digits, as a record holds it. */
function number(digits: number): JsonObject {
  const { rawJSON } = JSON as unknown as { rawJSON(text: string): JsonObject };
  return rawJSON('7'.repeat(digits));
}

/** A weakened DLP rule whose record has long values in flat fields. */
function weakened(offset: number, unmapped: JsonObject, after: JsonObject = {}) {
  const data = { before: { enabled: true }, after: { enabled: false, ...after } };
  return anEvent({
    offset,
    ocsf: {
      message: long,
      metadata: { event_code: 'dlp.rule.update' },
      resources: [{ type: 'dlp_rule', uid: 'r-1', name: 'iban', data }],
      unmapped,
    },
  });
}

const events = [
  weakened(1, { comment: long }),
  weakened(2, { [long]: { a: 1 } }),
  weakened(3, { list: ['short', long, { deep: [long] }] }),
  weakened(4, {}, { note: long }),
  // Below the limit alone, above it with its path.
  weakened(5, { ['n'.repeat(1_000)]: 'é'.repeat(16_000) }),
  weakened(6, JSON.parse(`{"__proto__":${JSON.stringify(long)}}`)),
  weakened(7, { comment: 'short' }),
  // The clusters read no number of more than 1,000 characters.
  weakened(8, { sum: number(1_001), list: [number(1_000)] }),
  weakened(9, { ['n'.repeat(7_980)]: number(40_000) }),
  weakened(10, { ['n'.repeat(7_980)]: number(30), comment: long }),
];

test.each([
  ['ecs', true],
  ['json', true],
  ['ecs', false],
] as const)('format %s, template: %s: OpenSearch accepts every event', async (format, isSetUp) => {
  const cluster = await sharedOpenSearch();
  const prefix = `long-${process.pid}-${format}-${isSetUp}`;
  const config = { url: cluster.url, index: `${prefix}-{class}-{date}` };
  if (isSetUp)
    await elasticsearchSink.setup?.(parseSettings(elasticsearchSink, config), makeFormat(format), {
      tools: testTools(),
      signal: new AbortController().signal,
    });
  const opened = await openSink(elasticsearchSink, config, { format });

  // Without the template, the first event of an index decides the type of a field.
  const sent = isSetUp ? events : events.filter((_, at) => [0, 3, 6].includes(at));

  const { refused } = await deliver(opened, sent, 3);

  expect(refused).toEqual([]);
  await cluster.ask('POST', `/${prefix}-*/_refresh`);
  const { hits } = await cluster.ask('POST', `/${prefix}-*/_search`, { size: 20 });
  expect(hits.total.value).toBe(sent.length);
  const documents = new Map(
    hits.hits.map((hit: { _id: string; _source: unknown }) => [hit._id, hit._source]),
  );
  const longOf = (at: number) =>
    (documents.get(events[at]?.uid) as JsonObject).sluice as JsonObject | undefined;
  const below = format === 'ecs' ? 'sluice.unmapped' : 'unmapped';
  expect(longOf(0)).toMatchObject({ long: [{ path: `${below}.comment`, value: long }] });
  expect(longOf(6)?.long).toBeUndefined();
  if (isSetUp)
    expect(longOf(7)?.long).toEqual([{ path: `${below}.sum`, value: '7'.repeat(1_001) }]);
  if (isSetUp)
    expect(longOf(1)).toMatchObject({
      long: [{ path: below, member: JSON.stringify({ [long]: { a: 1 } }) }],
    });
  if (format !== 'ecs' || !isSetUp) return;
  const rule = queryRules().find(({ name }) => name === 'sluice_dlp_rule_weakened');
  const alerts = await rule?.run(cluster.ask, { index: `${prefix}-*`, since: null });
  expect(alerts?.map(({ uid }) => uid).toSorted()).toEqual(events.map(({ uid }) => uid).toSorted());
});

test('a document without a long term keeps its bytes, and one with a long term its numbers', () => {
  const number = `{"${'k'.repeat(900)}":1,"sluice":{"unmapped":{"n":-1.${'7'.repeat(995)}e1}}}`;
  const longNumber = number.replace('e1}', 'e12}');
  const short = `{"sluice":{"unmapped":{"n":12345678901234567890,"t":"${'a'.repeat(31_000)}"}}, "x":1}`;
  const wide = `{"message":"${'m'.repeat(40_000)}","sluice":{"unmapped":{"n":12345678901234567890}}, "x":1}`;
  const moved = `{"message":"","sluice":{"unmapped":{"n":12345678901234567890,"t":"${long.replace('"', '\\"')}"}}}`;

  expect(withShortTerms(short)).toBe(short);
  expect(withShortTerms(number)).toBe(number);
  for (const document of [longNumber, Buffer.from(longNumber)])
    expect(JSON.parse(String(withShortTerms(document))).sluice.long).toEqual([
      { path: 'sluice.unmapped.n', value: `-1.${'7'.repeat(995)}e12` },
    ]);
  expect(withShortTerms(wide)).toBe(wide);
  expect(String(withShortTerms(Buffer.from(moved)))).toContain('"n":12345678901234567890,');
  expect(JSON.parse(String(withShortTerms(moved))).sluice.long).toEqual([
    { path: 'sluice.unmapped.t', value: long },
  ]);
});

test.each([7_500, 8_500, 20_000, 31_000])('a name of %s bytes leaves no long term', (length) => {
  const name = 'n'.repeat(length);
  // Three bytes a character, and a pair of surrogates at the cut.
  const value = `${'€'.repeat(6_999)}\u{1f600}${'€'.repeat(9_000)}`;
  const text = String(withShortTerms(JSON.stringify({ unmapped: { [name]: value } })));
  const { unmapped, sluice } = JSON.parse(text);

  for (const [key, below] of Object.entries(unmapped)) {
    expect(Buffer.byteLength(`unmapped.${key}=${below}`)).toBeLessThan(32_766);
  }
  expect(JSON.stringify(sluice.long)).toContain(value);
  expect(text).not.toMatch(/\\ud83d(?!\\ude00)/);
});
