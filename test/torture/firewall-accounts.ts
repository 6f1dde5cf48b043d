// Whether the delivered change events describe the firewall as it is: applied in the order of the spool they must
// result in the very objects, policies and rules that the ledger has at the end. A wrong change, an invented removal
// and a missed one all lead to another result.

import { isDeepStrictEqual } from 'node:util';
import type { FiledEvent } from './filed.ts';
import type { Stage } from './stage.ts';

interface Change {
  readonly change: string;
  readonly entity_kind: string;
  readonly entity_id: string;
  readonly parent_id?: string;
  readonly company_id: string;
  readonly after?: unknown;
}

/** What differs between the picture that the events draw and the ledger. */
export function firewallFindings(
  stage: Stage,
  filed: readonly FiledEvent[],
  rawOf: (uid: string) => string | undefined,
): readonly string[] {
  const drawn = new Map<string, Change>();
  for (const { uid, log } of filed) {
    if (log !== 'firewall') continue;
    const raw = rawOf(uid);
    // Held as a dead letter or still under way: the picture is drawn when it has arrived.
    if (raw === undefined) return [];
    const change = JSON.parse(raw) as Change;
    if (change.change === 'baseline') continue;
    const key = keyOf(change.company_id, change.entity_kind, change.entity_id);
    if (change.change === 'deleted') drawn.delete(key);
    else drawn.set(key, change);
  }
  const real = entitiesOf(stage);
  const findings = [...real].flatMap(([key, entity]) => {
    const change = drawn.get(key);
    if (change === undefined) return [`firewall: ${key} exists and was not reported`];
    if (entity === null || isDeepStrictEqual(timeless(change.after), timeless(entity))) return [];
    return [`firewall: ${key} differs from the last report`];
  });
  const gone = [...drawn.keys()].filter((key) => !real.has(key));
  return [...findings, ...gone.map((key) => `firewall: ${key} is gone, which was not reported`)];
}

/** Every entity of the ledger; null where only its existence is compared. */
function entitiesOf(stage: Stage): ReadonlyMap<string, unknown> {
  const entities = new Map<string, unknown>();
  for (const company of ['c-1', 'c-2']) {
    const { objects, policies } = stage.sandbox.ledger().firewall(company);
    for (const object of objects) entities.set(keyOf(company, 'object', object.id), object);
    for (const policy of policies) {
      entities.set(keyOf(company, 'policy', policy.id), null);
      for (const rule of [...policy.forward_rules, ...policy.nat_rules]) {
        entities.set(keyOf(company, 'rule', rule.id), null);
      }
    }
  }
  return entities;
}

function keyOf(company: string, kind: string, id: string): string {
  return `${company} ${kind} ${id}`;
}

function timeless(entity: unknown): unknown {
  if (typeof entity !== 'object' || entity === null) return entity;
  return { ...entity, updated_at: null };
}
