// Whether a process may send: only while no successor can have begun to send the same. What must
// stay true: a process that was paused for longer than the session sends nothing before the group,
// and after a lost membership the log of the shard, has confirmed that the shard is still its own.

import type { Clock, SendTurn } from '../contracts/index.ts';
import type { Membership } from './ownership.ts';

/** How often a closed turn is looked at. */
const lookEveryMs = 100;

/**
 * The turn of a membership. `confirm` resolves where this process still owns what it sends from, and
 * rejects with `state_locked` where another one has had it.
 */
export function sendTurnOf(
  membership: Pick<Membership, 'hasContact' | 'givenUp'>,
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
