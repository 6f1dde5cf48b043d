// The live tail of a shard, which its process has and the one that has started it shows: a view is
// opened, asked what has come, and let go of, by messages between the two. What must stay true: one
// is asked again only once it has answered, so that what is on its way is bounded.

import { ExportError } from '../contracts/index.ts';
import type { EventTap, TailTake, TailView, TailWish } from '../watch/running-status.ts';
import { type FromTurn, receivedError, sentError, type ToTurn } from './shard-messages.ts';

/** Views of one shard, for whoever has started its process. */
export class ShardTails {
  readonly #say: (message: ToTurn) => void;
  readonly #asked = new Map<number, PromiseWithResolvers<TailTake>>();
  #last = 0;

  constructor(say: (message: ToTurn) => void) {
    this.#say = say;
  }

  /** Opens one, which is let go of with the signal. */
  open(wish: TailWish, gone: AbortSignal): TailView {
    this.#last += 1;
    const id = this.#last;
    this.#say({ say: 'tail', id, wish });
    const letGo = () => {
      this.#say({ say: 'close', id });
      this.#asked.get(id)?.reject(gone.reason);
      this.#asked.delete(id);
    };
    gone.addEventListener('abort', letGo, { once: true });
    return {
      take: () => {
        const asked = Promise.withResolvers<TailTake>();
        this.#asked.set(id, asked);
        this.#say({ say: 'take', id });
        return asked.promise;
      },
    };
  }

  /** What the process of the shard says of one. */
  heard(message: FromTurn): void {
    if (message.say === 'took') this.#asked.get(message.id)?.resolve(message.take);
    if (message.say === 'not taken') {
      this.#asked.get(message.id)?.reject(receivedError(message.error));
    }
  }

  /** Its process has ended. */
  end(): void {
    for (const asked of this.#asked.values()) asked.reject(nothing());
  }
}

/** Views in the process of a shard, as they are asked for. */
export class AskedTails {
  readonly #tap: () => EventTap | null;
  readonly #say: (message: FromTurn) => void;
  readonly #views = new Map<number, { readonly view: TailView; readonly over: AbortController }>();

  constructor(tap: () => EventTap | null, say: (message: FromTurn) => void) {
    this.#tap = tap;
    this.#say = say;
  }

  heard(message: ToTurn): void {
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

  /** Where that fails, the first question is told. */
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
