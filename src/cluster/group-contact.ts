// Whether a group has heard of this process of late: while it has, no other process can have begun
// with what this one has. What must stay true: that is told by this machine's own clocks, and both
// count, since the monotonic one stands still while a machine sleeps.

import type { Clock, Log } from '../contracts/index.ts';

/** A moment by both clocks. */
export interface SentAt {
  readonly monotonic: number;
  readonly now: number;
}

/** Of the session: who was not heard for so long asks for nothing more, which leaves an answer time to come. */
const silentShareMax = 2 / 3;

/** What it is told by. */
interface HearingTools {
  readonly clock: Clock;
  readonly log: Log;
}

/** What is known of when the group has heard of this process. */
export class GroupContact {
  readonly #sessionMs: number;
  readonly #tools: HearingTools;
  #last: SentAt = { monotonic: Number.NEGATIVE_INFINITY, now: Number.NEGATIVE_INFINITY };
  #isSilenceTold = false;

  constructor(sessionMs: number, tools: HearingTools) {
    this.#sessionMs = sessionMs;
    this.#tools = tools;
  }

  /** When what the group has answered last was sent. */
  get last(): SentAt {
    return this.#last;
  }

  /** When that was sent, epoch milliseconds; null: the group has not answered yet. */
  get heardAt(): number | null {
    const { now } = this.#last;
    return Number.isFinite(now) ? now : null;
  }

  /** The group has answered what was sent then. */
  note(sentAt: SentAt): void {
    this.#last = sentAt;
  }

  /**
   * True while no successor can have begun. Told in the log when that ends, and when it is so again.
   */
  readonly hasContact = (): boolean => {
    const { clock, log } = this.#tools;
    const { monotonic, now } = this.#last;
    const silentMs = Math.max(clock.monotonic() - monotonic, clock.now() - now);
    const hasContact = silentMs < this.#sessionMs * silentShareMax;
    if (hasContact === this.#isSilenceTold) {
      if (hasContact)
        log.info(
          'group_recovered',
          'the group coordinator responds again; polling and sending resumed',
        );
      else {
        const fields = { silent_ms: silentMs };
        log.warn(
          'group_unreachable',
          'the group coordinator does not respond; polling and sending paused',
          fields,
        );
      }
      this.#isSilenceTold = !hasContact;
    }
    return hasContact;
  };
}
