// Whether a group has answered this process recently: while it has, no successor can have started, so this process may
// poll and send. Invariants: the time since is measured by the clocks of this machine, and the longer one counts, since
// the monotonic clock stops while a machine sleeps; a process that was paused for longer than the session sends nothing
// before the group, and after a lost membership the log of the shard, has confirmed that the shard is still its own.

import type { Clock, Log, SendTurn } from '../contracts/index.ts';

/** A moment by both clocks. */
export interface SentAt {
  readonly monotonic: number;
  readonly now: number;
}

/** Share of the session. After so long without an answer no new request starts, so that open ones can end in time. */
const silentShareMax = 2 / 3;

/** How often a closed turn is looked at. */
const lookEveryMs = 100;

/** Dependencies. */
interface ContactTools {
  readonly clock: Clock;
  readonly log: Log;
}

/** The last contact with the group. */
export class GroupContact {
  readonly #sessionMs: number;
  readonly #tools: ContactTools;
  #last: SentAt = { monotonic: Number.NEGATIVE_INFINITY, now: Number.NEGATIVE_INFINITY };
  #failure: string | null = null;
  /** The silence as logged last; null: there is contact. */
  #logged: { readonly why: string | null; readonly silentMs: number } | null = null;

  constructor(sessionMs: number, tools: ContactTools) {
    this.#sessionMs = sessionMs;
    this.#tools = tools;
  }

  /** The time of the last request that the group has answered. */
  get last(): SentAt {
    return this.#last;
  }

  /** The same in epoch milliseconds; null: no answer yet. */
  get answeredAt(): number | null {
    const { now } = this.#last;
    return Number.isFinite(now) ? now : null;
  }

  /** The group has answered a request of this time. */
  note(sentAt: SentAt): void {
    this.#last = sentAt;
    this.#failure = null;
  }

  /** Why the last request since then failed; null: none has failed. */
  get failure(): string | null {
    return this.#failure;
  }

  /** A request has failed: the reason of a silence that may follow. */
  failed(why: string): void {
    this.#failure = why;
  }

  /**
   * True while no successor can have started. Each change is logged, and once per session another
   * reason of the same silence: the first one may be a consequence, such as a closed connection.
   */
  readonly hasContact = (): boolean => {
    const { clock, log } = this.#tools;
    const { monotonic, now } = this.#last;
    const silentMs = Math.max(clock.monotonic() - monotonic, clock.now() - now);
    const hasContact = silentMs < this.#sessionMs * silentShareMax;
    if (!hasContact) this.#logSilence(silentMs);
    else if (this.#logged !== null) {
      this.#logged = null;
      log.info(
        'group_recovered',
        'the group coordinator responds again; polling and sending resumed',
      );
    }
    return hasContact;
  };

  #logSilence(silentMs: number): void {
    const why = this.#failure;
    const logged = this.#logged;
    if (logged !== null && (logged.why === why || silentMs < logged.silentMs + this.#sessionMs))
      return;
    this.#logged = { why, silentMs };
    this.#tools.log.warn(
      'group_unreachable',
      'the group coordinator does not respond; polling and sending paused',
      { silent_ms: silentMs, ...(why === null ? {} : { error: why }) },
    );
  }
}

/**
 * The turn of a membership. `confirm` resolves where this process still owns what it sends from, and
 * rejects with `state_locked` where another one has had it.
 */
export function sendTurnOf(
  membership: { readonly hasContact: () => boolean; readonly givenUp: number },
  confirm: (signal: AbortSignal) => Promise<unknown>,
  clock: Clock,
): SendTurn {
  /** How often the group had given this process up when it was confirmed last. */
  let confirmedAt = membership.givenUp;
  let isSilent = false;
  const isGiven = () => {
    isSilent ||= !membership.hasContact();
    return !isSilent && membership.givenUp === confirmedAt;
  };
  return {
    isGiven,
    async wait(signal) {
      while (!isGiven()) {
        signal.throwIfAborted();
        if (membership.hasContact()) {
          const { givenUp } = membership;
          await confirm(signal);
          isSilent = false;
          confirmedAt = givenUp;
        } else {
          await clock.sleep(lookEveryMs, signal);
        }
      }
    },
  };
}
