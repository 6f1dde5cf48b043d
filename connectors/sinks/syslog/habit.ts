// The known behaviour of one receiver, learned from its connections: whether it closes its side when
// sluice has closed its own, which shows that its program has read everything, and how fast it
// reads. Invariant: a receiver that has answered once is one that answers: if it does not answer
// later, it hangs, and nothing counts as arrived.
//
//   unknown ──answers our FIN──▶ answers      settled by its FIN only
//      └──does not answer for long, or resets at once each time──▶ silent      settled by the window
//   silent ──answers after all, tested each hour──▶ answers
//
// A receiver that hung from its first connection on looks like a silent one: hence the patience.

import type { Log, Notice } from '../../../src/contracts/index.ts';

/** How a batch is settled: see `confirm` in the settings of the sink. */
type Confirm = 'auto' | 'window' | 'close';

/** When a batch counts as delivered, and how long to wait for it. */
export interface Settling {
  readonly confirm: Confirm;
  /** `close`: age at which a connection is closed. `window`: how long it must stay healthy. */
  readonly windowMs: number;
  /** A connection without expected progress for this long is given up. */
  readonly stallMs: number;
}

/** Times `stallMs`: how long a receiver may not answer before it counts as silent. */
const patience = 1.5;
const askAgainMs = 3_600_000;
/**
 * A reset this soon after the FIN may be the receiver's way of closing, if it happens each time.
 */
const abruptMs = 1_000;
const abruptMax = 3;

// Bytes that a connection may carry before the receiver must confirm them. A slow receiver must
// read them within `stallMs`, so the limit starts small and grows with fast answers. It also bounds
// the repeated events.
const bytesFirst = 512 * 1024;
const bytesLeast = 64 * 1024;
const bytesMost = 256 * 1024 * 1024;
/** An answer is fast within an eighth of `stallMs`, so this many times the bytes take at most half. */
const growth = 4;

/** The behaviour of one receiver; see the file's head. */
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

  /** How a batch is settled now. */
  get settlesBy(): 'window' | 'close' {
    const { confirm } = this.settling;
    if (confirm !== 'auto') return confirm;
    return this.#known === 'silent' ? 'window' : 'close';
  }

  /** Bytes after which a connection is to be closed. */
  get bytesMax(): number {
    return this.settlesBy === 'close' ? this.#bytesMax : Number.POSITIVE_INFINITY;
  }

  /** Age at which a connection is closed, although no batch waits for that. */
  get ageMsMax(): number {
    return this.#known === 'silent' ? askAgainMs : Number.POSITIVE_INFINITY;
  }

  /** How long the receiver may take to answer the FIN. */
  get answerMsMax(): number {
    const { confirm, stallMs } = this.settling;
    return confirm === 'auto' && this.#known === 'unknown' ? stallMs * patience : stallMs;
  }

  /** A notice for the operator; null: none. */
  get notice(): Notice | null {
    return this.#known === 'silent' ? silent : null;
  }

  /** It has closed its side `tookMs` after sluice, on a connection that carried `bytes`. */
  answered(tookMs: number, bytes: number): void {
    this.#abrupt = 0;
    if (this.#known === 'silent')
      this.#log.info('receiver_confirms', 'the receiver confirms messages again');
    this.#known = 'answers';
    const { stallMs } = this.settling;
    if (tookMs > stallMs / 4) this.#bytesMax = Math.max(bytesLeast, this.#bytesMax / 2);
    else if (bytes >= this.#bytesMax && tookMs < stallMs / 8) {
      this.#bytesMax = Math.min(bytesMost, this.#bytesMax * growth);
    }
  }

  /** It has not answered for `answerMsMax`. Returns the result of the connection's batches. */
  unanswered(): 'delivered' | 'retry' {
    this.#bytesMax = bytesLeast;
    if (this.settling.confirm !== 'auto' || this.#known === 'answers') return 'retry';
    // Healthy for far longer than the window: the strongest evidence such receivers give.
    this.#becomesSilent();
    return 'delivered';
  }

  /** The connection broke `afterMs` after the FIN. */
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
