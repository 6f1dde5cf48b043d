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

/**
 * With the state in Kafka each note is a transaction. So there is none for requests up to this share of a ceiling: the process
 * that takes over leaves them free.
 */
const unnotedShare = 0.1;

/** Notes it from now on, until closed, and then once more. `isInKafka`: a takeover may not know the last requests. */
export function keepCeilings(
  spool: Spool,
  throttles: Throttles,
  { isInKafka }: { readonly isInKafka: boolean },
): { close(): void } {
  const note = (share: number) => {
    const used = throttles.used(share);
    if (used !== null) spool.note(kind, name, used);
  };
  const noting = setInterval(() => note(isInKafka ? unnotedShare : 0), noteEveryMs);
  return {
    close() {
      clearInterval(noting);
      note(0);
    },
  };
}
