// Pages that sluice writes itself: conditions of a source and changes of a configuration. They are stored in the spool
// beside upstream's pages and delivered in the same way, so reports to operators cannot be lost either.

import type {
  Condition,
  ConditionRecord,
  NewPage,
  PageContext,
  Stream,
} from '../contracts/index.ts';
import { timeText } from '../tools/index.ts';

/** The context of a page of a stream. */
export function pageContext(
  { source, name, company }: Stream,
  kind: PageContext['kind'],
  fetchedAt: number,
): PageContext {
  return { source, stream: name, kind, ...(company === undefined ? {} : { company }), fetchedAt };
}

/** A page of sluice's own records, given as objects or as a JSON array, one uid each. */
export function ownPage(
  context: PageContext,
  records: readonly object[] | Uint8Array,
  uids: readonly Buffer[],
): NewPage {
  return {
    context,
    body: records instanceof Uint8Array ? records : Buffer.from(JSON.stringify(records)),
    items: '',
    kept: null,
    uids: Buffer.concat(uids),
  };
}

/** One condition, without the stamp of its stream and time. */
export interface Finding {
  readonly condition: Condition | 'removals_held';
  readonly message: string;
  readonly details?: ConditionRecord['details'];
  /** The uid of the record it is about: a repeated condition is then the same event. */
  readonly about?: string;
}

/** The condition of an immutable record with another content than before. */
export function violation(uid: string): Finding {
  return {
    condition: 'integrity_violation',
    message:
      'a record came again with other content, though upstream calls it immutable; both versions were delivered',
    details: { uid },
    about: uid,
  };
}

/** A condition as the record for sinks. */
export type FindingRecord<C = Finding['condition']> = Omit<ConditionRecord, 'condition'> & {
  readonly condition: C;
};

/** Called with each condition once it is durable. */
export type OnFinding = (record: FindingRecord) => void;

/** Stamps a condition with its stream and time. */
export function conditionRecord<C extends Finding['condition']>(
  stream: { readonly name: string; readonly source: string },
  finding: Finding & { readonly condition: C },
  now: number,
): FindingRecord<C> {
  return {
    condition: finding.condition,
    source: stream.source,
    stream: stream.name,
    observed_at: timeText(now),
    message: finding.message,
    ...(finding.details === undefined ? {} : { details: finding.details }),
  };
}
