// What the tests of the fetch side share: a list or a collection of the sandbox, read through a real spool by a clock
// of the test's, and what the spool then holds.

import { z } from 'zod';
import { sources } from '../../connectors/sources/index.ts';
import type { Entity } from '../../src/collection/entities.ts';
import { CollectionPoller } from '../../src/collection/poller.ts';
import { CollectionReader, type FullScan } from '../../src/collection/reader.ts';
import type { Answer } from '../../src/contracts/answer.ts';
import type { ConditionRecord } from '../../src/contracts/change.ts';
import type { CollectionReading, SourceDefinition } from '../../src/contracts/definition.ts';
import type { PageContext } from '../../src/contracts/event.ts';
import type { CollectionStream, ListStream } from '../../src/contracts/source.ts';
import { type Spool, uidBytes } from '../../src/contracts/spool.ts';
import type { Log } from '../../src/contracts/tools.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { parseListCheckpoint } from '../../src/list/checkpoint.ts';
import { ListPoller } from '../../src/list/poller.ts';
import { ListReader } from '../../src/list/reader.ts';
import type { PollResult } from '../../src/poll/outcome.ts';
import type { FindingRecord } from '../../src/poll/own-pages.ts';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { AUDIT } from '../sandbox/client.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { noLog, settingsOf, upstreamAt } from '../support/plain-upstream.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;

/** A record as the spool holds it. */
export interface HeldRecord {
  readonly uid: string;
  readonly id: string | null;
  readonly kind: PageContext['kind'];
  readonly text: string;
}

/** A sandbox that stands still, and a clock that both it and the reader go by. */
export async function standingSandbox(
  options: SandboxOptions = {},
  clock: ManualClock = manualClock(),
): Promise<{ sandbox: Sandbox; clock: ManualClock }> {
  const sandbox = await startSandbox({
    rate: 0,
    firewallEveryS: 0,
    events: 40,
    now: clock.now,
    ...options,
  });
  afterThisTest(() => sandbox.close());
  return { sandbox, clock };
}

/** A spool in a directory of its own; `reopen` is a crash and a restart. */
export async function aSpool(dir = tempDir('fetch-')): Promise<Spool> {
  const spool = await openSpool({
    dir,
    sync: 'normal',
    keepMs: 0,
    bytesMax: 2 ** 30,
    sinks: ['nobody'],
    reserveBytesMax: 2 ** 20,
  });
  afterThisTest(() => spool.close());
  return spool;
}

/** Everything the spool holds, in order. */
export async function heldIn(spool: Spool): Promise<readonly HeldRecord[]> {
  const records: HeldRecord[] = [];
  for (let from = 0; from < spool.gauge.end; ) {
    const pages = await spool.read(from, 1 << 20);
    for (const page of pages) {
      const slices = cutRecords(page.body, page.items);
      for (let i = 0; i < page.count; i += 1) {
        const at = page.kept === null ? i : (page.kept[i] ?? 0);
        const text = Buffer.from(page.body.subarray(slices.starts[at], slices.ends[at])).toString();
        const uid = Buffer.from(page.uids.subarray(i * uidBytes, (i + 1) * uidBytes));
        records.push({
          uid: uid.toString('hex'),
          id: /^\{"id":"?([^",]+)/.exec(text)?.[1] ?? null,
          kind: page.context.kind,
          text,
        });
      }
      from = page.first + page.count;
    }
  }
  return records;
}

/** The conditions reported so far. */
function conditionsIn(held: readonly HeldRecord[]): readonly ConditionRecord[] {
  return held
    .filter(({ kind }) => kind === 'condition')
    .map(({ text }) => JSON.parse(text) as ConditionRecord); // sluice's own record
}

/** The conditions reported so far. */
function conditionsOf(held: readonly HeldRecord[]): readonly string[] {
  return conditionsIn(held).map(({ condition }) => condition);
}

/** A source of the list by its type. */
function sourceOf(type: string): SourceDefinition {
  const found = sources.find((source) => source.type === type);
  if (found === undefined) throw new Error(`there is no source ${type}`);
  return found;
}

/** A list stream under test. */
export interface ListUnderTest {
  readonly stream: ListStream;
  readonly spool: Spool;
  poll(signal?: AbortSignal): Promise<PollResult>;
  /** Polls until the tail is reached; throws for any other end. */
  readToTail(): Promise<number>;
  /** Forgets everything but the spool, as a crash does. */
  restart(): void;
  /** What is held, conditions left out. */
  records(): Promise<readonly HeldRecord[]>;
  conditions(): Promise<readonly string[]>;
  /** The conditions in full. */
  reported(): Promise<readonly ConditionRecord[]>;
  /** What the poller said it found. */
  readonly found: readonly FindingRecord[];
}

