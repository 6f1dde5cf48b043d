// A sink's position, in memory and on disk. It moves in memory at once, is noted so that it
// outlives the process, and becomes durable soon after, several steps in one write where they come
// fast. Dead letters become durable in the same write as the position that passes them. What must
// stay true: what is on disk never runs ahead of what was settled, and a failing disk is asked
// again until the process has to end.

import { errorText } from '../contracts/errors.ts';
import type { Offset } from '../contracts/event.ts';
import type { Json } from '../contracts/json.ts';
import type { AsideEvent, DeadLetter, SendSpool } from '../contracts/spool.ts';
import type { Clock, Log } from '../contracts/tools.ts';

/** What a step brings besides the new place. */
export interface PositionChange {
  readonly mark?: Json;
  readonly deadLetters?: readonly DeadLetter[];
  readonly aside?: readonly AsideEvent[];
}

const retryMs = 1_000;

/** How far one sink has come. */
export class Position {
  readonly #sink: string;
  readonly #spool: SendSpool;
  readonly #clock: Clock;
  readonly #log: Log;
  #at: Offset;
  #mark: Json | undefined;
  #letters: DeadLetter[] = [];
  #aside: AsideEvent[] = [];
  #savingDeadLetters = false;
  #unsaved = false;
  #saving: Promise<void> | null = null;
  readonly #abandoned = new AbortController();

  constructor(sink: string, at: Offset, deps: { spool: SendSpool; clock: Clock; log: Log }) {
    this.#sink = sink;
    this.#at = at;
    this.#spool = deps.spool;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  get at(): Offset {
    return this.#at;
  }

  /** Moves on; a place behind the present one changes nothing but the mark and the letters. */
  advance(to: Offset, step: PositionChange = {}): void {
    this.#at = Math.max(this.#at, to);
    if (step.mark !== undefined) this.#mark = step.mark;
    if (step.deadLetters !== undefined) this.#letters.push(...step.deadLetters);
    if (step.aside !== undefined) this.#aside.push(...step.aside);
    this.#note();
    this.#unsaved = true;
    this.#saving ??= this.#save();
  }

  /** Not past a dead letter that would be lost with the process. */
  #note(): void {
    if (this.#letters.length + this.#aside.length === 0 && !this.#savingDeadLetters) {
      this.#spool.reached(this.#sink, this.#at);
    }
  }

  /** Tries a failing disk no more: what it does not take now is sent again after the next start. */
  abandon(): void {
    this.#abandoned.abort();
  }

  /** Resolves when all that was settled so far is durable, or abandoned. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  async #save(): Promise<void> {
    // Steps that are taken in this turn of the loop share the write.
    await Promise.resolve();
    while (this.#unsaved) {
      this.#unsaved = false;
      const letters = this.#letters;
      const aside = this.#aside;
      const mark = this.#mark;
      this.#letters = [];
      this.#aside = [];
      this.#savingDeadLetters = letters.length + aside.length > 0;
      this.#mark = undefined;
      try {
        await this.#spool.acknowledge(this.#sink, {
          position: this.#at,
          ...(mark === undefined ? {} : { mark }),
          ...(letters.length === 0 ? {} : { deadLetters: letters }),
          ...(aside.length === 0 ? {} : { aside }),
        });
        this.#savingDeadLetters = false;
        this.#note();
      } catch (error) {
        this.#letters = [...letters, ...this.#letters];
        this.#aside = [...aside, ...this.#aside];
        this.#mark ??= mark;
        this.#unsaved = true;
        const fields = { error: errorText(error) };
        if (this.#abandoned.signal.aborted) {
          this.#log.error(
            'position_not_saved',
            'position not stored; events sent since are sent again',
            fields,
          );
          break;
        }
        this.#log.warn('position_save_failed', 'position could not be stored; retrying', fields);
        await this.#clock.sleep(retryMs, this.#abandoned.signal).catch(() => undefined);
      }
    }
    this.#saving = null;
  }
}
