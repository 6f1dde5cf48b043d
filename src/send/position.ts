// A sink's position, in memory and on disk. It moves in memory at once, is noted so that it
// survives the process, and becomes durable soon after, with several steps in one write if they
// come fast. Dead letters become durable in the write of the position that passes them. Invariants:
// the durable position never passes an unsettled event; a failing disk is retried until the process
// must end.

import {
  type AsideEvent,
  asExportError,
  type Clock,
  type DeadLetter,
  type Json,
  type Log,
  type Offset,
  type SendSpool,
} from '../contracts/index.ts';

/** The data that becomes durable with a new position. */
export interface PositionChange {
  readonly mark?: Json;
  readonly deadLetters?: readonly DeadLetter[];
  readonly aside?: readonly AsideEvent[];
}

const retryMs = 1_000;

/** The position of one sink. */
export class Position {
  readonly #sink: string;
  readonly #spool: SendSpool;
  readonly #clock: Clock;
  readonly #log: Log;
  #at: Offset;
  #mark: Json | undefined;
  #deadLetters: DeadLetter[] = [];
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

  /** Moves the position forward; a smaller offset changes only the mark and the dead letters. */
  advance(to: Offset, step: PositionChange = {}): void {
    this.#at = Math.max(this.#at, to);
    if (step.mark !== undefined) this.#mark = step.mark;
    if (step.deadLetters !== undefined) this.#deadLetters.push(...step.deadLetters);
    if (step.aside !== undefined) this.#aside.push(...step.aside);
    this.#note();
    this.#unsaved = true;
    this.#saving ??= this.#save();
  }

  /** Not past a dead letter that would be lost with the process. */
  #note(): void {
    if (this.#deadLetters.length + this.#aside.length === 0 && !this.#savingDeadLetters) {
      this.#spool.reached(this.#sink, this.#at);
    }
  }

  /** Stops retrying a failing disk: unsaved events are sent again after the next start. */
  abandon(): void {
    this.#abandoned.abort();
  }

  /** Resolves when everything settled so far is durable, or abandoned. */
  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  async #save(): Promise<void> {
    // Steps in the same turn of the event loop share the write.
    await Promise.resolve();
    while (this.#unsaved) {
      this.#unsaved = false;
      const deadLetters = this.#deadLetters;
      const aside = this.#aside;
      const mark = this.#mark;
      this.#deadLetters = [];
      this.#aside = [];
      this.#savingDeadLetters = deadLetters.length + aside.length > 0;
      this.#mark = undefined;
      try {
        await this.#spool.acknowledge(this.#sink, {
          position: this.#at,
          ...(mark === undefined ? {} : { mark }),
          ...(deadLetters.length === 0 ? {} : { deadLetters }),
          ...(aside.length === 0 ? {} : { aside }),
        });
        this.#savingDeadLetters = false;
        this.#note();
      } catch (error) {
        this.#deadLetters = [...deadLetters, ...this.#deadLetters];
        this.#aside = [...aside, ...this.#aside];
        this.#mark ??= mark;
        this.#unsaved = true;
        const { message, next } = asExportError(error, 'storing the position');
        const fields = { error: message, next };
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
