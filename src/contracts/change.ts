// The two records that sluice itself makes. A ChangeRecord tells one difference between two
// readings of a configuration (firewall objects, policies, rules); a ConditionRecord tells
// something about a source that its reader should know, such as a suspected gap, or what a sink has
// to tell of itself. Both are held in the spool like any record and delivered like any event.

import type { Json } from './json.ts';

/** One difference between two readings of a collection. */
export interface ChangeRecord {
  /** `baseline`: the first generation in one summary; `state`: one of its entities, in full. */
  readonly change: 'created' | 'updated' | 'deleted' | 'baseline' | 'state';
  /** `object`, `policy` or `rule`; for a baseline the resource it sums up. */
  readonly entity_kind: string;
  readonly entity_id: string;
  readonly entity_name?: string;
  /** The policy a rule belongs to. */
  readonly parent_id?: string;
  /** The policy's list that a rule stands in: `forward_rules`, `nat_rules`. */
  readonly list?: string;
  /** Where in that list a rule stands, from 1; left out where it is gone. */
  readonly place?: number;
  /** Left out where the collection is no company's. */
  readonly company_id?: string;
  /** Counts readings of this scope; `epoch` is new after a config change or lost state. */
  readonly generation: number;
  readonly epoch: string;
  readonly entity_version: number;
  /** RFC 3339. */
  readonly observed_at: string;
  /** Paths that differ, for `updated`. */
  readonly changed?: readonly string[];
  readonly before?: Json;
  readonly after?: Json;
  /** For `baseline`: how many entities there are. */
  readonly count?: number;
}

/** The conditions that a source can be in, as told to its sinks; and what a sink tells. */
export type Condition =
  | 'source.checkpoint_reset'
  | 'source.gap_suspected'
  | 'source.gap'
  | 'source.scope_lost'
  | 'source.parent_lost'
  | 'source.parents_full'
  | 'source.paging_suspected'
  | 'source.invalid_utf8'
  | 'source.volatile_fields'
  | 'source.silent'
  | 'source.heard'
  | 'source.cut_over'
  | 'source.succession_held'
  | 'source.succession_released'
  | 'upstream.ends'
  | 'change.unexplained'
  | 'change.unseen'
  | 'drift.unmatchable'
  | 'archive.checkpoint'
  | 'sink.test'
  | 'sink.gap'
  | 'sink.events_released'
  | 'archive.compared'
  | 'archive.differs'
  | 'integrity_violation'
  | 'schema_drift';

/** One thing to know about a source; of a sink the names are its own. */
export interface ConditionRecord {
  readonly condition: Condition;
  readonly source: string;
  readonly stream: string;
  /** RFC 3339. */
  readonly observed_at: string;
  /** One sentence for a person. */
  readonly message: string;
  /** What is known of it: `from`, `to`, `trace_id`, `reason` …; no cursor values. */
  readonly details?: { readonly [name: string]: Json };
}
