// Compares the archived records of a stream's list, or of its lists, one for each parent, with those that upstream
// serves now: records that upstream has dropped since, that never arrived, and that have changed. The result is a
// condition of the stream, which goes to every sink, and which the archive records. Invariants: the reading runs beside
// the live streams and below them, as a backfill does; a record is missing only if it has had time to arrive.

import { createHash } from 'node:crypto';
import {
  type ArchiveComparison,
  newestPages,
  type ObjectStore,
  type ProvenReader,
  signedReader,
} from '../archive/index.ts';
import type { ListReading } from '../contracts/config.ts';
import {
  type ConditionRecord,
  ExportError,
  type ListStream,
  type ParentsStream,
} from '../contracts/index.ts';
import {
  type KnownRecord,
  knownRecords,
  type PlannedSource,
  servedRecords,
} from '../fetch/engine.ts';
import { conditionRecord, ownPage, pageContext, passingMsMax } from '../fetch/index.ts';
import { timeText } from '../tools/index.ts';
import type { BackfillReadingDeps } from './backfill.ts';
import { paceFor } from './backfill-pace.ts';

/** Records of a stream that are compared, the newest: so many are in memory. */
const recordsMax = 100_000;
/** Of a stream's parents, those with the newest records: so many requests at least. */
const parentsMax = 1_000;
/** So many that differ are named. */
const namedMax = 20;

/** By their uids. */
type Records = ReadonlyMap<string, KnownRecord>;

/** The scope of a comparison, and its finished streams. */
export interface ComparisonRun {
  /** The archive's sink. */
  readonly sink: string;
  readonly store: ObjectStore;
  readonly progress: { isDone(stream: string): boolean; note(stream: string): Promise<void> };
}

/** The streams that can be compared: every reading of any other one compares the whole. */
export function listsIn(sources: readonly PlannedSource[]): readonly Omit<Compared, 'store'>[] {
  return sources.flatMap(({ list, parents, streams }) =>
    streams.flatMap((stream) => {
      const isOfLists =
        stream.kind === 'list' || (stream.kind === 'parents' && stream.object === undefined);
      if (!isOfLists || list === null) return [];
      // In rotation a parent's list is read so seldom.
      return [{ list, stream, lateMs: Math.max(list.lookbackMs, parents?.sweepMs ?? 0) }];
    }),
  );
}

/**
 * Compares the lists of all sources with an archive, one after the other. Where one fails the others
 * are compared all the same, and then that is thrown.
 */