/** The list's checkpoint as it is held. */
export async function checkpointOf(list: Pick<ListUnderTest, 'spool' | 'stream'>) {
  const checkpoint = parseListCheckpoint((await list.spool.recall(list.stream.name)).checkpoint);
  if (checkpoint === null) throw new Error('there is no checkpoint that can be read');
  return checkpoint;
}

/** What a list under test differs in. */
export interface ListChoices {
  readonly type?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly spool?: Spool;
  /** The company of the list, if a source has one per company; default: c-1. */
  readonly company?: string;
  /** Wraps the stream, e.g. to break it. */
  readonly wrap?: (stream: ListStream) => ListStream;
  readonly log?: Log;
}

/** The first list stream of a source, read into a spool. */
export async function aList(
  { sandbox, clock }: { sandbox: Sandbox; clock: ManualClock },
  {
    type = 'audit_events',
    settings = {},
    spool: given,
    company = 'c-1',
    wrap = (stream) => stream,
    log = noLog,
  }: ListChoices = {},
): Promise<ListUnderTest> {
  const definition = sourceOf(type);
  const parsed = settingsOf(definition, { page_limit: 10, ...settings });
  const upstream = upstreamAt(type === 'audit_events' ? 'unified' : 'services', sandbox);
  const streams = definition.streams(parsed, { name: 'src', upstream });
  const own = streams.find((stream) => (stream.company ?? company) === company);
  const reading = definition.list?.(parsed);
  if (own?.kind !== 'list' || reading === undefined) throw new Error(`${type} is no list source`);
  const stream = wrap(own);
  const spool = given ?? (await aSpool());
  const found: FindingRecord[] = [];
  const poller = () => {
    const { order, start, rewindEveryMs: patienceMs, lookbackMs } = reading;
    const reader = new ListReader({
      ...{ stream, spool, clock, log, order, start, patienceMs, lookbackMs },
      found: (record) => found.push(record),
    });
    return new ListPoller(reader, reading);
  };
  let current = poller();
  const never = new AbortController().signal;
  const records = async () =>
    (await heldIn(spool)).filter(({ kind }) => kind === 'audit' || kind === 'log');
  return {
    stream,
    spool,
    found,
    poll: (signal = never) => current.poll(signal),
    async readToTail() {
      let fresh = 0;
      for (let polls = 0; polls < 50; polls += 1) {
        const result = await current.poll(never);
        if (result.outcome !== 'done') throw result.cause;
        fresh += result.fresh;
        if (!result.more) return fresh;
      }
      throw new Error('the tail was not reached within 50 polls');
    },
    restart() {
      current = poller();
    },
    records,
    conditions: async () => conditionsOf(await heldIn(spool)),
    reported: async () => conditionsIn(await heldIn(spool)),
  };
}

/** Ids that the sandbox could have served on a list, oldest first. */
export function ledgerIds(sandbox: Sandbox, path = AUDIT): readonly string[] {
  return [...sandbox.ledger().list(path).ids()];
}

/** Records as texts, sorted, to compare what was held with what could have been served. */
export function ledgerTexts(sandbox: Sandbox, path: string): readonly string[] {
  return [...sandbox.ledger().list(path).records()].map(({ text }) => text).sort();
}

/** A collection under test. */
export interface CollectionUnderTest {
  readonly stream: CollectionStream;
  readonly spool: Spool;
  /** One generation. */
  poll(): Promise<PollResult>;
  /** The change records reported since the last call. */
  changes(): Promise<readonly ToldChange[]>;
  conditions(): Promise<readonly string[]>;
  /** What the poller said it found. */
  readonly found: readonly FindingRecord[];
  restart(): void;
}

const toldChange = z.looseObject({
  change: z.string(),
  entity_kind: z.string(),
  entity_id: z.string(),
  entity_version: z.number(),
  generation: z.number(),
  epoch: z.string(),
  parent_id: z.string().optional(),
  list: z.string().optional(),
  place: z.int().optional(),
  changed: z.array(z.string()).optional(),
  count: z.number().optional(),
});

/** A change record as a sink gets it. */
export type ToldChange = z.infer<typeof toldChange> & {
  readonly uid: string;
  readonly text: string;
};

