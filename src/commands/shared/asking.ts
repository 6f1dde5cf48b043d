// What a command asks of the process that runs with the config: a row of the state database
// (requests.ts), which that process looks for each second. What must stay true: what was not
// carried out while somebody waited for it is taken back, so that nothing is moved long after it
// was asked for.

import type { Config } from '../../config/config.ts';
import { type ErrorCode, ExportError } from '../../contracts/errors.ts';
import { isObject, type JsonObject } from '../../contracts/json.ts';
import { holderOf } from '../../hold/lock.ts';
import type { Wish } from '../../hold/requests.ts';
import { changeIn, Store } from '../../hold/store.ts';
import { systemClock } from '../../tools/clock.ts';

const lookEveryMs = 50;
const patienceMs = 20_000;

/** Has the running process do what is asked; returns its answer. Throws what it failed with. */
export async function askBeside(config: Config, name: string, wish: Wish): Promise<JsonObject> {
  const { dir } = config.state;
  const clock = systemClock();
  const store = new Store(config.state);
  try {
    const id = store.requests.ask(name, wish, clock.now());
    try {
      const deadline = clock.monotonic() + patienceMs;
      while (clock.monotonic() < deadline) {
        const answer = store.requests.all().find((request) => request.id === id)?.answer ?? null;
        if (answer !== null) return successOf(answer);
        await clock.sleep(lookEveryMs);
      }
    } finally {
      store.requests.withdraw(id);
    }
    throw new ExportError(
      'state_locked',
      `asking ${holderOf(dir) ?? 'the process that ran'} about ${name}: it does not answer`,
      { next: 'It may be ending, or be another command that holds the state: try again after it.' },
    );
  } finally {
    store.close();
  }
}

/** Leaves it to the next process. */
export function askLater({ state }: Config, name: string, wish: Wish): void {
  changeIn(state, ({ requests }) => requests.ask(name, wish, systemClock().now()));
}

function successOf(answer: JsonObject): JsonObject {
  const { error } = answer;
  if (!isObject(error)) return answer;
  // Written by the process that runs, which is of this program.
  const code = String(error.code) as ErrorCode;
  throw new ExportError(code, String(error.message), { next: String(error.next) });
}
