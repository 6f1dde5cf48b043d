// What a command asks of the process that runs with the config: a row of the state database
// (requests.ts), which that process looks for each second; with a state in Kafka, and where nothing
// runs on this machine, a record for whoever works (remote.ts). What must stay true: what was not
// carried out while somebody waited for it is taken back, so that nothing is moved long after it
// was asked for.

import type { z } from 'zod';
import type { Config } from '../../config/config.ts';
import { type ErrorCode, ExportError, errorCodes } from '../../contracts/errors.ts';
import { isObject, type JsonObject } from '../../contracts/json.ts';
import { holderOf } from '../../hold/lock.ts';
import type { Wish } from '../../hold/requests.ts';
import { changeState, Store } from '../../hold/store.ts';
import { systemClock } from '../../tools/clock.ts';
import { askRemote, isRemote } from './remote.ts';

const lookEveryMs = 50;
const patienceMs = 20_000;

/** True where a process may carry out what is asked: here, or on any machine with a state in Kafka. */
export function isAtWork(config: Config): boolean {
  return holderOf(config.state.dir) !== null || isRemote(config);
}

/** Has whoever is at work do what is asked; returns the answer. Throws what it failed with. */
export async function askAtWork<T>(
  config: Config,
  {
    name,
    wish,
    shape,
  }: { readonly name: string; readonly wish: Wish; readonly shape: z.ZodType<T> },
): Promise<T> {
  const asked = isRemote(config) ? askRemote(config, name, wish) : askBeside(config, name, wish);
  const answer = shape.safeParse(successOf(await asked)).data;
  if (answer !== undefined) return answer;
  const what = `request about ${name}: the response cannot be read`;
  throw new ExportError('broken_invariant', what, {
    next: 'The process may be of another version. Check the result with `sluice status`.',
  });
}

async function askBeside(config: Config, name: string, wish: Wish): Promise<JsonObject> {
  const { dir } = config.state;
  const clock = systemClock();
  const store = new Store(config.state);
  try {
    const id = store.requests.ask(name, wish, clock.now());
    try {
      const deadline = clock.monotonic() + patienceMs;
      while (clock.monotonic() < deadline) {
        const answer = store.requests.all().find((request) => request.id === id)?.answer ?? null;
        if (answer !== null) return answer;
        await clock.sleep(lookEveryMs);
      }
    } finally {
      store.requests.withdraw(id);
    }
    throw new ExportError(
      'state_locked',
      `request to ${holderOf(dir) ?? 'the process that ran'} about ${name}: no response`,
      { next: 'It may be ending, or be another command that holds the state: try again after it.' },
    );
  } finally {
    store.close();
  }
}

/** Leaves it to the next process. */
export function askLater({ state }: Config, name: string, wish: Wish): void {
  changeState(state, ({ requests }) => requests.ask(name, wish, systemClock().now()));
}

function successOf(answer: JsonObject): JsonObject {
  const { error } = answer;
  if (!isObject(error)) return answer;
  const said = String(error.code);
  const code = Object.hasOwn(errorCodes, said) ? (said as ErrorCode) : 'broken_invariant';
  throw new ExportError(code, String(error.message), { next: String(error.next) });
}