/** Quick settings of comparison: nothing waits unless a test says so. */
export const quickly: CollectionReading = {
  confirmAfterMs: 0,
  settleMs: 0,
  removals: true,
  removalsAfter: 2,
  brake: { share: 0.3, count: 10 },
  baseline: 'summary',
  sweepMs: 24 * hourMs,
  ignore: ['updated_at'],
  unordered: [],
};

/** A collection read into a spool. */
export async function aCollection(
  clock: ManualClock,
  stream: CollectionStream,
  { reading = quickly, spool: given }: { reading?: CollectionReading; spool?: Spool } = {},
): Promise<CollectionUnderTest> {
  const spool = given ?? (await aSpool());
  const found: FindingRecord[] = [];
  const deps = { stream, spool, clock, log: noLog, reading };
  const poller = () => new CollectionPoller({ ...deps, found: (record) => found.push(record) });
  let current = poller();
  let reported = 0;
  return {
    stream,
    spool,
    found,
    poll: () => current.poll(new AbortController().signal),
    async changes() {
      const held = (await heldIn(spool)).filter(({ kind }) => kind === 'drift');
      const fresh = held.slice(reported);
      reported = held.length;
      return fresh.map(({ uid, text }) => ({ ...toldChange.parse(JSON.parse(text)), uid, text }));
    },
    conditions: async () => conditionsOf(await heldIn(spool)),
    restart() {
      current = poller();
    },
  };
}

/** What reads a collection that nothing is known of, without a spool that could be full. */
export function collectionReader(stream: CollectionStream) {
  const spool = { room: async () => undefined };
  const reader = new CollectionReader({ stream, spool, clock: manualClock(), log: noLog });
  return {
    stillThere: (key: string, signal: AbortSignal) => reader.stillThere(key, signal),
    async read(
      signal: AbortSignal,
    ): Promise<Answer<FullScan & { readonly entities: readonly Entity[] }>> {
      const taken = new Map<string, Entity>();
      const seen = new Set<string>();
      const known = {
        begin: () => seen.clear(),
        see: (key: string) => !seen.has(key) && seen.add(key) !== undefined,
        unsee: (key: string) => void seen.delete(key),
        isSeen: (key: string) => seen.has(key),
        has: () => false,
        isAsListed: () => false,
        isDenied: () => false,
        unnamed: () => new Set<string>(),
        unnamedAsListed: () => null,
        states: async () => new Map(),
      };
      const taker = {
        known,
        rulesOf: () => quickly,
        async take(entities: readonly Entity[]) {
          for (const entity of entities) taken.set(entity.key, entity);
        },
        deny: async () => undefined,
      };
      const round = { now: 0, sweepMs: hourMs, known: 0, isLasting: false };
      const reading = await reader.read(taker, round, signal);
      if (reading.outcome !== 'ok') return reading;
      const entities = [...taken.values()].filter(({ key }) => seen.has(key));
      return { ...reading, entities };
    },
  };
}

/** A firewall stream of the sandbox's company c-1. */
export function firewallStream(
  sandbox: Sandbox,
  resource: 'objects' | 'policies',
): CollectionStream {
  const definition = sourceOf('firewall');
  const upstream = upstreamAt('services', sandbox);
  const streams = definition.streams(settingsOf(definition), { name: 'src', upstream });
  const stream = streams.find(({ name }) => name === `src/c-1/${resource}`);
  if (stream?.kind !== 'collection') throw new Error(`there is no stream of ${resource}`);
  return stream;
}

/** How what is held differs from what could have been served; all empty when nothing does. */
export function differences(
  held: readonly (string | null)[],
  served: readonly string[],
): {
  readonly lost: readonly string[];
  readonly again: readonly string[];
  readonly invented: readonly string[];
} {
  const left = new Map<string, number>();
  for (const one of served) left.set(one, (left.get(one) ?? 0) + 1);
  const again: string[] = [];
  const invented: string[] = [];
  for (const one of held.map(String)) {
    const count = left.get(one);
    if (count === undefined) invented.push(one);
    else if (count === 0) again.push(one);
    else left.set(one, count - 1);
  }
  const lost = [...left].flatMap(([one, count]) => Array<string>(count).fill(one));
  const short = (texts: readonly string[]) => texts.map((text) => text.slice(0, 60));
  return { lost: short(lost), again: short(again), invented: short(invented) };
}

/** Nothing lost, nothing twice, nothing invented. */
export const none = { lost: [], again: [], invented: [] };
