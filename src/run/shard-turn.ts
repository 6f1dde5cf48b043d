// A turn of a shard in the supervisor: one run in a worker process (worker-pool.ts), from start to end. Invariants: the turn
// gets no outdated report of the group; a turn ends with its worker process.

import type { Ownership } from '../cluster/kafka.ts';
import type { Clock, ExportError } from '../contracts/index.ts';
import type { RetryRequest } from '../pipeline.ts';
import type { StatusMoment, TailView, TailWish } from '../watch/running-status.ts';
import type { ReloadReason } from './reload-requests.ts';
import { uptimeMs } from './shard-child.ts';
import {
  type AcceptedConfig,
  type FromTurn,
  type SentError,
  sentError,
  type ToTurn,
} from './shard-messages.ts';
import { ShardTails } from './shard-tail.ts';

/** Dependencies of a turn. */
export interface ShardTurnDeps {
  readonly shard: number;
  /** It ends by itself after all is read and delivered. */
  readonly once: boolean;
  /** The config that it starts with. */
  readonly config: AcceptedConfig;
  readonly ownership: Pick<Ownership, 'contact' | 'givenUp' | 'confirm'>;
  readonly clock: Clock;
}

/** A start that takes longer does not count as one: it waits for something, and other shards must not. */
const startMsMax = 10_000;

/** A shard in a worker process. */
export class ShardTurn {
  readonly #deps: ShardTurnDeps;
  readonly #say: (message: ToTurn) => void;
  #moment: StatusMoment | null = null;
  #runs = false;
  #isStopped = false;
  #isLost = false;
  #error: SentError | null = null;
  readonly #tails: ShardTails;
  readonly #begunAt: number;
  readonly #ended = Promise.withResolvers<number>();

  constructor(deps: ShardTurnDeps, say: (message: ToTurn) => void) {
    this.#deps = deps;
    this.#say = say;
    this.#tails = new ShardTails(say);
    this.#begunAt = deps.clock.monotonic();
    const { shard, once, config } = deps;
    say({ say: 'start', shard, once, config });
    this.look();
  }

  get shard(): number {
    return this.#deps.shard;
  }

  /** Its exit code; 1 where its worker process has ended. */
  get ended(): Promise<number> {
    return this.#ended.promise;
  }

  /** A view of the newest events, until `gone` aborts. */
  tail(wish: TailWish, gone: AbortSignal): TailView {
    return this.#tails.open(wish, gone);
  }

  /** The status; null: none yet. */
  get moment(): StatusMoment | null {
    return this.#moment;
  }

  /** It has opened its part of the state, and works. */
  get runs(): boolean {
    return this.#runs;
  }

  /** It opens its part of the state. */
  get isStarting(): boolean {
    return !this.#runs && this.#deps.clock.monotonic() - this.#begunAt < startMsMax;
  }

  /** It was stopped in order. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Another process owns its shard, so its worker process ends. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Why it has ended by itself; null: not reported. */
  get error(): SentError | null {
    return this.#error;
  }

  /** 1 where it took its shard from another process. */
  get takeovers(): number {
    return this.#moment?.cluster?.takeovers ?? 0;
  }

  /** Stops it in order. */
  stop(why: string): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#say({ say: 'stop', why });
  }

  /** Has the turn run the accepted config, or report why the one in the file is refused. */
  reload(reason: ReloadReason, config: AcceptedConfig, refused: SentError | null): void {
    this.#say({ say: 'reload', reason, config, refused });
  }

  /** Another process owns the shard. */
  lose(why: ExportError): void {
    this.#isLost = true;
    this.#say({ say: 'lost', error: sentError(why, 'owning the shard') });
  }

  /** Retries the streams and sinks of a name now; returns those that exist. */
  retryNow(name: string): readonly RetryRequest[] {
    this.#say({ say: 'retry', name });
    const { streams = [], sinks = [] } = this.#moment ?? {};
    const isIt = (one: { readonly name: string }) => one.name === name;
    return [
      ...(streams.some(isIt) ? [{ part: 'stream', waitsUntil: null } as const] : []),
      ...(sinks.some(isIt) ? [{ part: 'sink', waitsUntil: null } as const] : []),
    ];
  }

  /** Sends the time of the last answer of the group. */
  look(): void {
    const { ownership, clock } = this.#deps;
    const { last, failure } = ownership.contact;
    const { monotonic, now } = last;
    const agoMs = clock.monotonic() - monotonic;
    const { givenUp } = ownership;
    this.#say({ say: 'answered', uptimeMs: uptimeMs() - agoMs, now, failure, givenUp });
  }

  /** Applies a message of the turn. */
  received(message: FromTurn): void {
    switch (message.say) {
      case 'standing':
        this.#runs = message.runs;
        this.#moment = message.moment;
        return;
      case 'ends':
        this.#error = message.error;
        return;
      case 'ended':
        this.end(message.code);
        return;
      case 'confirm':
        void this.#confirm(message.id);
        return;
      default:
        this.#tails.received(message);
    }
  }

  /** The turn has ended, or its worker process has. */
  end(code: number): void {
    this.#tails.end();
    this.#ended.resolve(code);
  }

  async #confirm(id: number): Promise<void> {
    const { ownership } = this.#deps;
    const answer = await ownership.confirm().then(
      (givenUp) => ({ say: 'confirmed', id, givenUp }) as const,
      (why) => ({ say: 'refused', id, error: sentError(why, 'querying the group') }) as const,
    );
    this.#say(answer);
  }
}
