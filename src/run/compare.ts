// Compares what an archive has of a list with what upstream serves of it now: what upstream has
// dropped since, what never came, what it shows changed. The result is told as a condition of the
// stream, like everything else to every sink, and the archive enters it. What must stay true: it is
// read beside the live streams and never instead, below them as a backfill is; and only what has had
// time to come is missing.

import { createHash } from 'node:crypto';
import type { Comparison } from '../archive/comparison.ts';
import { newestPages } from '../archive/newest-pages.ts';
import { ArchiveReader } from '../archive/reader.ts';
import type { ConditionRecord } from '../contracts/change.ts';
import type { ListStream } from '../contracts/source.ts';
import { conditionRecord, ownPage, pageContext } from '../fetch/own-pages.ts';
import type { PlannedSource } from '../fetch/polling.ts';
import { type KnownRecord, recordsOf, servedRecords } from '../fetch/served.ts';
import type { ObjectStore } from '../objects/store.ts';
import { timeText } from '../tools/time-text.ts';
import type { ReadingMeans } from './backfill.ts';
import { paceFor } from './backfill-pace.ts';

/** Records of a stream that are compared, the newest: so many are in memory. */
const recordsMax = 100_000;
/** So many that differ are named. */
const namedMax = 20;

type Records = ReadonlyMap<string, KnownRecord>;

/** What is compared, and which of its streams are done with. */
export interface Comparing {
  /** The archive's sink. */
  readonly sink: string;
  readonly store: ObjectStore;
  readonly progress: { isDone(stream: string): boolean; note(stream: string): Promise<void> };
}

/** The streams that can be compared. */
export function listsIn(sources: readonly PlannedSource[]) {
  return sources.flatMap((source) =>
    source.streams.flatMap((stream) =>
      stream.kind === 'list' && source.list !== null ? [{ source, stream }] : [],
    ),
  );
}

/**
 * Compares the lists of all sources with an archive, one after the other. Where one fails the others
 * are compared all the same, and then that is thrown.
 */
export async function compareArchive(
  { sink, store, progress }: Comparing,
  means: ReadingMeans,
  signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  for (const { source, stream } of listsIn(means.made().plan.sources)) {
    if (progress.isDone(stream.name)) continue;
    try {
      await compareStream(sink, { source, stream, store }, means, signal);
      await progress.note(stream.name);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function compareStream(
  sink: string,
  { source, stream, store }: Compared,
  means: ReadingMeans,
  signal: AbortSignal,
): Promise<void> {
  const { findings, spool, tools } = means;
  const begunAt = tools.clock.now();
  const archived = await archivedRecords(store, stream);
  const times = [...archived.values()].flatMap(({ at }) => at ?? []);
  // Where nothing has a time there is no range to compare.
  if (times.length === 0) return;
  const [from, to] = [
    times.reduce((a, b) => Math.min(a, b)),
    times.reduce((a, b) => Math.max(a, b)),
  ];
  const served = await servedOf({ source, stream, from, to }, means, signal);
  const mayBeMissing = begunAt - (source.list?.lookbackMs ?? 0);
  const found = differences(archived, served, mayBeMissing);
  // What came meanwhile is in the archive by now.
  const later = found.missing.length === 0 ? archived : await archivedRecords(store, stream);
  const isMissing = ({ uid }: KnownRecord) => !later.has(uid);
  const missing = found.missing.filter(isMissing);
  const timed = [...archived.values()].filter(({ at }) => at !== null);
  const comparison: Comparison = {
    archive: sink,
    ...{ from: timeText(from), to: timeText(to) },
    ...{ upstream: served.size, archived: timed.length },
    ...{ dropped: found.dropped.length, missing: missing.length, changed: found.changed.length },
    ...{ dropped_uids: named(found.dropped), missing_uids: named(missing) },
    changed_uids: named(found.changed),
  };
  const record = recordOf(comparison, { sink, stream, now: tools.clock.now() });
  await spool.append({ stream: stream.name, pages: [pageOf(record, sink, stream)] });
  if (record.condition === 'archive.differs') findings.add(record);
  tools.log.info('the archive was compared with what upstream serves', {
    ...{ sink, stream: stream.name, from: comparison.from, to: comparison.to },
    ...{ upstream: comparison.upstream, archived: comparison.archived },
    ...{ dropped: comparison.dropped, missing: comparison.missing, changed: comparison.changed },
  });
}

interface Compared {
  readonly source: PlannedSource;
  readonly stream: ListStream;
  readonly store: ObjectStore;
}

async function archivedRecords(store: ObjectStore, stream: ListStream): Promise<Records> {
  const records = new Map<string, KnownRecord>();
  const pages = newestPages(new ArchiveReader(store), (name) => name === stream.name);
  for await (const page of pages) {
    if (page.context.kind !== stream.records) continue;
    for (const record of recordsOf(page, stream)) records.set(record.uid, record);
    if (records.size >= recordsMax) break;
  }
  return records;
}

async function servedOf(
  { source, stream, from, to }: Omit<Compared, 'store'> & { from: number; to: number },
  means: ReadingMeans,
  signal: AbortSignal,
): Promise<Records> {
  const { random, ...tools } = means.tools;
  const { clock, http } = tools;
  const served = await servedRecords(
    {
      ...{ stream, clock, spool: means.spool, inFlight: http.inFlight },
      list: source.list ?? { order: 'auto', lookbackMs: 0 },
      log: tools.log.with({ stream: stream.name }),
      span: { fromMs: from, toMs: to + 1 },
      pace: paceFor(stream, { ...means, ...means.made(), clock, random }),
    },
    signal,
  );
  return new Map(served.flatMap((one) => (one.at === null ? [] : [[one.uid, one] as const])));
}

/** `mayBeMissing`: what happened since then may come yet, epoch milliseconds. */
function differences(archived: Records, served: Records, mayBeMissing: number) {
  const archivedIds = idsOf(archived);
  const servedIds = idsOf(served);
  const isOf = (ids: ReadonlySet<string>, { id }: KnownRecord) => id !== null && ids.has(id);
  const news = [...served.values()].filter(({ uid }) => !archived.has(uid));
  return {
    // An older version of what is served is not gone.
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

type Told = ConditionRecord & { readonly condition: 'archive.compared' | 'archive.differs' };

function recordOf(
  comparison: Comparison,
  {
    sink,
    stream,
    now,
  }: { readonly sink: string; readonly stream: ListStream; readonly now: number },
): Told {
  const { dropped, missing, changed, upstream, archived } = comparison;
  const isSame = dropped + missing + changed === 0;
  const counts = `upstream serves ${upstream} records and the archive ${sink} has ${archived}`;
  const message = isSame
    ? `${counts}: nothing was dropped, is missing or was changed`
    : `${counts}: upstream has dropped ${dropped}, shows ${changed} changed, and ${missing} never came`;
  const condition = isSame ? ('archive.compared' as const) : ('archive.differs' as const);
  return conditionRecord(stream, { condition, message, details: comparison }, now);
}

function pageOf(record: Told, sink: string, stream: ListStream) {
  const identity = JSON.stringify([record.condition, sink, stream.name, record.observed_at]);
  const uid = createHash('sha256').update(identity).digest();
  const context = pageContext(stream, 'condition', Date.parse(record.observed_at));
  return ownPage(context, [record], [uid]);
}
