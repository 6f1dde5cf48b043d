// The elasticsearch sink and a real OpenSearch that conflicts, rejects, is full, rolls over and is killed: each event
// is once in the index of its day, or is named with the reason. SLUICE_CLUSTER_EVENTS makes a long form.

import { rmSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { elasticsearchSink } from '../../../connectors/sinks/elasticsearch.ts';
import type { Event } from '../../../src/contracts/event.ts';
import { compileNormaliser } from '../../../src/normalise/normalise.ts';
import { aSetup } from '../../commands/a-setup.ts';
import { deliver } from '../../contracts/deliver.ts';
import { uidsAt } from '../../contracts/receivers/elasticsearch.ts';
import { listed } from '../../formats/ecs-reader.ts';
import { makeFormat } from '../../formats/make-format.ts';
import { hasShared, loadSamples, sampleNames } from '../../normalise/ocsf.ts';
import { anEvent } from '../../support/an-event.ts';
import { runHere } from '../../support/cli.ts';
import { testSome } from '../../support/long.ts';
import { type OpenSearch, sharedOpenSearch, startOpenSearch } from '../../support/opensearch.ts';
import { sampleMappings } from '../../support/sample-mappings.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const eventsMax = Number(process.env.SLUICE_CLUSTER_EVENTS ?? 1_500);
const dayMs = 86_400_000;
let names = 0;

async function aPlace() {
  const cluster = await sharedOpenSearch();
  names += 1;
  return { cluster, prefix: `cluster-${process.pid}-${names}` };
}

/** Events of so many days in turn. */
function eventsOfDays(count: number, days: number): readonly Event[] {
  const last = Date.UTC(2026, 2, 4);
  return Array.from({ length: count }, (_, offset) =>
    anEvent({ offset, ocsf: { time: last - (offset % days) * dayMs } }),
  );
}

async function setUp(cluster: Pick<OpenSearch, 'url'>, index: string, format: string) {
  const settings = parseSettings(elasticsearchSink, { url: cluster.url, index });
  return await elasticsearchSink.setup?.(settings, makeFormat(format), {
    tools: testTools(),
    signal: never,
  });
}

/** The documents behind a name: how often each id stands there, and in which index. */
async function statusView(cluster: Pick<OpenSearch, 'ask'>, indices: string) {
  await cluster.ask('POST', `/${indices}/_refresh`);
  const found: { readonly _id: string; readonly _index: string }[] = [];
  let after: unknown[] | undefined;
  for (;;) {
    const { hits } = await cluster.ask('POST', `/${indices}/_search`, {
      size: 5_000,
      _source: false,
      sort: ['_index', '_seq_no'],
      ...(after !== undefined && { search_after: after }),
    });
    found.push(...hits.hits);
    after = hits.hits.at(-1)?.sort;
    if (after === undefined) return found;
  }
}

/** OpenSearch's `query_string` finds nothing in a field of type `wildcard`. */
const openSearchType = (type: string | undefined) => (type === 'wildcard' ? 'keyword' : type);
const uidsOf = (events: readonly Event[]) => events.map(({ uid }) => uid).toSorted();

test(
  'elasticsearch writes each event once, though the node is killed and its queue is full',
  async () => {
    // One thread and a queue of one: of a request for many days most items are rejected for a retry.
    const node = await startOpenSearch({
      'thread_pool.write.size': '1',
      'thread_pool.write.queue_size': '1',
    });
    let answers = 0;
    const opened = await openSink(elasticsearchSink, { url: node.url, timeout: '20s' });
    const events = eventsOfDays(eventsMax, 7);
    const outcomes = new Set<string>();
    const kills: Promise<void>[] = [];
    const restart = async () => {
      await node.kill();
      await node.start();
    };
    const send: typeof opened.sink.send = async (batch, signal) => {
      const answering = opened.sink.send(batch, signal);
      answers += 1;
      if (answers === 3 || answers % 150 === 0) kills.push(restart());
      const answer = await answering;
      outcomes.add(answer.outcome);
      if (answer.outcome === 'retry') await Promise.all(kills);
      return answer;
    };

    const { refused } = await deliver({ ...opened, sink: { ...opened.sink, send } }, events, 500);
    await Promise.all(kills);

    expect(refused).toEqual([]);
    expect(kills.length).toBeGreaterThan(0);
    expect([...outcomes]).toEqual(expect.arrayContaining(['delivered', 'partly', 'retry']));
    const found = await statusView(node, 'sluice-*');
    expect(found.map(({ _id }) => _id).toSorted()).toEqual(uidsOf(events));
    expect(new Set(found.map(({ _index }) => _index)).size).toBe(7);
  },
  300_000 + eventsMax * 20,
);

test('elasticsearch is set up by check, and has each event of a run once', async () => {
  const { cluster, prefix } = await aPlace();
  const { config, stateDir } = await aSetup({
    sinks: [
      `  elastic: { type: elasticsearch, url: "${cluster.url}", index: "${prefix}-{class}-{date}" }`,
    ],
  });

  const check = await runHere(['check', '-c', config, '--setup']);
  const first = await runHere(['run', '-c', config, '--once']);
  rmSync(stateDir, { recursive: true });
  const again = await runHere(['run', '-c', config, '--once']);

  expect(check.stdout).toMatch(/ok +sink elastic: connection\nok +sink elastic: index template /);
  expect([check.exitCode, first.exitCode, again.exitCode]).toEqual([0, 0, 0]);
  expect(await statusView(cluster, `${prefix}-*`)).toHaveLength(250);
});

describe('elasticsearch in a data stream', () => {
  test('writes an event once between two rollovers, and once more after one', async () => {
    const { cluster, prefix } = await aPlace();
    expect(await setUp(cluster, prefix, 'ecs')).toBe(`index template ${prefix}-ecs`);
    const opened = await openSink(elasticsearchSink, { url: cluster.url, index: prefix });
    const events = someEvents(20);
    await deliver(opened, events, 20);
    await deliver(opened, events, 20);
    const before = await statusView(cluster, prefix);

    await cluster.ask('POST', `/${prefix}/_rollover`);
    const { refused } = await deliver(opened, events, 20);

    expect(before.map(({ _id }) => _id).toSorted()).toEqual(uidsOf(events));
    expect(before[0]?._index).toMatch(/^\.ds-/);
    expect(refused).toEqual([]);
    expect(await statusView(cluster, prefix)).toHaveLength(40);
    await cluster.ask('DELETE', `/_data_stream/${prefix}`);
  });

  test('names each event that it refuses where op is index', async () => {
    const { cluster, prefix } = await aPlace();
    await setUp(cluster, prefix, 'ecs');
    await cluster.ask('PUT', `/_data_stream/${prefix}`);
    const opened = await openSink(elasticsearchSink, {
      url: cluster.url,
      index: prefix,
      op: 'index',
    });

    const { refused } = await deliver(opened, someEvents(3), 3);

    expect(refused).toHaveLength(3);
    expect(refused[0]?.reason).toContain('op_type of create');
    await cluster.ask('DELETE', `/_data_stream/${prefix}`);
  });
});

describe('elasticsearch refuses', () => {
  test('events that conflict with the mapping, with the reason, and the rest is accepted', async () => {
    const { cluster, prefix } = await aPlace();
    const format = { type: 'json', schema: 'original' };
    const raws = ['{"a":1}', '{"a":{"b":2}}', '{"a":3}', '[1]', '"text"', '{"a":4}'];
    const events = raws.map((raw, offset) => anEvent({ offset, raw }));
    const config = { url: cluster.url, index: `${prefix}-{date}` };
    const opened = await openSink(elasticsearchSink, config, { format });

    const { refused } = await deliver(opened, events, 6);

    expect(refused.map(({ uid }) => uid)).toEqual([1, 3, 4].map((at) => events[at]?.uid));
    expect(refused[0]?.reason).toMatch(/^400 mapper_parsing_exception: .*\[a\]/);
    expect(await uidsAt(cluster, `${prefix}-*`)).toEqual([0, 2, 5].map((at) => events[at]?.uid));
  });

  test('an index that must not be created: the destination refuses, and no event is to blame', async () => {
    const { cluster, prefix } = await aPlace();
    await cluster.ask('PUT', '/_cluster/settings', {
      transient: { 'action.auto_create_index': `-${prefix}*,+*` },
    });
    const { sink, batch } = await openSink(elasticsearchSink, { url: cluster.url, index: prefix });

    const events = someEvents(2);
    const answer = await sink.send(batch(events), never);

    const reason = expect.stringContaining(
      `404 index_not_found_exception: no such index [${prefix}]`,
    );
    const refused = events.map(({ uid }) => ({ uid, reason, by: 'destination' }));
    expect(answer).toEqual({ outcome: 'partly', refused, again: [] });
    await cluster.ask('PUT', '/_cluster/settings', {
      transient: { 'action.auto_create_index': null },
    });
  });
});

describe('elasticsearch set up', () => {
  /** Real records where they are at hand, and some that no mapping should meet. */
  function events(): readonly Event[] {
    const samples = (hasShared ? sampleNames : []).flatMap((name) =>
      loadSamples(name)
        .filter((_, i) => i % 60 === 0)
        .flatMap((record) => [
          { record, kind: 'log' as const },
          { record, kind: 'log' as const, mapping: sampleMappings[name] },
          { record, kind: 'audit' as const },
        ]),
    );
    const odd = [
      { a: 1, 'a.b': [{ c: 'x'.repeat(40_000) }, 7, null], '': { '.': '' } },
      { a: { b: 'x' }, id: 'y'.repeat(40_000), message: 'z'.repeat(40_000) },
      { a: [[1], ['2']], src_ip: 'no address', 'größe \u0001': true, time: 'x' },
      { a: Array.from({ length: 3_000 }, (_, i) => ({ [`k${i}`]: i })) },
    ].map((record) => ({ record, kind: 'log' as const }));
    return [...samples, ...odd].map(({ record, kind, ...more }, offset) => {
      const { uid, context } = anEvent({ offset, kind });
      const normalise = compileNormaliser(kind, { time: ['timestamp', 'time'], id: 'id', ...more });
      const raw = Buffer.from(JSON.stringify(record));
      // Of one day: an index takes its time to be made.
      const ocsf = { ...normalise(record, uid, context), time: context.fetchedAt };
      return { ...anEvent({ offset, kind }), raw, ocsf };
    });
  }

  testSome(1, ['ecs', 'json'])(
    'takes every event as %s, whatever upstream calls its members',
    async (format) => {
      const { cluster, prefix } = await aPlace();
      const index = `${prefix}-{class}-{date}`;
      await setUp(cluster, index, format);
      await setUp(cluster, index, format);
      const opened = await openSink(elasticsearchSink, { url: cluster.url, index }, { format });
      const all = events();

      const { refused } = await deliver(opened, all, 500);

      // Texts above 32,766 bytes are accepted too: the sink cuts them in the fields that are indexed.
      expect(refused).toEqual([]);
      expect((await statusView(cluster, `${prefix}-*`)).length).toBe(all.length);
      const longest = all.at(-4);
      const found = await cluster.ask('POST', `/${prefix}-*/_search`, {
        query: { term: { [format === 'ecs' ? 'event.id' : 'metadata.uid']: longest?.uid } },
      });
      expect(found.hits.hits).toHaveLength(1);
      if (format === 'ecs') expectTypes(await cluster.ask('GET', `/${prefix}-*/_mapping`));
      await cluster.ask('DELETE', `/${prefix}-*`);
    },
  );

  /** Every field of ECS has the type that the published list gives it. */
  function expectTypes(mappings: object): void {
    for (const {
      mappings: { properties },
    } of Object.values(mappings)) {
      const { sluice, ...fields } = properties;
      for (const [name, type] of typesOf(fields, ''))
        expect([name, type]).toEqual([name, openSearchType(listed[name]?.type)]);
      expect(sluice.properties).toMatchObject({ ocsf: { type: 'flat_object' } });
    }
  }

  function* typesOf(properties: object, above: string): Generator<[string, string]> {
    for (const [name, one] of Object.entries(properties)) {
      if (one.properties) yield* typesOf(one.properties, `${above}${name}.`);
      else yield [above + name, one.type];
    }
  }
});
