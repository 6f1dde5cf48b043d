// Changes of a collection as records of a pair: a change of one side is the same change of the other side if entity, kind of
// change and the new values of the changed fields are equal. What must stay true: no time is compared, since each side sees a
// change when it reads; and a summary of a side is no change and is delivered only by the side that delivers.

import { hash } from 'node:crypto';
import type { ChangeRecord } from '../../contracts/change.ts';
import { isObject, type Json } from '../../contracts/json.ts';
import type { PairRecord } from '../../contracts/succession.ts';
import { foldedName } from '../../tools/folded-name.ts';
import { valueAt } from '../../tools/records.ts';
import { type FoldRules, foldRecord } from './fold.ts';

const keyBytes = 16;
const idCharsMax = 64;
/** In place of a value that is gone. */
const gone = 'x-';

/** How changes of one side are compared. */
export interface ChangeRules {
  readonly rules: FoldRules;
  /** Path in the entity of the id that both sides have; null: the entity's own id. */
  readonly entityId: string | null;
  /**
   * A source has several kinds of entities, such as objects and policies, whose ids may be equal: only
   * entities of one kind are the same. Else the two sides may call their one kind otherwise.
   */
  readonly isOfKinds: boolean;
}

/** What is compared of a change record. */
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
  // An entity that is in the baseline of one side is new at the other one.
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

/** The new values of the fields that differ, folded. */
function changedFields({ before, after }: ChangeRecord, rules: FoldRules): Record<string, string> {
  const [from, to] = [foldRecord(before ?? null, rules), foldRecord(after ?? null, rules)];
  const changed: Record<string, string> = {};
  for (const path of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (from[path]?.slice(1) !== to[path]?.slice(1)) changed[path] = to[path] ?? gone;
  }
  return changed;
}

/** The company that a record names; null: it names none. */
export function companyIn(record: Json): string | null {
  if (!isObject(record)) return null;
  for (const [name, value] of Object.entries(record)) {
    // `companyId` and `company_id`: a name of another length is folded to another one.
    if (name.length < 9 || name.length > 10) continue;
    const isText = typeof value === 'string' || typeof value === 'number';
    if (isText && foldedName(name) === 'company_id') return String(value);
  }
  return null;
}
