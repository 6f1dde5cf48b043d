// Changes of a collection as records of a pair. A change of one side equals a change of the other side if entity, kind
// of change and the new values of the changed fields are equal. Invariants: no time is compared, because each side sees
// a change when it reads; a summary is no change, and only the delivering side delivers it.

import { hash } from 'node:crypto';
import { type ChangeRecord, isObject, type Json, type PairRecord } from '../contracts/index.ts';
import { foldedName, valueAt } from '../tools/index.ts';
import { type FoldRules, foldRecord } from './fold.ts';

const keyBytes = 16;
const idCharsMax = 64;
/** Stands for a removed value. */
const gone = 'x-';

/** How changes of one side are compared. */
export interface ChangeRules {
  readonly rules: FoldRules;
  /** Path in the entity of the id that both sides have; null: the entity's own id. */
  readonly entityId: string | null;
  /**
   * The source has several kinds of entities, such as objects and policies, whose ids may be equal: then only entities
   * of one kind can be the same. Otherwise the two sides may name their single kind differently.
   */
  readonly isOfKinds: boolean;
}

/** The compared parts of a change record. */
export function pairChange(
  record: Json,
  { rules, entityId, isOfKinds }: ChangeRules,
): Pick<PairRecord, 'key' | 'company' | 'id' | 'happenedAt' | 'fields' | 'before' | 'as'> {
  const change = record as unknown as ChangeRecord; // written by this program
  const entity = change.after ?? change.before ?? null;
  const company = change.company_id ?? companyIn(entity);
  const usual = { company, happenedAt: null, before: [] };
  if (change.change === 'baseline') {
    return { ...usual, key: new Uint8Array(keyBytes), id: null, fields: '{}', as: 'summary' };
  }
  const id = sharedId(change, entity, entityId);
  // An entity in one side's baseline is new on the other side.
  const what = change.change === 'state' ? 'created' : change.change;
  const part = [change.parent_id ?? null, change.list ?? null];
  const kind = isOfKinds ? [change.entity_kind] : [];
  const who = JSON.stringify(['change', ...part, id, what, ...kind]);
  const key = new Uint8Array(hash('sha256', who, 'buffer').subarray(0, keyBytes));
  const fields = what === 'updated' ? changedFields(change, rules) : {};
  const shown = id.slice(0, idCharsMax);
  return { ...usual, key, id: shown, fields: JSON.stringify(fields), as: 'change' };
}

function sharedId(change: ChangeRecord, entity: Json, path: string | null): string {
  const other = path === null ? undefined : valueAt(entity, path);
  return typeof other === 'string' || typeof other === 'number' ? String(other) : change.entity_id;
}

/** The new values of the differing fields, folded. */
function changedFields({ before, after }: ChangeRecord, rules: FoldRules): Record<string, string> {
  const [from, to] = [foldRecord(before ?? null, rules), foldRecord(after ?? null, rules)];
  const changed: Record<string, string> = {};
  for (const path of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (from[path]?.slice(1) !== to[path]?.slice(1)) changed[path] = to[path] ?? gone;
  }
  return changed;
}

/** The company that a record names; null: none. */
export function companyIn(record: Json): string | null {
  if (!isObject(record)) return null;
  for (const [name, value] of Object.entries(record)) {
    // `companyId` or `company_id`: a name of another length folds to another name.
    if (name.length < 9 || name.length > 10) continue;
    const isText = typeof value === 'string' || typeof value === 'number';
    if (isText && foldedName(name) === 'company_id') return String(value);
  }
  return null;
}
