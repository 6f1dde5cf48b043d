// What the owner of a shard and those that send for it leave word of, where a sink has a process of
// its own (`own_process`): records of the compacted topic `<prefix>.sent`, the shard's partition.
// `["held", "owner"]` is what the owner gives out: what its numbers stand for, and how far it knows
// each sink to be; `["sent", SINK]` how far the one that sends has come since; `["letter", SINK,
// OFFSET, UID]` an event that the sink refused, until the owner has it as a dead letter. What must
// stay true: a place is only said of what the far side has answered, and behind its letters; and every
// owner gives out before it holds anything, also one that sends to all sinks itself.

import { z } from 'zod';
import type { Offset, Uid } from '../contracts/event.ts';
import type { Json, JsonObject } from '../contracts/json.ts';
import type { Numbering, Place } from '../contracts/numbering.ts';
import type { SinkProgress } from '../contracts/spool.ts';
import type { Clock } from '../contracts/tools.ts';
import { Board } from './board.ts';
import { type LogSettings, shardNames } from './log/settings.ts';

/** What an owner gives out. */
export interface HeldWord {
  readonly numbering: Numbering;
  readonly sinks: Readonly<Record<string, SinkProgress>>;
}

/** How far a sink has come, and how it stands. */
export interface SentWord {
  readonly place: Place;
  readonly mark: Json;
  /** As `status` shows them. */
  readonly facts: JsonObject;
}

/** An event that a sink refused; the owner has the rest of it in its page. */
export interface LetterWord {
  readonly offset: Offset;
  readonly uid: Uid;
  readonly reason: string;
}

const progress = z.object({ position: z.number(), mark: z.json() });
const heldShape = z.object({
  numbering: z.object({
    spool: z.string(),
    epochs: z.array(z.object({ id: z.number(), until: z.number().nullable() })),
  }),
  sinks: z.record(z.string(), progress),
});
const sentShape = z.object({
  place: z.object({ spool: z.string(), epoch: z.number(), next: z.number() }),
  mark: z.json(),
  facts: z.record(z.string(), z.json()),
});
const letterShape = z.object({ offset: z.number(), uid: z.string(), reason: z.string() });

/** The partition as one process has read it. */
export class Sent extends Board {
  #held: HeldWord | null = null;
  readonly #sinks = new Map<string, SentWord>();
  /** By sink, and in it by their keys. */
  readonly #letters = new Map<string, Map<string, LetterWord>>();

  constructor(settings: LogSettings, clock: Clock) {
    super(settings, clock, shardNames(settings).sent);
  }

  /** What the newest owner gives out; another object for each; null: there was none yet. */
  get held(): HeldWord | null {
    return this.#held;
  }

  /** What was said of a sink last. */
  sink(name: string): SentWord | null {
    return this.#sinks.get(name) ?? null;
  }

  /** The sinks of which anything was said. */
  get names(): readonly string[] {
    return [...new Set([...this.#sinks.keys(), ...this.#letters.keys()])];
  }

  /** Those of a sink that the owner has not taken yet, in the order of their offsets. */
  letters(sink: string): readonly LetterWord[] {
    const letters = [...(this.#letters.get(sink)?.values() ?? [])];
    return letters.sort((a, b) => a.offset - b.offset);
  }

  async giveOut(word: HeldWord): Promise<void> {
    await this.write(['held', 'owner'], word as unknown as Json);
  }

  async say(sink: string, word: SentWord): Promise<void> {
    await this.write(['sent', sink], word as unknown as Json);
  }

  async refuse(sink: string, letter: LetterWord): Promise<void> {
    await this.write(letterKey(sink, letter), { ...letter });
  }

  /** The owner has it. */
  async took(sink: string, letter: LetterWord): Promise<void> {
    await this.write(letterKey(sink, letter), null);
    this.#letters.get(sink)?.delete(placeOf(letter));
  }

  protected put(key: readonly (string | number)[], said: JsonObject | null): void {
    const [kind, name] = key.map(String);
    if (name === undefined) return;
    if (kind === 'held') {
      this.#held = heldShape.safeParse(said).data ?? this.#held;
    } else if (kind === 'sent') {
      const word = sentShape.safeParse(said).data;
      if (word !== undefined) this.#sinks.set(name, word);
    } else if (kind === 'letter') {
      const letters = this.#letters.get(name) ?? new Map<string, LetterWord>();
      this.#letters.set(name, letters);
      const letter = letterShape.safeParse(said).data;
      if (letter !== undefined) letters.set(placeOf(letter), letter);
      else if (said === null) letters.delete(key.slice(2).join(' '));
    }
  }
}

function letterKey(sink: string, { offset, uid }: LetterWord): readonly string[] {
  return ['letter', sink, String(offset), uid];
}

function placeOf({ offset, uid }: LetterWord): string {
  return `${offset} ${uid}`;
}
