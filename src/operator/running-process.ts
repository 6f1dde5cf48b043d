// A process of this machine holds the state directory: a request is a row of its database
// (hold/requests.ts), which that process looks for several times a second. Invariant: the row is
// removed together with the look that finds no answer, so that no later process carries it out.

import type { Config } from '../config/index.ts';
import { ExportError, type JsonObject } from '../contracts/index.ts';
import { endedFirst, holderOf, type OperatorRequest, Store } from '../hold/index.ts';
import { systemClock } from '../tools/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { storedHere } from './stored.ts';

const lookEveryMs = 50;
const patienceMs = 20_000;

/** Reads the state directory beside the process, and leaves requests to it. */
export class RunningProcess implements Adapter {
  readonly holder: string;
  readonly #config: Config;

  constructor(config: Config, holder: string) {
    this.#config = config;
    this.holder = holder;
  }

  async look<T>(read: (stored: Stored) => Promise<T> | T): Promise<T> {
    return await read(storedHere(this.#config));
  }

  async carryOut(name: string, wish: OperatorRequest): Promise<JsonObject | null> {
    const { state } = this.#config;
    const clock = systemClock();
    using store = new Store(state);
    const row = store.requests.ask(name, wish, clock.now());
    const deadline = clock.monotonic() + patienceMs;
    let answer: JsonObject | null = null;
    let hasEnded = false;
    while (answer === null && !hasEnded && clock.monotonic() < deadline) {
      await clock.sleep(lookEveryMs);
      hasEnded = holderOf(state.dir) === null;
      answer = answerIn(store, row);
    }
    let isThere = true;
    answer = store.transaction(() => {
      const last = answerIn(store, row);
      isThere = last !== null || store.requests.isOpen(row);
      store.requests.withdraw(row);
      return last;
    });
    if (answer !== null) return answer;
    // The process may have carried the request out before it ended; other changes have their answer with them.
    if (hasEnded && wish.what === 'give_up') throw endedFirst(name, this.holder);
    if (hasEnded) return null;
    throw unanswered(this.holder, name, isThere && isWithdrawable(wish));
  }
}

/** True for a request that is carried out with its answer, and so not any more. */
function isWithdrawable({ what }: OperatorRequest): boolean {
  return what !== 'retry' && what !== 'give_up';
}

function answerIn(store: Store, row: number): JsonObject | null {
  return store.requests.all().find(({ id }) => id === row)?.answer ?? null;
}

function unanswered(holder: string, name: string, isWithdrawn: boolean): ExportError {
  const result = isWithdrawn
    ? 'Nothing was changed.'
    : 'The process may carry it out all the same: check with `sluice status` before you repeat it.';
  return new ExportError('state_locked', `request to ${holder} about ${name}: no response`, {
    next: `The process may be shutting down, or another command holds the lock; retry when it has finished. ${result}`,
  });
}
