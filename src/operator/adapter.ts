// The way from an operator's request to the state: the interface of the three adapters. Invariant: a request is carried
// out once or not at all; one that no process answers in time is withdrawn, so that nothing is moved long after the
// command has ended.

import type { Config } from '../config/index.ts';
import type { JsonObject } from '../contracts/index.ts';
import type { OperatorRequest } from '../hold/index.ts';
import type { State } from '../watch/index.ts';

/** A stored state to read. */
export interface Stored {
  /** The config, with the directory that has the state: the state directory, or its copy. */
  readonly config: Config;
  /** If no state was found: a clause with the searched locations, for the end of a line; else empty. */
  readonly missing: string;
  /** The state is a copy from Kafka, which has neither pages nor identities of records. */
  readonly isCopy: boolean;
  /** Reads the facts; both kinds have the same members. Throws `state_damaged`. */
  readonly facts: () => State;
}

/** One way to reach a state. */
export interface Adapter {
  /** The process that carries requests out, as messages name it; null: none runs. */
  readonly holder: string | null;
  /** Reads the state as it is stored now. Throws `state_damaged`, or `sink_unreachable` if the state is in Kafka. */
  look<T>(read: (stored: Stored) => Promise<T> | T): Promise<T>;
  /**
   * Carries the request out and returns the answer, which has `error` if it failed. Null: another
   * process acquired or released the state meanwhile, and nothing was changed. Throws `state_locked`
   * if no process answers.
   */
  carryOut(name: string, wish: OperatorRequest): Promise<JsonObject | null>;
}
