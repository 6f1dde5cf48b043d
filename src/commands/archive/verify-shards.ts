// Several logs under one location, one for each shard: checks them against each other. A log that was deleted as a
// whole shows no break itself, and a log at another log's location is whole. Invariant: a log that another log has seen
// still exists and has that tree; a log that grows during the verification is no break.

import type { Break, Report, ReportedGap, SiblingSeen } from '../../archive/audit.ts';
import {
  manifestPath,
  ProvenReader,
  readSmall,
  rootAt,
  shardOfLog,
  type Verifier,
} from '../../archive/index.ts';
import { ExportError } from '../../contracts/index.ts';
import type { CommandDeps } from '../shared/command.ts';
import { openArchive, shardAt } from './given.ts';

/** Reports by location; null: it cannot be read. */
type Judged = ReadonlyMap<string, Report | null>;

interface ShardDeps {
  readonly env: CommandDeps['env'];
  /** Keys that the reader trusts. */
  readonly trusted: readonly Verifier[];
  /** Verifies a log. */
  judge(location: string): Promise<Report | null>;
}

/** The reports of the logs at a location, with the breaks between logs of shards. */
export async function withShards(
  location: string,
  judged: Judged,
  deps: ShardDeps,
): Promise<Judged> {
  const base = location.replace(/\/+$/, '');
  const placeOf = (shard: number) => `${base}/${shard}`;
  // The location that was given itself is compared with no other.
  const places = [...judged.keys()].filter((one) => one !== location);
  if (places.length === 0) return alone(location, judged, deps);
  const seen = places.flatMap((by) =>
    (judged.get(by)?.siblings ?? []).map((one) => ({ ...one, by, place: placeOf(one.shard) })),
  );
  const all = new Map(judged);
  for (const { place, size } of seen) {
    // It has grown since, or was put back.
    if ((all.get(place)?.size ?? size) < size) all.set(place, await deps.judge(place));
  }
  for (const one of seen) {
    const found = await siblingBreak(one, all, deps);
    const report = found === null ? null : all.get(found.place);
    if (found === null || report == null) continue;
    all.set(found.place, { ...report, breaks: [...report.breaks, found.flaw] });
  }
  for (const place of places) {
    const report = all.get(place);
    const flaw = report == null ? null : unshardedBreak(place, report, deps);
    if (report != null && flaw !== null)
      all.set(place, { ...report, breaks: [...report.breaks, flaw] });
  }
  for (const place of oldLogs(places, all, deps)) {
    const report = all.get(place);
    const shard = `shard ${shardAt(place)}`;
    const what = `an older version wrote this log under the key's name alone: until ${shard} writes to it, nothing says that it is the log of ${shard}`;
    const [first] = report?.streams.map((one) => one.first).toSorted() ?? [];
    const gap = { index: 0, stream: shard, seq: 0, at: first ?? '', what, isOpen: true };
    if (report != null) all.set(place, { ...report, gaps: [...report.gaps, gap] });
  }
  const named = new Set(seen.map(({ place }) => place));
  for (const { by, ...gap } of gapsOf(places, all)) {
    const report = all.get(by);
    const place = placeOf(gap.shard);
    if (report == null || named.has(place) || all.has(place)) continue;
    const what = `shard ${gap.shard} has work by this entry, and ${place} has no log: it has archived nothing yet, or its log is gone`;
    const { index, at } = gap;
    const made: ReportedGap = {
      index,
      at,
      stream: `shard ${gap.shard}`,
      seq: 0,
      what,
      isOpen: true,
    };
    all.set(by, { ...report, gaps: [...report.gaps, made] });
  }
  return all;
}

/** An archive that no shard's process writes, at the location of a shard's log; null: it is none. */
function unshardedBreak(
  place: string,
  { origin, unsharded }: Report,
  { trusted }: Pick<ShardDeps, 'trusted'>,
): Break | null {
  const shard = shardAt(place);
  if (unsharded === null || shard === undefined || isShards(origin, shard, trusted)) return null;
  const what = `the log is ${origin}, and by its newest start no shard writes it: another archive of this key is at the location of shard ${shard}. Verify an archive without shards by its own location`;
  return { index: unsharded.index, stream: null, seq: null, object: manifestPath, what };
}

/** Whether a log has the name of a shard's, of one of the keys. */
function isShards(origin: string, shard: number, trusted: readonly Verifier[]): boolean {
  // A key may be given under the name of the log itself.
  return origin.endsWith(`/${shard}`) || trusted.some((key) => shardOfLog(key, origin) !== null);
}

/** Logs of older versions do not record their shards. Beside logs that do, each is a gap in its own report. */
function oldLogs(
  places: readonly string[],
  all: Judged,
  { trusted }: ShardDeps,
): readonly string[] {
  if (![...all.values()].some((report) => report?.work != null)) return [];
  return places.filter((place) => {
    const report = all.get(place);
    if (report == null || report.work !== null || report.unsharded !== null) return false;
    return report.size > 0 && !isShards(report.origin, shardAt(place) ?? -1, trusted);
  });
}

