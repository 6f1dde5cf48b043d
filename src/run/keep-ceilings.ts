// The ceilings that the config sets, over restarts and takeovers: which requests went is noted in the state, and counts for
// whoever goes on from it. What must stay true: whoever polls has taken over what was noted before its first request.

import type { Spool } from '../contracts/index.ts';
import { lookInto } from '../hold/index.ts';
import type { Throttles } from '../upstream/index.ts';

const kind = 'throttle';
const name = 'used';
/** What a process that is killed has asked for within this time, its successor does not know of. */
const noteEveryMs = 1_000;

/** Counts what the state of a directory tells of. */
export function resumeCeilings(dir: string, throttles: Throttles): void {
  const held = lookInto(dir, null, (store) => store.noted(kind).get(name) ?? null);
  if (held !== null) throttles.resume(held);
}

/** Notes it from now on, until closed, and then once more. */
export function keepCeilings(spool: Spool, throttles: Throttles): { close(): void } {
  const note = () => {
    const used = throttles.used();
    if (used !== null) spool.note(kind, name, used);
  };
  const noting = setInterval(note, noteEveryMs);
  return {
    close() {
      clearInterval(noting);
      note();
    },
  };
}
