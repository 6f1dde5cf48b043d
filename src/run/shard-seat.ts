// A process that another one has started for one shard (shard-keeper.ts): what it knows of the
// membership of that one, and what it tells it. What must stay true: it never outlives the one that
// has started it, nobody else would know of it; and it polls only while the group has heard of that
// one, told by the clock that both share.

import { Hearing } from '../cluster/hearing.ts';
import type { Membership } from '../cluster/ownership.ts';
import type { Config } from '../config/config.ts';
import { ofShard } from '../config/shards.ts';
import { type ExportError, UsageError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { Pipeline } from '../pipeline.ts';
import type { Moment } from '../watch/live.ts';
import {
  type FromShard,
  receivedError,
  shardVariable,
  type ToShard,
  uptimeMs,
} from './shard-messages.ts';

/** What the process of a shard has from the one that has started it. */
export interface ShardSeat {
  readonly shard: number;
  /** What it has of a config, in which all else is for whoever has started it. */
  part(config: Config): Config;
  /** What it may work by; `lost` is called once, when another process has the shard. */
  membership(sessionMs: number, tools: SeatTools, lost: (why: ExportError) => void): Membership;
  /** Tells how it stands from now on, and does what is asked there, until closed. */
  show(look: () => Moment, retry: Pipeline['askNow']): { close(): void };
  /** The work is over. */
  leave(): void;
}

interface SeatTools {
  readonly clock: Clock;
  readonly log: Log;
}

const tellEveryMs = 1_000;

/** The seat of this process; null: it was started for none. Throws a UsageError where nobody has started it so. */
export function takeSeat(env: Readonly<Record<string, string | undefined>>): ShardSeat | null {
  const given = env[shardVariable];
  if (given === undefined) return null;
  if (process.send === undefined) {
    throw new UsageError(
      `${shardVariable} is set, which only sluice sets for those it starts; unset it`,
    );
  }
  // Whoever has started it is gone, and with it the membership: this ends as a crash does, which loses nothing.
  const abandoned = () => process.exit(1);
  process.once('disconnect', abandoned);
  const shard = Number(given);
  let look: () => Moment | null = () => null;
  let isShown = false;
  const tell = () => send({ say: 'standing', moment: look() });
  const telling = setInterval(tell, tellEveryMs);
  tell();
  return {
    shard,
    part(config) {
      const { state, ...part } = ofShard(config, shard);
      isShown = config.status !== null;
      const kafka = state.kafka && { ...state.kafka, instance: undefined };
      return { ...part, state: { ...state, kafka }, status: null };
    },
    membership: (sessionMs, tools, lost) => new Seat(sessionMs, tools, lost),
    show(shown, retry) {
      // Of thousands of streams it is too much to be told for nobody.
      if (isShown) look = shown;
      const heard = (message: ToShard) => {
        if (message.say === 'ask now') retry(message.name);
      };
      process.on('message', heard);
      return {
        close() {
          look = () => null;
          process.off('message', heard);
        },
      };
    },
    leave() {
      clearInterval(telling);
      process.off('disconnect', abandoned);
      process.disconnect?.();
    },
  };
}

function send(message: FromShard): void {
  // Where the channel is gone, this process ends by that.
  process.send?.(message, undefined, undefined, () => undefined);
}

class Seat implements Membership {
  readonly #hearing: Hearing;
  readonly #asked = new Map<number, PromiseWithResolvers<number>>();
  readonly #forget: () => void;
  #last = 0;

  constructor(sessionMs: number, tools: SeatTools, lost: (why: ExportError) => void) {
    this.#hearing = new Hearing(sessionMs, tools);
    const heard = (message: ToShard) => {
      switch (message.say) {
        case 'heard': {
          const agoMs = uptimeMs() - message.uptimeMs;
          this.#hearing.note({ monotonic: tools.clock.monotonic() - agoMs, now: message.now });
          return;
        }
        case 'confirmed':
          this.#asked.get(message.id)?.resolve(message.givenUp);
          return;
        case 'refused':
          this.#asked.get(message.id)?.reject(receivedError(message.error));
          return;
        case 'lost':
          lost(receivedError(message.error));
      }
    };
    process.on('message', heard);
    this.#forget = () => process.off('message', heard);
  }

  get isHeard(): () => boolean {
    return this.#hearing.isHeard;
  }

  readonly confirm = async (signal?: AbortSignal): Promise<number> => {
    signal?.throwIfAborted();
    this.#last += 1;
    const id = this.#last;
    const answer = Promise.withResolvers<number>();
    this.#asked.set(id, answer);
    send({ say: 'confirm', id });
    const stop = () => answer.reject(signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return await answer.promise;
    } finally {
      this.#asked.delete(id);
      signal?.removeEventListener('abort', stop);
    }
  };

  async close(): Promise<void> {
    this.#forget();
  }
}
