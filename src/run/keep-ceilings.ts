// Keeps the ceilings of the config across restarts and takeovers: usage is stored with the state, and the next owner
// counts it. Invariant: a process loads the stored usage before its first request.

import type { Spool } from '../contracts/index.ts';
import { lookInto } from '../hold/index.ts';
import type { Throttles } from '../upstream/index.ts';

const kind = 'throttle';
const name = 'used';
/** The next owner does not know the requests that a killed process made within this time. */
const noteEveryMs = 1_000;

/** Counts the usage stored in a state directory. */
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
