// The pairs of a config: which streams are compared, and how their records are folded.

import { hash } from 'node:crypto';
import type { PairPlan, PairSide, Schedule, Stream, Succession } from '../contracts/index.ts';
import type { ObjectRules } from '../parents/index.ts';

import { foldedPath, parseCron } from '../tools/index.ts';
import type { ChangeRules } from './changes.ts';
import type { FoldRules } from './fold.ts';

/** The parts of a source that its pair needs. */
export interface PairedSource {
  readonly name: string;
  readonly streams: readonly Stream[];
  readonly succeeds?: Succession | undefined;
  readonly schedule?: Schedule | undefined;
  /** Its lists are read to the end of a past time instead of live. */
  readonly past?: unknown;
}

/** The compared paths in the records of one side. */
interface SidePaths {
  /** Path of the id that both sides have; null: there is none. */
  readonly id: string | null;
  /** Path of the id on the other side. */
  readonly otherId: string | null;
  readonly time: readonly string[];
}

/** How the records of one side are compared. */
interface SideRules {
  readonly paths: SidePaths;
  readonly rules: FoldRules;
  /** For a collection. */
  readonly changes: ChangeRules;
  /** For objects per parent: how their content is digested; null: the source reads no such objects. */
  readonly object: ObjectRules | null;
}

/** A pair of the config. */
export interface Pairing {
  readonly plan: PairPlan;
  readonly streams: Readonly<Record<PairSide, readonly Stream[]>>;
  readonly sides: Readonly<Record<PairSide, SideRules>>;
}

/** The side of a pair that a stream belongs to. */
export interface SideOfPair {
  readonly pairing: Pairing;
  readonly side: PairSide;
}

/** The pairs of a config. */
export function pairingsOf(sources: readonly PairedSource[]): readonly Pairing[] {
  const live = sources.filter(({ past }) => past === undefined);
  return live.flatMap((source) => {
    const old = live.find(({ name }) => name === source.succeeds?.source);
    return source.succeeds === undefined || old === undefined
      ? []
      : [pairingOf(old, source, source.succeeds)];
  });
}

/** The pair and side of a source; null: none. */
export function sideIn(pairings: readonly Pairing[], source: string): SideOfPair | null {
  for (const pairing of pairings) {
    const { successor, predecessor } = pairing.plan;
    if (successor === source) return { pairing, side: 'new' };
    if (predecessor === source) return { pairing, side: 'old' };
  }
  return null;
}

function pairingOf(old: PairedSource, source: PairedSource, succeeds: Succession): Pairing {
  const [before, after] = [recordsOf(old), recordsOf(source)];
  const oldId = before.id;
  const newId = oldId === null ? null : (succeeds.id ?? after.id);
  const rename = new Map(
    Object.entries(succeeds.fields).map(([from, to]) => [foldedPath(from), foldedPath(to)]),
  );
  if (oldId !== null && newId !== null) rename.set(foldedPath(oldId), foldedPath(newId));
  const ignore = succeeds.ignore.map(foldedPath);
  const time = [...before.time, ...after.time].map(foldedPath);
  const companies = new Set(source.streams.map(({ company }) => company));
  const isKnown = newId !== null;
  const isOfKinds = Math.max(...[old, source].map((side) => kindsOf(side).size)) > 1;
  // Identities of the new side use its own id.
  const knownBy = newId === after.id ? newId : null;
  const rules = {
    old: { rename, ignore, time },
    new: { rename: new Map<string, string>(), ignore, time },
  };
  return {
    streams: { old: old.streams, new: source.streams },
    plan: {
      ...{ successor: source.name, predecessor: old.name },
      ...{ patienceMs: succeeds.patienceMs, overlapMs: succeeds.overlapMs },
      everyMs: { old: everyMsOf(old), new: everyMsOf(source) },
      streams: { old: namesOf(old), new: namesOf(source) },
      companies: companiesOf([...old.streams, ...source.streams]),
      rules: hash('sha256', JSON.stringify([oldId, newId, [...rename], ignore, time]), 'base64url'),
      needsContent: companies.size > 1 || companies.has(undefined),
    },
    sides: {
      old: {
        paths: { id: isKnown ? oldId : null, otherId: knownBy, time: before.time },
        rules: rules.old,
        changes: { rules: rules.old, entityId: null, isOfKinds },
        object: objectOf(old),
      },
      new: {
        paths: { id: newId, otherId: oldId, time: after.time },
        rules: rules.new,
        changes: { rules: rules.new, entityId: succeeds.id ?? null, isOfKinds },
        object: objectOf(source),
      },
    },
  };
}

/** Time between two polls, milliseconds; for a cron schedule, between its next two dates. */
function everyMsOf({ schedule }: PairedSource): number {
  if (schedule === undefined) return 0;
  if ('everyMs' in schedule) return schedule.everyMs;
  const calendar = parseCron(schedule.cron, schedule.timezone);
  const next = calendar.next(Date.now());
  const after = next === null ? null : calendar.next(next);
  return next === null || after === null ? 0 : after - next;
}

function objectOf({ streams: [stream] }: PairedSource): SideRules['object'] {
  return stream?.kind === 'parents' && stream.object !== undefined ? stream.listOf('1') : null;
}

/** The entity kinds of a source's collections. */
function kindsOf({ streams }: PairedSource): ReadonlySet<string> {
  return new Set(streams.flatMap((one) => (one.kind === 'collection' ? [one.entity.kind] : [])));
}

function companiesOf(streams: readonly Stream[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    streams.flatMap(({ name, company }) => (company === undefined ? [] : [[name, company]])),
  );
}

function namesOf({ streams }: PairedSource): readonly string[] {
  return streams.map(({ name }) => name);
}

/** The paths of id and time in a source's records. */
function recordsOf({ streams }: PairedSource): Pick<SideRules['paths'], 'id' | 'time'> {
  for (const stream of streams) {
    if (stream.kind === 'list') return stream;
    // Every parent's list has the same declaration.
    const list = stream.kind === 'parents' ? stream.listOf('1') : null;
    if (list !== null) return list;
  }
  return { id: null, time: [] };
}
