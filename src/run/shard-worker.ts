// A process that another one has started for one shard (shard-supervisor.ts): what it knows of the
// membership of that one, and what it tells it. What must stay true: it never outlives the one that
// has started it, nobody else would know of it; and it polls only while the group has heard of that
// one, told by the clock that both share.

import { GroupContact } from '../cluster/group-contact.ts';
import type { Membership } from '../cluster/ownership.ts';
import type { Config } from '../config/config.ts';
import { ofShard } from '../config/shards.ts';
import { type ExportError, UsageError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { Pipeline } from '../pipeline.ts';
import { systemClock } from '../tools/clock.ts';
import type { StatusMoment } from '../watch/live.ts';
import type { EventTap } from '../watch/tail.ts';
import { uptimeMs } from './shard-child.ts';
import {
  type FromShard,
  receivedError,
  sentError,
  shardVariable,
  type ToShard,
} from './shard-messages.ts';
import { AskedTails } from './shard-tail.ts';

/** What the process of a shard has from the one that has started it. */
export interface ShardSeat {
  readonly shard: number;
  /** What its log lines have besides. */
  readonly fields: { readonly shard: number };
  /** What it has of a config, in which all else is for whoever has started it. */
  part(config: Config): Config;
  /** What it may work by; `lost` is called once, when another process has the shard. */
  membership(sessionMs: number, tools: SeatTools, lost: (why: ExportError) => void): Membership;
  /** Tells how it stands from now on, and does what is asked there, until closed. */
  show(shown: SeatShown): { close(): void };
  /** Reports why the process ends by itself. */
  ends(why: unknown): void;
  /** Whether anybody may want to see events (`status.tail`). */
  readonly isTailed: boolean;
  /** The work is over. */
  leave(): void;
}

interface SeatShown {
  readonly look: () => StatusMoment;
  readonly tap: () => EventTap | null;
  readonly retry: Pipeline['askNow'];
}

interface SeatTools {
  readonly clock: Clock;
  readonly log: Log;
}

/** A process, as far as its seat is concerned. */
export interface SeatedProcess {
  /** Left out: nobody has started it with a channel. */
  readonly send?:
    | ((message: FromShard, to: undefined, how: undefined, sent: () => void) => unknown)
    | undefined;
  on(event: 'message', received: (message: ToShard) => void): unknown;
  once(event: 'disconnect', received: () => void): unknown;
  off(event: string, received: (message: ToShard) => void): unknown;
  disconnect?(): void;
  exit(code: number): void;
}

const reportEveryMs = 1_000;

/** The seat of a process; null: it was started for none. Throws a UsageError where nobody has started it so. */
export function takeSeat(
  env: Readonly<Record<string, string | undefined>>,
  own: SeatedProcess = process,
  clock: Clock = systemClock(),
): ShardSeat | null {
  const given = env[shardVariable];
  if (given === undefined) return null;
  if (own.send === undefined) {
    throw new UsageError(
      `${shardVariable} is set, which only sluice sets for those it starts; unset it`,
    );
  }
  // Whoever has started it is gone, and with it the membership: this ends as a crash does, which loses nothing.
  const abandoned = () => own.exit(1);
  own.once('disconnect', abandoned);
  const shard = Number(given);
  let look: () => StatusMoment | null = () => null;
  let runs = false;
  let status: Config['status'] = null;
  const over = new AbortController();
  const report = async () => {
    for (;;) {
      send(own, { say: 'standing', runs, moment: look() });
      await clock.sleep(reportEveryMs, over.signal);
    }
  };
  report().catch((error) => {
    if (!over.signal.aborted) throw error;
  });
  return {
    ...{ shard, fields: { shard } },
    part(config) {
      const { state, ...part } = ofShard(config, shard);
      status = config.status;
      const starter = { instance: state.kafka?.instance, pid: process.ppid };
      const kafka = state.kafka && { ...state.kafka, instance: undefined, starter };
      return { ...part, state: { ...state, kafka }, status: null };
    },
    membership: (sessionMs, tools, lost) => new Seat(own, sessionMs, tools, lost),
    get isTailed() {
      return status?.tail === true;
    },
    ends: (why) => send(own, { say: 'ends', error: sentError(why, 'running') }),
    show(shown) {
      runs = true;
      // Of thousands of streams it is too much to be told for nobody.
      if (status !== null) look = shown.look;
      const tails = new AskedTails(shown.tap, (message) => send(own, message));
      const received = (message: ToShard) => {
        if (message.say === 'ask now') shown.retry(message.name);
        else tails.heard(message);
      };
      own.on('message', received);
      return {
        close() {
          look = () => null;
          tails.close();
          own.off('message', received);
        },
      };
    },
    leave() {
      over.abort();
      own.off('disconnect', abandoned);
      own.disconnect?.();
    },
  };
}

function send(own: SeatedProcess, message: FromShard): void {
  // Where the channel is gone, this process ends by that.
  own.send?.(message, undefined, undefined, () => undefined);
}

class Seat implements Membership {
  readonly #own: SeatedProcess;
  readonly #hearing: GroupContact;
  readonly #asked = new Map<number, PromiseWithResolvers<number>>();
  readonly #forget: () => void;
  #last = 0;
  #givenUp = 0;

  constructor(
    own: SeatedProcess,
    sessionMs: number,
    tools: SeatTools,
    lost: (why: ExportError) => void,
  ) {
    this.#own = own;
    this.#hearing = new GroupContact(sessionMs, tools);
    const received = (message: ToShard) => {
      switch (message.say) {
        case 'heard': {
          const agoMs = uptimeMs() - message.uptimeMs;
          this.#givenUp = message.givenUp;
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
    own.on('message', received);
    this.#forget = () => own.off('message', received);
  }

  get hasContact(): () => boolean {
    return this.#hearing.hasContact;
  }

  get givenUp(): number {
    return this.#givenUp;
  }

  get heardAt(): number | null {
    return this.#hearing.heardAt;
  }

  readonly confirm = async (signal?: AbortSignal): Promise<number> => {
    signal?.throwIfAborted();
    this.#last += 1;
    const id = this.#last;
    const answer = Promise.withResolvers<number>();
    this.#asked.set(id, answer);
    send(this.#own, { say: 'confirm', id });
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
