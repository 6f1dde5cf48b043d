// What the contract suite of sinks needs of the other side: for each listed sink a receiver that can be willing, shaky,
// picky, both, silent or absent, and that says which events have arrived. Where a kind of receiver cannot be had for a
// sink, its stand says why, and the suite shows that as a skipped test.

import type { Uid } from '../../../src/contracts/event.ts';

import type { HttpAnswer } from '../../support/http-receiver.ts';
import type { OpeningWishes } from '../../support/sink-opening.ts';
import type { Deliverable } from '../deliver.ts';

/**
 * How the receiver treats events. `willing` accepts everything. `shaky` accepts or fails, by the given dice, also
 * fails after it accepted, and accepts a part of a batch if its kind can express that. `picky` rejects permanently every event with `refusedText`. `mixed` is both, and accepts
 * only a few events at a time if its kind can express that. `mute` lets the sink connect and never responds. `away`:
 * nothing listens.
 */
export type Mood = 'willing' | 'shaky' | 'picky' | 'mixed' | 'mute' | 'away';

/** Stands in the message of events that a picky receiver refuses; such events are also 20 kB long. */
export const refusedText = 'not this one please';

/** A receiver in some mood. */
export interface Receiver {
  /** The sink's settings that lead to it. */
  readonly config: { readonly [setting: string]: unknown };
  readonly wishes?: OpeningWishes;
  /** Uids of the events that it has taken, in order, repeats included. */
  arrived(): readonly Uid[] | Promise<readonly Uid[]>;
  /** How often it has failed the sink so far. */
  failures(): number;
  /** The id that each taken or refused request came under, with the uids in it; where the wire carries an id. */
  readonly requests?: readonly { readonly id: string; readonly uids: readonly Uid[] }[];
  /** Opens the sink, for one that cannot live in the tests' process. */
  open?(): Promise<Deliverable>;
}

/** A receiver for one sink. `unable` says, for a mood, why there is no such receiver. */
export interface ReceiverKind {
  /** The sink's `type`, and the name of the test. */
  readonly type: string;
  readonly name: string;
  readonly unable: { readonly [mood in Mood]?: string };
  /** `random` gives numbers from 0 to 1, the same for the same test. */
  start(mood: Mood, random: () => number): Promise<Receiver>;
}

/** All uids in a text that holds events as JSON, CEF or syslog. */
export function uidsIn(text: string): readonly Uid[] {
  return [...text.matchAll(/uid[=":\\]+([0-9a-f]{64})/g)].map((match) => match[1] ?? '');
}

/** How a shaky receiver that speaks HTTP fails. */
export const failures: readonly HttpAnswer[] = [
  { answer: 'reply', status: 503 },
  { answer: 'reply', status: 429, headers: { 'Retry-After': '1' } },
  { answer: 'reply', status: 500 },
  { answer: 'reset' },
  { answer: 'cut' },
];