export async function compareArchive(
  { sink, store, progress }: ComparisonRun,
  deps: BackfillReadingDeps,
  signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  for (const one of listsIn(deps.made().plan.sources)) {
    const { name } = one.stream;
    if (progress.isDone(name)) continue;
    try {
      await compareStream(sink, { ...one, store }, deps, signal);
      await progress.note(name);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function compareStream(
  sink: string,
  { list, stream, lateMs, store }: Compared,
  deps: BackfillReadingDeps,
  signal: AbortSignal,
): Promise<void> {
  const { findings, spool, tools } = deps;
  const mayBeMissing = tools.clock.now() - lateMs;
  const read = async () => signedReader(store, (await spool.progress(sink)).mark);
  const archived = await archivedLists(await read(), stream);
  const times = archived.flatMap(({ records }) => timesOf(records));
  // Where nothing has a time there is no range to compare.
  if (times.length === 0) return;
  const found: Differences[] = [];
  for await (const { records, served } of servedLists(archived, list, deps, signal)) {
    found.push(differences(records, served, mayBeMissing));
  }
  // Records read in the meantime are in the archive by now.
  const isBehind = found.some(({ missing }) => missing.length > 0);
  const later = isBehind ? await archivedLists(await read(), stream) : [];
  const isMissing = ({ uid }: KnownRecord) => !later.some(({ records }) => records.has(uid));
  const dropped = found.flatMap((one) => one.dropped);
  const missing = found.flatMap((one) => one.missing.filter(isMissing));
  const changed = found.flatMap((one) => one.changed);
  const comparison: ArchiveComparison = {
    archive: sink,
    ...{ from: timeText(least(times)), to: timeText(most(times)) },
    upstream: found.reduce((sum, { upstream }) => sum + upstream, 0),
    archived: times.length,
    ...{ dropped: dropped.length, missing: missing.length, changed: changed.length },
    ...{ dropped_uids: named(dropped), missing_uids: named(missing) },
    changed_uids: named(changed),
  };
  const record = recordOf(comparison, { sink, stream, now: tools.clock.now() });
  await spool.append({ stream: stream.name, pages: [pageOf(record, sink, stream)] });
  if (record.condition === 'archive.differs') findings.add(record);
  tools.log.info('archive_compared', 'archive compared with upstream', {
    ...{ sink, stream: stream.name, from: comparison.from, to: comparison.to },
    ...{ upstream: comparison.upstream, archived: comparison.archived },
    ...{ dropped: comparison.dropped, missing: comparison.missing, changed: comparison.changed },
  });
}

type ComparedStream = ListStream | ParentsStream;

interface Compared {
  readonly list: ListReading;
  readonly stream: ComparedStream;
  /** A record may come so much later than it happened. */
  readonly lateMs: number;
  readonly store: ObjectStore;
}

/** A list, and its archived records. */
interface ArchivedList {
  readonly list: ListStream;
  readonly records: Records;
}

/** The newest records by their lists; those of a parent that no path can name are left out. */
async function archivedLists(
  reader: ProvenReader | null,
  stream: ComparedStream,
): Promise<readonly ArchivedList[]> {
  const lists = new Map<string, { list: ListStream; records: Map<string, KnownRecord> }>();
  if (reader === null) return [];
  const pages = newestPages(reader, (name) => name === stream.name);
  let count = 0;
  for await (const page of pages) {
    const { kind, parent = '' } = page.context;
    if (kind !== stream.records) continue;
    const list = lists.get(parent)?.list ?? listOf(stream, parent);
    if (list === null || (!lists.has(parent) && lists.size >= parentsMax)) continue;
    const known = lists.get(parent) ?? { list, records: new Map<string, KnownRecord>() };
    lists.set(parent, known);
    for (const record of knownRecords(page, list)) known.records.set(record.uid, record);
    count += page.count;
    if (count >= recordsMax) break;
  }
  return [...lists.values()];
}

function listOf(stream: ComparedStream, parent: string): ListStream | null {
  return stream.kind === 'list' ? stream : stream.listOf(parent);
}

/**
 * The records that upstream serves now, over the time span of each list's records. A parent's list that is gone now and
 * a little later has no records, as long as the list of another parent exists: else the path may be wrong.
 */
async function* servedLists(
  archived: readonly ArchivedList[],
  reading: ListReading,
  deps: BackfillReadingDeps,
  signal: AbortSignal,
): AsyncGenerator<{ readonly records: Records; readonly served: Records }> {
  const timed = archived.filter(({ records }) => timesOf(records).length > 0);
  const refused: { readonly one: ArchivedList; readonly error: ExportError }[] = [];
  for (const one of timed) {
    const served = await servedOf(one, reading, deps, signal);
    if (served instanceof ExportError) refused.push({ one, error: served });
    else yield { records: one.records, served };
  }
  const [first] = refused;
  if (first === undefined) return;
  if (refused.length === timed.length) throw first.error;
  await deps.tools.clock.sleep(passingMsMax, signal);
  for (const { one } of refused) {
    const served = await servedOf(one, reading, deps, signal);
    yield { records: one.records, served: served instanceof ExportError ? new Map() : served };
  }
}

function timesOf(records: Records): readonly number[] {
  return [...records.values()].flatMap(({ at }) => at ?? []);
}

function least(times: readonly number[]): number {
  return times.reduce((a, b) => Math.min(a, b));
}

function most(times: readonly number[]): number {
  return times.reduce((a, b) => Math.max(a, b));
}

/** An error: the list is not there, or not any more. */
async function servedOf(
  { list, records }: ArchivedList,
  reading: ListReading,
  deps: BackfillReadingDeps,
  signal: AbortSignal,
): Promise<Records | ExportError> {
  const times = timesOf(records);
  const { random, ...tools } = deps.tools;
  const { clock, http } = tools;
  const served = await servedRecords(
    {
      ...{ stream: list, clock, spool: deps.spool, inFlight: http.inFlight, list: reading },
      log: tools.log.with({ stream: list.name }),
      span: { fromMs: least(times), toMs: most(times) + 1 },
      pace: paceFor(list, { ...deps, ...deps.made(), clock, random }),
    },
    signal,
  );
  if (served instanceof ExportError) return served;
  return new Map(served.flatMap((one) => (one.at === null ? [] : [[one.uid, one] as const])));
}

/** The differences of a list, and the number of records that upstream serves. */
interface Differences {
  readonly upstream: number;
  readonly dropped: readonly KnownRecord[];
  readonly missing: readonly KnownRecord[];
  readonly changed: readonly KnownRecord[];
}

/** `mayBeMissing`: epoch milliseconds; later records may still arrive. */
function differences(archived: Records, served: Records, mayBeMissing: number): Differences {
  const archivedIds = idsOf(archived);
  const servedIds = idsOf(served);
  const isOf = (ids: ReadonlySet<string>, { id }: KnownRecord) => id !== null && ids.has(id);
  const news = [...served.values()].filter(({ uid }) => !archived.has(uid));
  return {
    upstream: served.size,
    // An older version of a record that is served is not dropped.
    dropped: [...archived.values()].filter(
      (one) => one.at !== null && !served.has(one.uid) && !isOf(servedIds, one),
    ),
    changed: news.filter((one) => isOf(archivedIds, one)),
    missing: news.filter((one) => !isOf(archivedIds, one) && (one.at ?? 0) < mayBeMissing),
  };
}

function idsOf(records: Records): ReadonlySet<string> {
  return new Set(Array.from(records.values(), ({ id }) => id).filter((id) => id !== null));
}

function named(records: readonly KnownRecord[]): string[] {
  return records.slice(0, namedMax).map(({ uid }) => uid);
}

type ComparisonRecord = ConditionRecord & {
  readonly condition: 'archive.compared' | 'archive.differs';
};

function recordOf(
  comparison: ArchiveComparison,
  {
    sink,
    stream,
    now,
  }: { readonly sink: string; readonly stream: ComparedStream; readonly now: number },
): ComparisonRecord {
  const { dropped, missing, changed, upstream, archived } = comparison;
  const isSame = dropped + missing + changed === 0;
  const counts = `upstream serves ${upstream} records and the archive ${sink} has ${archived}`;
  const message = isSame
    ? `${counts}: nothing was dropped, is missing or was changed`
    : `${counts}: upstream has dropped ${dropped}, shows ${changed} changed, and ${missing} never came`;
  const condition = isSame ? ('archive.compared' as const) : ('archive.differs' as const);
  return conditionRecord(stream, { condition, message, details: comparison }, now);
}

function pageOf(record: ComparisonRecord, sink: string, stream: ComparedStream) {
  const identity = JSON.stringify([record.condition, sink, stream.name, record.observed_at]);
  const uid = createHash('sha256').update(identity).digest();
  const context = pageContext(stream, 'condition', Date.parse(record.observed_at));
  return ownPage(context, [record], [uid]);
}
