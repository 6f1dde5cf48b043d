// No process runs with the config: the command itself has the state for the moment of the change. A
// state in Kafka is taken over for that, as by a process that starts and ends. Invariant: no other
// process has the state meanwhile, and requests that concern a running pipeline are not answered here.

import type { Config } from '../config/index.ts';
import { ExportError, type JsonObject } from '../contracts/index.ts';
import {
  changeState,
  hasState,
  type OperatorRequest,
  type Store,
  takeLock,
} from '../hold/index.ts';
import { forgetDelivered } from '../hold/open.ts';
import { type Journey, type Move, makeMove } from '../run/process.ts';
import { systemClock } from '../tools/index.ts';
import { notHere } from '../watch/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { storedHere, withCopy } from './stored.ts';

/** Reads the state directory or a copy from Kafka, and makes changes by itself. */
export class StateDirectory implements Adapter {
  readonly holder = null;
  readonly #config: Config;
  readonly #whole: Config;
  readonly #isOwn: boolean;

  /** `whole`: the config of all shards, of which `config` is a part. `isOwn`: this process has the state already. */
  constructor(
    config: Config,
    { whole, isOwn = false }: { readonly whole: Config; readonly isOwn?: boolean },
  ) {
    this.#config = config;
    this.#whole = whole;
    this.#isOwn = isOwn;
  }

  async look<T>(read: (stored: Stored) => Promise<T> | T): Promise<T> {
    const config = this.#config;
    const { kafka } = config.state;
    if (kafka !== null && !this.#isOwn) {
      return await withCopy(config, { kafka, holder: null }, read);
    }
    return await read(storedHere(config));
  }

  async carryOut(name: string, wish: OperatorRequest): Promise<JsonObject | null> {
    switch (wish.what) {
      case 'retry':
        await this.#leave(name, wish);
        return { asked: null };
      case 'give_up':
        return { added: null };
      case 'cut_over':
        this.#refuseEmpty(name);
        // Both sources are read, and stored events delivered, meanwhile.
        return await orNull(async () => {
          const { turnAlone } = await import('./own-journey.ts');
          return await turnAlone(this.#config, this.#whole, { name, wish });
        });
      case 'backfill':
        throw new Error('a backfill is requested by begin_backfill');
      default:
        return await this.#move(name, wish);
    }
  }

  /** Leaves a request to the next process. */
  async #leave(name: string, wish: OperatorRequest): Promise<void> {
    const leave = ({ requests }: Store) => requests.ask(name, wish, systemClock().now());
    const { state } = this.#config;
    if (state.kafka !== null) await this.#owning(async () => changeState(state, leave));
    else if (hasState(state.dir)) changeState(state, leave);
  }

  async #move(name: string, wish: Move): Promise<JsonObject | null> {
    const { state } = this.#config;
    const isOfStream = wish.what === 'rewind' || wish.what === 'reset';
    const deps = { config: this.#config, now: systemClock().now(), isRead: () => false };
    const change = () =>
      changeState(state, (store) => store.transaction(() => makeMove(store, { name, wish }, deps)));
    if (this.#isOwn) return change();
    if (state.kafka !== null) {
      return await this.#owning(async ({ spool }) => {
        const answer = change();
        if (isOfStream) await spool.moved(name);
        return answer;
      });
    }
    this.#refuseEmpty(name);
    return await orNull(async () => {
      using _lock = takeLock(state.dir, { isBrief: true });
      if (isOfStream) forgetDelivered(state.dir, name);
      return change();
    });
  }

  /** Refuses a change without a state: an empty state would be created in a directory that the service does not use. */
  #refuseEmpty(name: string): void {
    const { kafka, dir } = this.#config.state;
    if (this.#isOwn || kafka !== null || hasState(dir)) return;
    throw new ExportError('config_invalid', `request about ${name}${notHere(this.#config)}`, {
      next: 'Nothing was changed. Set state.dir in the config, or $STATE_DIRECTORY as the unit of the service does.',
    });
  }

  /** Works with the state as a process that starts and ends does, and under the same conditions. */
  async #owning<T>(work: (journey: Journey) => Promise<T>): Promise<T | null> {
    // What a journey needs takes long to load.
    const { ownJourney } = await import('./own-journey.ts');
    return await orNull(() => ownJourney(this.#config, this.#whole, work));
  }
}

/** Null where another process has the state by now. */
async function orNull<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ExportError && error.code === 'state_locked') return null;
    throw error;
  }
}
