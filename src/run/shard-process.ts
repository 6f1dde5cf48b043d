// The process of one shard, as the one sees it that has started it (shard-supervisor.ts): told when the
// group has heard of us, asked whether it is there, and ended. What must stay true: it is told
// nothing that is not so by then, and one that does nothing any more is ended, since it would keep
// its shard from all others.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Ownership } from '../cluster/ownership.ts';
import type { ExportError } from '../contracts/errors.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { RetryRequest } from '../pipeline.ts';
import type { StatusMoment } from '../watch/live.ts';
import type { TailView, TailWish } from '../watch/tail.ts';
import { startChild, uptimeMs } from './shard-child.ts';
import {
  type FromShard,
  type SentError,
  sentError,
  shardVariable,
  type ToShard,
} from './shard-messages.ts';
import { ShardTails } from './shard-tail.ts';

/** What it is started with. */
export interface ShardProcessDeps {
  readonly shard: number;
  /** Words and options of its command line. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly ownership: Ownership;
  readonly sessionMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** So often in a session it is told when the group has heard of us, and looked at. */
const looksInSession = 10;
/** It says something each second; one that was silent for so many sessions does nothing any more. */
const silentSessionsMax = 3;

/** A process that works on a shard. */
export class ShardProcess {
  readonly #deps: ShardProcessDeps;
  readonly #child: ChildProcess;
  #looksInSilence = 0;
  #moment: StatusMoment | null = null;
  #runs = false;
  #isStopped = false;
  #error: SentError | null = null;
  readonly #tails = new ShardTails((message) => this.#say(message));
  /** Its exit code; of one that was killed, 1. */
  readonly ended: Promise<number>;

  constructor(deps: ShardProcessDeps) {
    const { shard, args, env, log } = deps;
    this.#deps = deps;
    this.#child = startChild(args, { ...env, [shardVariable]: String(shard) });
    this.#child.on('message', (message) => this.#heard(message as FromShard));
    this.ended = this.#end();
    const over = new AbortController();
    void this.ended.finally(() => {
      over.abort();
      this.#tails.end();
    });
    this.#looks(over.signal).catch(() => undefined);
    log.info('shard_worker_started', 'worker process for the shard started', {
      pid: this.#child.pid ?? null,
    });
  }

  get shard(): number {
    return this.#deps.shard;
  }

  /** A view of its newest events, until `gone` aborts. */
  tail(wish: TailWish, gone: AbortSignal): TailView {
    return this.#tails.open(wish, gone);
  }

  /** How it stands; null: it has nothing yet. */
  get moment(): StatusMoment | null {
    return this.#moment;
  }

  /** It has opened its part of the state, and works. */
  get runs(): boolean {
    return this.#runs;
  }

  /** It was asked to end in order. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Why it has ended by itself; null: it did not say. */
  get error(): SentError | null {
    return this.#error;
  }

  /** 1 where it took its shard from another process. */
  get takeovers(): number {
    return this.#moment?.cluster?.takeovers ?? 0;
  }

  /** Has it end in order, as it would by itself. */
  stop(): void {
    // A second signal would end it at once: it may be giving its shard away when this process ends.
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#child.kill('SIGTERM');
  }

  /** Has it read its config again. */
  reload(): void {
    this.#child.kill('SIGHUP');
  }

  /** Another process has the shard. */
  lose(why: ExportError): void {
    this.#say({ say: 'lost', error: sentError(why, 'owning the shard') });
  }

  /** Has the streams and sinks of a name asked now; returns which there are. */
  askNow(name: string): readonly RetryRequest[] {
    this.#say({ say: 'ask now', name });
    const { streams = [], sinks = [] } = this.#moment ?? {};
    const isIt = (one: { readonly name: string }) => one.name === name;
    return [
      ...(streams.some(isIt) ? [{ part: 'stream', waitsUntil: null } as const] : []),
      ...(sinks.some(isIt) ? [{ part: 'sink', waitsUntil: null } as const] : []),
    ];
  }

  async #end(): Promise<number> {
    try {
      const [code, by] = (await once(this.#child, 'exit')) as [number | null, string | null];
      // One that has not yet begun does not listen, and has nothing to end.
      return code ?? (by === 'SIGTERM' && this.#isStopped ? 0 : 1);
    } catch (error) {
      this.#deps.log.error(
        'shard_worker_not_started',
        'cannot start a worker process for the shard',
        {
          error: String(error),
        },
      );
      return 1;
    }
  }

  async #looks(over: AbortSignal): Promise<void> {
    const { clock, sessionMs } = this.#deps;
    for (;;) {
      this.#look();
      await clock.sleep(sessionMs / looksInSession, over);
    }
  }

  #look(): void {
    const { ownership, clock, log, sessionMs } = this.#deps;
    const { monotonic, now } = ownership.hearing.last;
    // Looks are counted and not time, so that nobody is ended where all were asleep.
    this.#looksInSilence += 1;
    if (this.#looksInSilence > silentSessionsMax * looksInSession) {
      const silent_ms = silentSessionsMax * sessionMs;
      log.error('shard_worker_silent', 'worker process of the shard is silent; stopping it', {
        silent_ms,
      });
      this.#child.kill('SIGKILL');
      return;
    }
    const agoMs = clock.monotonic() - monotonic;
    const { givenUp } = ownership;
    this.#say({ say: 'heard', uptimeMs: uptimeMs() - agoMs, now, givenUp });
  }

  #heard(message: FromShard): void {
    this.#looksInSilence = 0;
    switch (message.say) {
      case 'standing':
        this.#runs = message.runs;
        this.#moment = message.moment;
        return;
      case 'ends':
        this.#error = message.error;
        return;
      case 'confirm':
        void this.#confirm(message.id);
        return;
      default:
        this.#tails.heard(message);
    }
  }

  async #confirm(id: number): Promise<void> {
    const { ownership } = this.#deps;
    const answer = await ownership.confirm().then(
      (givenUp) => ({ say: 'confirmed', id, givenUp }) as const,
      (why) => ({ say: 'refused', id, error: sentError(why, 'asking the group') }) as const,
    );
    this.#say(answer);
  }

  #say(message: ToShard): void {
    // Where it has ended nobody hears it.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }
}
