// The two records that sluice creates itself. A ChangeRecord reports one difference between two
// scans of a configuration (firewall objects, policies, rules). A ConditionRecord reports a fact
// about a source, such as a suspected gap, or about a sink. Both are stored in the spool like any
// record and delivered like any event.

import type { Json } from './json.ts';

/** One difference between two scans of a collection. */
export interface ChangeRecord {
  /** `baseline`: a summary of the first generation; `state`: one of its entities, in full. */
  readonly change: 'created' | 'updated' | 'deleted' | 'baseline' | 'state';
  /** `object`, `policy` or `rule`; for a baseline, the summarised resource. */
  readonly entity_kind: string;
  readonly entity_id: string;
  readonly entity_name?: string;
  /** The policy that a rule belongs to. */
  readonly parent_id?: string;
  /** The policy's list that contains the rule: `forward_rules`, `nat_rules`. */
  readonly list?: string;
  /** Position of the rule in that list, from 1; absent if the rule was removed. */
  readonly place?: number;
  /** Absent if the collection belongs to no company. */
  readonly company_id?: string;
  /** Counts scans of this scope. `epoch` changes after a config change or lost state. */
  readonly generation: number;
  readonly epoch: string;
  readonly entity_version: number;
  /** RFC 3339. */
  readonly observed_at: string;
  /** Paths that differ, for `updated`. */
  readonly changed?: readonly string[];
  readonly before?: Json;
  readonly after?: Json;
  /** For `baseline`: the number of entities. */
  readonly count?: number;
}

/** Conditions of a source that its sinks receive, and conditions that a sink reports. */
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
  | 'source.volume_low'
  | 'source.volume_back'
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

/** One reported condition; the names of a sink's conditions are its own. */
export interface ConditionRecord {
  readonly condition: Condition;
  readonly source: string;
  readonly stream: string;
  /** RFC 3339. */
  readonly observed_at: string;
  /** One sentence for an operator. */
  readonly message: string;
  /** Facts about the condition: `from`, `to`, `trace_id`, `reason` …; never a cursor value. */
  readonly details?: { readonly [name: string]: Json };
}
