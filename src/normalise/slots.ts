// The terms of reading records: the slots that values are found for, the values that a slot's names
// may carry, and the meaning of a name. The names themselves are in vocabulary.ts, their use in
// branch.ts and reading.ts.

import type { Json } from '../contracts/index.ts';
import type { AttributeType } from './schema.ts';

/** The purpose of a found value. */
export const slots = {
  id: 0,
  time: 1,
  operation: 2,
  service: 3,
  apiVersion: 4,
  requestId: 5,
  correlation: 6,
  trace: 7,
  session: 8,
  userAgent: 9,
  httpMethod: 10,
  url: 11,
  httpCode: 12,
  actorName: 13,
  actorUid: 14,
  actorEmail: 15,
  actorType: 16,
  actorFullName: 17,
  agentName: 18,
  agentUid: 19,
  srcIp: 20,
  srcPort: 21,
  srcMac: 22,
  srcHost: 23,
  targetName: 24,
  targetUid: 25,
  targetType: 26,
  targetVersion: 27,
  before: 28,
  after: 29,
  status: 30,
  statusCode: 31,
  statusDetail: 32,
  severity: 33,
  message: 34,
  tenant: 35,
  changes: 36,
} as const;

/** One of `slots`; numbers from `slotCount` on belong to a mapping. */
export type Slot = number;

/** Number of slots in the vocabulary. */
export const slotCount = 37;

/** The values that a name may carry; any other value stays in `unmapped`. */
export type Accepts =
  | 'text'
  | 'word'
  | 'time'
  | 'ip'
  | 'port'
  | 'mac'
  | 'host'
  | 'email'
  | 'code'
  | 'method'
  | 'json'
  | 'changes'
  | 'outcome'
  | 'known outcome'
  | 'severity'
  | 'severity_id'
  | 'priority'
  | 'level'
  | 'risk';

/**
 * The meaning of a canonical name. A lower rank takes precedence; names of one thing share
 * `groupOf(rank)`.
 */
export interface Meaning {
  readonly slot: Slot;
  readonly accepts: Accepts;
  readonly rank: number;
}

/** The names to look for: meanings by canonical name, and the containers to search. */
export interface Vocabulary {
  readonly meanings: ReadonlyMap<string, readonly Meaning[]>;
  readonly containers: ReadonlySet<string>;
  readonly wrappers: ReadonlySet<string>;
}

/** Ranks of one group's names; also the distance between two groups. */
export const groupSize = 32;

/** The group of names of a rank: different groups may be different people or things. */
export function groupOf(rank: number): number {
  return Math.floor(rank / groupSize);
}

/**
 * The inspected property of a copied value: `email`, whether it is an address; `path`, whether it
 * begins with `/`; an attribute's type, whether it converts to that type (coerce.ts).
 */
export type Passing = 'nothing' | 'path' | 'email' | { readonly to: AttributeType };

/**
 * The values of a record that a normaliser inspects, for a writer that does not normalise each
 * record (transcode/).
 */
export interface Attention {
  /** The possible meanings of the value at these keys; none: it goes to `unmapped` unchanged. */
  offers(keys: readonly string[]): readonly Meaning[];
  /**
   * Slots whose value is copied, with their inspected property; values of other slots decide the
   * form.
   */
  readonly passedOn: ReadonlyMap<Slot, Passing>;
  /** Whether a name of this type may carry the value. */
  accepts(accepts: Accepts, value: Json): boolean;
}

/** Added to the rank of a name inside a wrapper. */
export const wrapperRank = 4096;

/** A name without the differences in spelling: case and punctuation. */
export function canonicalName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