/** The report on one log, with the others that it names. */
function alone(location: string, judged: Judged, deps: ShardDeps): Judged {
  const report = judged.get(location);
  if (report == null) return judged;
  if (unshardedBreak(location, report, deps) !== null) {
    const remark = `by its newest start no shard writes this log: if ${location} is the location of a shard, another archive is there`;
    return new Map([[location, { ...report, remarks: [...report.remarks, remark] }]]);
  }
  if (report.siblings.length === 0) return judged;
  const shards = report.siblings.map(({ shard }) => shard).join(', ');
  const remark = `its entries name the logs of other shards (${shards}): verify the location above them, to prove that these are there`;
  return new Map([[location, { ...report, remarks: [...report.remarks, remark] }]]);
}

/** The break that an entry of one log proves in another, and the report it belongs to; null: none. */
async function siblingBreak(
  one: SiblingSeen & { readonly by: string; readonly place: string },
  all: Judged,
  deps: ShardDeps,
): Promise<{ readonly place: string; readonly flaw: Break } | null> {
  const { index, shard, size, by, place } = one;
  const flaw = (what: string, at: number | null = null): Break => ({
    ...{ index: at, stream: null, seq: null, object: null, what },
  });
  if (!all.has(place)) {
    const what = `the log of shard ${shard} had ${size} entries by then, and it is gone: ${place} has no archive`;
    return { place: by, flaw: flaw(what, index) };
  }
  const report = all.get(place);
  if (report == null) return null;
  const says = `entry ${index} of the log in ${by} says that this one had ${size} entries`;
  if (report.size < size) {
    const what = `${says}, and it has ${report.size}: its end is missing, or an older state was put back`;
    return { place, flaw: flaw(what) };
  }
  if (await hasTree(report, one, deps)) return null;
  return { place, flaw: flaw(`${says} under another root: it was rewritten`) };
}

/** Whether a log had that tree. Its own report covers damaged tiles. */
async function hasTree(
  report: Report,
  { place, size, root }: SiblingSeen & { readonly place: string },
  { env }: ShardDeps,
): Promise<boolean> {
  const { store } = await openArchive(place, env);
  try {
    const head = { size: report.size, root: Buffer.from(report.root, 'base64') };
    const { hashes } = new ProvenReader(store, head);
    return Buffer.from(await rootAt(size, hashes)).toString('hex') === root;
  } catch (error) {
    if (error instanceof SyntaxError) return report.breaks.length > 0;
    throw error;
  } finally {
    store.close();
  }
}

/** The shards with work according to the newest start of all logs, with that log and entry. */
function gapsOf(places: readonly string[], judged: Judged) {
  const works = places.flatMap((by) => {
    const work = judged.get(by)?.work;
    return work == null ? [] : [{ by, ...work }];
  });
  const [newest] = works.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
  if (newest === undefined) return [];
  const { by, index, at, shards } = newest;
  return shards.map((shard) => ({ by, index, at, shard }));
}

/**
 * Locations whose archive.json equals that of an earlier location, which the map names. Each log has its own salt
 * there, so one of the two is a copy at another log's location. Names of logs cannot show this if they are alike.
 */
export async function twinsAmong(
  locations: readonly string[],
  env: CommandDeps['env'],
): Promise<ReadonlyMap<string, string>> {
  const twins = new Map<string, string>();
  if (locations.length === 1) return twins;
  const known = new Map<string, string>();
  for (const one of locations) {
    const { store } = await openArchive(one, env);
    try {
      const found = await readSmall(store, manifestPath);
      // Two that have none are not the same log.
      if (found === null) continue;
      const text = Buffer.from(found.body).toString('base64');
      const other = known.get(text);
      if (other === undefined) known.set(text, one);
      else twins.set(one, other);
    } catch (error) {
      // The verdict on this location has the reason.
      if (!(error instanceof ExportError)) throw error;
    } finally {
      store.close();
    }
  }
  return twins;
}

/** The report with the break that another location has the same log. */
export function withTwin(report: Report, other: string | undefined): Report {
  if (other === undefined) return report;
  const what = `the log of ${other} is here a second time, at the position of another`;
  const twin = { index: null, stream: null, seq: null, object: manifestPath, what };
  return { ...report, breaks: [twin, ...report.breaks] };
}

/** Locations of shards below the highest one that have no archive. Used if no entry lists the shards with work. */
export function missingShards(location: string, judged: Judged): readonly string[] {
  const locations = [...judged.keys()];
  if ([...judged.values()].some((report) => report?.work != null)) return [];
  const last = locations.at(-1) ?? location;
  const highest = last === location ? 0 : (shardAt(last) ?? 0);
  const base = last.replace(/\d+$/, '');
  return Array.from({ length: highest }, (_, i) => `${base}${i}`).filter(
    (place) => !locations.includes(place),
  );
}
