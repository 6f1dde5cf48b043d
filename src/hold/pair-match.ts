// Which record of one side is which of the other. What must stay true: nothing is guessed. Two are
// the same only if their keys are equal, and nothing that both say of company and time denies it;
// and each record matches at most one.

import type { PairRecord, PairSide } from '../contracts/succession.ts';
import type { Row } from './statements.ts';

/** Folded fields of a record: by path, a letter for the type and a digest. */
export type FoldedFields = Readonly<Record<string, string>>;

/** How candidates are judged. */
export interface MatchRules {
  /** Where one side only says whose a record is, content must agree. */
  readonly needsContent: boolean;
  /** How far the new side's times are ahead of the old side's, milliseconds; null: not known yet. */
  readonly aheadMs: () => number | null;
  /** Of a collection: changes that were stored before this time are past if a later one followed. */
  readonly pastBefore: number;
}

/** What of a record says who it is. */
type Compared = Pick<PairRecord, 'company' | 'happenedAt' | 'fields' | 'id' | 'as'>;

/** Of records with the same id, times that are further apart than this mean two records. */
const apartMsMax = 5 * 60_000;
/** As long as the difference of the clocks is not known. */
const apartMsUnknown = 24 * 3_600_000;

/** What was found among the records of the other side that have the same key. */
export interface PairCandidates {
  /** The row whose content is equal; null: none is. */
  readonly same: Row | null;
  /**
   * Rows that it is only if nothing equal turns up, in the order in which they were shown; none that
   * counts as another record already.
   */
  readonly others: readonly Row[];
  /** A row has the same id, and a time that is too far apart. */
  readonly isApart: boolean;
  /** The new side's time less the old side's, where one row only can be the record; null: unknown. */
  readonly difference: number | null;
}

/** Finds the rows of the other side that may be this record, among those that nothing has matched. */
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
 * The latest change to the same values. A change is past if another one of the same fields has
 * followed and patience is over: a value that returns then is another change.
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

/** True where all fields that both have are equal, and both have some. */
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

/** True for values that say the same. */
export function isSame(one: string, other: string): boolean {
  return one.slice(1) === other.slice(1);
}

/** Texts that were read last: of a record that matches, both are looked at when it is found and counted. */
const readLast: { readonly text: string; readonly fields: FoldedFields }[] = [];
const readLastMax = 4;

/** Fields as they are stored. */
export function fieldsOf(text: unknown): FoldedFields {
  if (typeof text !== 'string') return {};
  const known = readLast.find((one) => one.text === text);
  if (known !== undefined) return known.fields;
  const fields = JSON.parse(text) as FoldedFields;
  if (readLast.length >= readLastMax) readLast.shift();
  readLast.push({ text, fields });
  return fields;
}

/** True where both say whose they are, and do not agree. */
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

/** What the clocks' difference is by this record; null: it does not say. */
function differenceTo(rows: readonly Row[], record: Compared, side: PairSide): number | null {
  const [only, ...more] = rows.filter(({ counterpart }) => typeof counterpart !== 'number');
  if (only === undefined || more.length > 0 || record.id === null) return null;
  return differenceOf({ happened: only.happened, record, side });
}

/** The new side's time less the old side's; null where one has none. */
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
