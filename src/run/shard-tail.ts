// The live tail of a shard: its worker has the events, and the supervisor shows them. Messages between the two open a view,
// request its new events and close it. Invariant: the next request is sent only after the answer to the last one, so the
// number of events on their way is bounded.

import { ExportError } from '../contracts/index.ts';
import type { EventTap, TailTake, TailView, TailWish } from '../watch/running-status.ts';
import { type FromTurn, receivedError, sentError, type ToTurn } from './shard-messages.ts';

/** Views of one shard in the supervisor. */
export class ShardTails {
  readonly #say: (message: ToTurn) => void;
  readonly #waiting = new Map<number, PromiseWithResolvers<TailTake>>();
  #last = 0;

  constructor(say: (message: ToTurn) => void) {
    this.#say = say;
  }

  /** Opens a view, which closes with the signal. */
  open(wish: TailWish, gone: AbortSignal): TailView {
    this.#last += 1;
    const id = this.#last;
    this.#say({ say: 'tail', id, wish });
    const close = () => {
      this.#say({ say: 'close', id });
      this.#waiting.get(id)?.reject(gone.reason);
      this.#waiting.delete(id);
    };
    gone.addEventListener('abort', close, { once: true });
    return {
      take: () => {
        const next = Promise.withResolvers<TailTake>();
        this.#waiting.set(id, next);
        this.#say({ say: 'take', id });
        return next.promise;
      },
    };
  }

  /** Applies a message of the worker. */
  received(message: FromTurn): void {
    if (message.say === 'took') this.#waiting.get(message.id)?.resolve(message.take);
    if (message.say === 'not taken') {
      this.#waiting.get(message.id)?.reject(receivedError(message.error));
    }
  }

  /** The worker has ended. */
  end(): void {
    for (const next of this.#waiting.values()) next.reject(nothing());
  }
}

/** Views of one shard in its worker. */
export class WorkerTails {
  readonly #tap: () => EventTap | null;
  readonly #say: (message: FromTurn) => void;
  readonly #views = new Map<number, { readonly view: TailView; readonly over: AbortController }>();

  constructor(tap: () => EventTap | null, say: (message: FromTurn) => void) {
    this.#tap = tap;
    this.#say = say;
  }

  received(message: ToTurn): void {
    switch (message.say) {
      case 'tail':
        this.#open(message.id, message.wish);
        return;
      case 'take':
        void this.#take(message.id);
        return;
      case 'close':
        this.#views.get(message.id)?.over.abort(new Error('no reader any more'));
        this.#views.delete(message.id);
    }
  }

  close(): void {
    for (const { over } of this.#views.values()) over.abort(new Error('the work is over'));
    this.#views.clear();
  }

  /** If that fails, the first request gets the error. */
  #open(id: number, wish: TailWish): void {
    const failing = (error: unknown): TailView => ({ take: () => Promise.reject(error) });
    const open = (): TailView => {
      try {
        return this.#tap()?.open(wish) ?? failing(nothing());
      } catch (error) {
        return failing(error);
      }
    };
    this.#views.set(id, { view: open(), over: new AbortController() });
  }

  async #take(id: number): Promise<void> {
    const found = this.#views.get(id);
    try {
      if (found === undefined) throw nothing();
      this.#say({ say: 'took', id, take: await found.view.take(found.over.signal) });
    } catch (error) {
      this.#say({ say: 'not taken', id, error: sentError(error, 'showing events') });
    }
  }
}

function nothing(): ExportError {
  return new ExportError('config_invalid', 'no events are shown of this shard', {
    next: 'Look again.',
  });
}
