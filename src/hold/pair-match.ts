// Finds the counterpart of a record on the other side. Invariants: no guessing: two records are the
// same only if their keys are equal and neither company nor time contradicts it; each record
// matches at most one.

import type { PairRecord, PairSide } from '../contracts/index.ts';
import type { Row } from './database.ts';

/** Folded fields of a record: by path, a type code and a digest. */
export type FoldedFields = Readonly<Record<string, string>>;

/** Rules for candidates. */
export interface MatchRules {
  /** If only one side names the company, the content must match too. */
  readonly needsContent: boolean;
  /** How far the new side's times are ahead of the old side's, milliseconds; null: unknown yet. */
  readonly aheadMs: () => number | null;
  /** For collections: changes stored before this time are past if a later change followed. */
  readonly pastBefore: number;
}

/** The fields that identify a record. */
type Compared = Pick<PairRecord, 'company' | 'happenedAt' | 'fields' | 'id' | 'as'>;

/** Two records with the same id and times further apart than this are different records. */
const apartMsMax = 5 * 60_000;
/** The limit while the clock difference is unknown. */
const apartMsUnknown = 24 * 3_600_000;

/** The candidates among the other side's records with the same key. */
export interface PairCandidates {
  /** The row with equal content; null: none. */
  readonly same: Row | null;
  /**
   * Rows that match only if no equal one appears, in the order in which they were shown; none that
   * is already matched to another record.
   */
  readonly others: readonly Row[];
  /** A row has the same id, but its time is too far apart. */
  readonly isApart: boolean;
  /** The new side's time minus the old side's, if only one row can be the record; null: unknown. */
  readonly difference: number | null;
}

/** Finds the unmatched rows of the other side that may be this record. */
export function findCandidates(
  record: Compared,
  side: PairSide,
  { rows, rules }: { readonly rows: readonly Row[]; readonly rules: MatchRules },
): PairCandidates {
  if (rows.length === 0) return { same: null, others: [], isApart: false, difference: null };
  const own = fieldsOf(record.fields);
  if (record.as === 'change') return findChange(record, own, { rows, rules });
  const near = rows.filter(
    (row) =>
      !isOtherCompany(row, record) &&
      (agree(own, fieldsOf(row.fields)) || !mustAgree(row, record, rules)),
  );
  const difference = differenceTo(near, record, side);
  const isFar = (row: Row) => isTooFar(row, record, side, rules);
  const same = near.find((row) => !isFar(row) && agree(own, fieldsOf(row.fields))) ?? null;
  if (same !== null) return { same, others: [], isApart: false, difference };
  const others = near.filter((row) => !isFar(row) && typeof row.counterpart !== 'number');
  return { same, others, isApart: others.length === 0 && near.some(isFar), difference };
}

/**
 * The latest change to the same values. A change is past if another change of the same fields
 * followed and patience is over: if the value returns then, that is a further change.
 */
function findChange(
  record: Compared,
  own: FoldedFields,
  { rows, rules }: { readonly rows: readonly Row[]; readonly rules: MatchRules },
): PairCandidates {
  const isEmpty = Object.keys(own).length === 0;
  for (const row of rows.toReversed()) {
    if (isOtherCompany(row, record)) continue;
    const fields = fieldsOf(row.fields);
    if (isEmpty || agree(own, fields))
      return { same: row, others: [], isApart: false, difference: null };
    const isSettled = row.state === 0 && Number(row.at) < rules.pastBefore;
    if (isSettled && Object.keys(own).some((path) => fields[path] !== undefined)) break;
  }
  return { same: null, others: [], isApart: false, difference: null };
}

/** True if all common fields are equal, and there is at least one. */
function agree(one: FoldedFields, other: FoldedFields): boolean {
  let both = 0;
  for (const [path, value] of Object.entries(one)) {
    const there = other[path];
    if (there === undefined) continue;
    if (!isSame(value, there)) return false;
    both += 1;
  }
  return both > 0;
}

/** True for equal values, whatever their types. */
export function isSame(one: string, other: string): boolean {
  return one.slice(1) === other.slice(1);
}

/**
 * The last parsed texts: a matching record's fields are used twice, when found and when counted.
 */
const readLast: { readonly text: string; readonly fields: FoldedFields }[] = [];
const readLastMax = 4;

/** Parses stored fields. */
export function fieldsOf(text: unknown): FoldedFields {
  if (typeof text !== 'string') return {};
  const known = readLast.find((one) => one.text === text);
  if (known !== undefined) return known.fields;
  const fields = JSON.parse(text) as FoldedFields;
  if (readLast.length >= readLastMax) readLast.shift();
  readLast.push({ text, fields });
  return fields;
}

/** True if both name a company and the names differ. */
export function isOtherCompany({ company }: Row, record: Pick<Compared, 'company'>): boolean {
  return typeof company === 'string' && record.company !== null && company !== record.company;
}

function mustAgree({ company }: Row, record: Compared, { needsContent }: MatchRules): boolean {
  if (record.id === null) return true;
  return needsContent && (typeof company === 'string') !== (record.company !== null);
}

function isTooFar(
  { happened }: Row,
  record: Compared,
  side: PairSide,
  { aheadMs }: MatchRules,
): boolean {
  const difference = differenceOf({ happened, record, side });
  if (difference === null || record.id === null) return false;
  const ahead = aheadMs();
  if (ahead === null) return Math.abs(difference) > apartMsUnknown;
  return Math.abs(difference - ahead) > apartMsMax;
}

/** The clock difference shown by this record; null: none. */
function differenceTo(rows: readonly Row[], record: Compared, side: PairSide): number | null {
  const [only, ...more] = rows.filter(({ counterpart }) => typeof counterpart !== 'number');
  if (only === undefined || more.length > 0 || record.id === null) return null;
  return differenceOf({ happened: only.happened, record, side });
}

/** The new side's time minus the old side's; null if one has none. */
function differenceOf({
  happened,
  record,
  side,
}: {
  readonly happened: unknown;
  readonly record: Pick<PairRecord, 'happenedAt'>;
  readonly side: PairSide;
}): number | null {
  if (typeof happened !== 'number' || record.happenedAt === null) return null;
  return side === 'new' ? record.happenedAt - happened : happened - record.happenedAt;
}
