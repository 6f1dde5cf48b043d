// The terms in which the reading of records is told: the slots that values are found for, which
// values a slot's names may carry, and what one name means. The names themselves are in
// vocabulary.ts, their use in branch.ts and reading.ts.

import type { Json } from '../contracts/json.ts';
import type { AttributeType } from './schema.ts';

/** What a found value is for. */
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
} as const;

/** One of `slots`; numbers from `slotCount` on are a mapping's own. */
export type Slot = number;

/** How many slots the vocabulary has. */
export const slotCount = 36;

/** Which values a name may carry; one that it may not stays in `unmapped`. */
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
  | 'outcome'
  | 'known outcome'
  | 'severity'
  | 'severity_id'
  | 'priority'
  | 'level'
  | 'risk';

/** What a canonical name means. A lower rank wins; names of one thing share `groupOf(rank)`. */
export interface Meaning {
  readonly slot: Slot;
  readonly accepts: Accepts;
  readonly rank: number;
}

/** The names to look for: meanings by canonical name, and which are looked into. */
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
 * What is looked at of a value that is passed on: `email`, whether it is an address; `path`, whether
 * it begins with `/`; an attribute's type, whether it can be brought to that (coerce.ts).
 */
export type Passing = 'nothing' | 'path' | 'email' | { readonly to: AttributeType };

/**
 * What a normaliser looks at of a record's values, for who writes lines without normalising each
 * record (transcode/).
 */
export interface Attention {
  /** What the value at these keys may be taken for; nothing: it goes to `unmapped` as it is. */
  offers(keys: readonly string[]): readonly Meaning[];
  /** Slots whose value is passed on, and what is looked at of it all the same; others decide. */
  readonly passedOn: ReadonlyMap<Slot, Passing>;
  /** Whether a name that accepts such values may carry this one. */
  accepts(accepts: Accepts, value: Json): boolean;
}

/** Added to the rank of what stands in a wrapper. */
export const wrapperRank = 4096;

/** A name without what writers of names differ in. */
export function canonicalName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
