// What is known of one receiver's habits, learnt from its connections: whether it ends its side
// when we have ended ours, which shows that its program has read everything, and how fast it reads.
// What must stay true: a receiver that has answered once is one that answers: if it does not answer
// later, it hangs, and nothing is believed to have arrived.
//
//   unknown ──answers our FIN──▶ answers      settled by its FIN only
//      └──says nothing for long, or resets at once each time──▶ silent      settled by the window
//   silent ──answers after all, asked each hour──▶ answers
//
// A receiver that hung from its first connection on looks like a silent one: hence the patience.

import type { Notice } from '../../../src/contracts/sink.ts';
import type { Log } from '../../../src/contracts/tools.ts';

/** How a batch is settled: see `confirm` in the settings of the sink. */
type Confirm = 'auto' | 'window' | 'close';

/** When a batch counts as delivered, and how long is waited for that. */
export interface Settling {
  readonly confirm: Confirm;
  /** `close`: how long after its first byte a connection ends. `window`: how long it must hold. */
  readonly windowMs: number;
  /** A connection on which nothing moves for so long, though something should, is given up. */
  readonly stallMs: number;
}

/** Of `stallMs`: how long a receiver may say nothing before it is taken to be silent. */
const patience = 1.5;
const askAgainMs = 3_600_000;
/** A reset so soon after our FIN may be how this receiver closes, if it does so each time. */
const abruptMs = 1_000;
const abruptMax = 3;

// What a connection may carry before the receiver has to confirm it. A slow one must be able to
// read that within `stallMs`, so it begins with little and grows where the answer comes fast. It
// bounds what is repeated, too.
const bytesFirst = 512 * 1024;
const bytesLeast = 64 * 1024;
const bytesMost = 256 * 1024 * 1024;

/** See the head of this file. */
export class Habit {
  readonly settling: Settling;
  readonly #log: Log;
  #known: 'unknown' | 'answers' | 'silent' = 'unknown';
  #abrupt = 0;
  #bytesMax = bytesFirst;

  constructor(settling: Settling, log: Log) {
    this.settling = settling;
    this.#log = log;
  }

  /** What settles a batch now. */
  get settlesBy(): 'window' | 'close' {
    const { confirm } = this.settling;
    if (confirm !== 'auto') return confirm;
    return this.#known === 'silent' ? 'window' : 'close';
  }

  /** Bytes after which a connection is to be ended. */
  get bytesMax(): number {
    return this.settlesBy === 'close' ? this.#bytesMax : Number.POSITIVE_INFINITY;
  }

  /** How old a connection may become before it is ended, though nothing on it waits for that. */
  get ageMsMax(): number {
    return this.#known === 'silent' ? askAgainMs : Number.POSITIVE_INFINITY;
  }

  /** How long the receiver may take to answer our FIN. */
  get answerMsMax(): number {
    const { confirm, stallMs } = this.settling;
    return confirm === 'auto' && this.#known === 'unknown' ? stallMs * patience : stallMs;
  }

  /** What an operator should know of it; null: nothing. */
  get notice(): Notice | null {
    return this.#known === 'silent' ? silent : null;
  }

  /** It has ended its side `tookMs` after ours, on a connection that carried so many bytes. */
  answered(tookMs: number, bytes: number): void {
    this.#abrupt = 0;
    if (this.#known === 'silent')
      this.#log.info('receiver_confirms', 'the receiver confirms messages again');
    this.#known = 'answers';
    const { stallMs } = this.settling;
    if (tookMs > stallMs / 4) this.#bytesMax = Math.max(bytesLeast, this.#bytesMax / 2);
    else if (bytes >= this.#bytesMax && tookMs < stallMs / 8) {
      this.#bytesMax = Math.min(bytesMost, this.#bytesMax * 2);
    }
  }

  /** It has said nothing for `answerMsMax`. Returns what becomes of what the connection carried. */
  unanswered(): 'delivered' | 'retry' {
    this.#bytesMax = bytesLeast;
    if (this.settling.confirm !== 'auto' || this.#known === 'answers') return 'retry';
    // Healthy for far longer than the window, which is all that can be known of such a receiver.
    this.#becomesSilent();
    return 'delivered';
  }

  /** The connection broke `afterMs` after our FIN. */
  broke(afterMs: number): void {
    if (this.settling.confirm !== 'auto' || this.#known !== 'unknown') return;
    this.#abrupt = afterMs < abruptMs ? this.#abrupt + 1 : 0;
    if (this.#abrupt >= abruptMax) this.#becomesSilent();
  }

  #becomesSilent(): void {
    if (this.#known === 'silent') return;
    this.#known = 'silent';
    this.#log.warn('receiver_does_not_confirm', silent.what, { next: silent.next });
  }
}

const silent: Notice = {
  what: 'the receiver does not close a connection when sluice does, so nothing confirms messages; delivered means healthy for resend_window',
  next: 'Events are lost if it hangs for longer and is then reset. Write confirm: window if that is known and right.',
};
