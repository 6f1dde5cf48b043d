// A worker process, which a supervisor has started for some of its shards (worker-pool.ts): the membership of the supervisor as
// each turn of a shard sees it, and the reports of the turns. Invariants: a worker never outlives its supervisor, since no
// other process knows of it; a shard polls only while the group answers the supervisor, by the clock that both share.

import { GroupContact } from '../cluster/index.ts';
import type { Membership } from '../cluster/kafka.ts';
import { type Config, ofShard } from '../config/index.ts';
import {
  type Clock,
  type ExportError,
  type Log,
  UsageError,
  untilAborted,
} from '../contracts/index.ts';
import type { Pipeline } from '../pipeline.ts';
import type { EventTap, StatusMoment } from '../watch/running-status.ts';
import { type ReloadReason, type ReloadRequests, refusedBefore } from './reload-requests.ts';
import { uptimeMs } from './shard-child.ts';
import {
  type AcceptedConfig,
  type FromTurn,
  type FromWorker,
  receivedError,
  type SentError,
  sentError,
  type ToTurn,
  type ToWorker,
  workerVariable,
} from './shard-messages.ts';
import { WorkerTails } from './shard-tail.ts';

/** The worker process, as far as its turns need it. */
export interface WorkerSelf {
  /** Undefined: the process was started without a channel. */
  readonly send?:
    | ((message: FromWorker, to: undefined, how: undefined, sent: () => void) => unknown)
    | undefined;
  on(event: 'message', received: (message: ToWorker) => void): unknown;
  once(event: 'disconnect', received: () => void): unknown;
  exit(code: number): void;
}

/** The status, tail and retries of a turn. */
interface TurnShown {
  readonly look: () => StatusMoment;
  readonly tap: () => EventTap | null;
  readonly retry: Pipeline['retryNow'];
}

interface TurnTools {
  readonly clock: Clock;
  readonly log: Log;
}

const reportEveryMs = 1_000;

/**
 * Runs a turn for each shard that the supervisor starts. Ends the worker with the supervisor. Throws a UsageError if the
 * process was started without a channel.
 */
export function serveTurns(
  work: (turn: HostedTurn) => Promise<number>,
  { own, clock }: { readonly own: WorkerSelf; readonly clock: Clock },
): { stopAll(why: string): void } {
  if (own.send === undefined) {
    throw new UsageError(
      `${workerVariable} is set, which only sluice sets for processes that it starts; unset it`,
    );
  }
  const turns = new Map<number, HostedTurn>();
  const begin = (id: number, start: TurnStart) => {
    const turn = new HostedTurn(start, own, id);
    turns.set(id, turn);
    const end = (code: number) => {
      turns.delete(id);
      turn.end(code);
    };
    // An error here is a fault in sluice.
    void work(turn).then(end);
  };
  own.on('message', ({ turn: id, message }) => {
    // A value of a command names no turn (worker-commands.ts).
    if (message === undefined) return;
    if (message.say === 'start') begin(id, message);
    else turns.get(id)?.received(message);
  });
  // The supervisor is gone, and its membership too: this process ends like a crash, which loses nothing.
  own.once('disconnect', () => own.exit(turns.size === 0 ? 0 : 1));
  const report = async () => {
    for (;;) {
      send(own, { turn: null });
      for (const turn of turns.values()) turn.report();
      await clock.sleep(reportEveryMs);
    }
  };
  void report();
  return {
    stopAll: (why) => {
      for (const turn of turns.values()) turn.received({ say: 'stop', why });
    },
  };
}

/** The message that starts a turn. */
type TurnStart = Omit<Extract<ToTurn, { say: 'start' }>, 'say'>;

/** The turn of a shard in a worker process. */
export class HostedTurn {
  readonly shard: number;
  /** The shard is read to its tail and delivered, then the turn ends. */
  readonly once: boolean;
  /** Aborts when the turn must end in order. */
  readonly stop: AbortSignal;
  /** Requests to read the config again. */
  readonly requests: ReloadRequests;
  readonly #own: WorkerSelf;
  readonly #id: number;
  readonly #stop = new AbortController();
  readonly #reloads: Reloads;
  readonly #listeners = new Set<(message: ToTurn) => void>();
  #look: () => StatusMoment | null = () => null;
  #runs = false;
  #status: Config['status'] = null;
  /** The last messages, since nothing listens at first. */
  #answered: ToTurn | null = null;
  #lost: ToTurn | null = null;

  constructor({ shard, once, config }: TurnStart, own: WorkerSelf, id: number) {
    this.shard = shard;
    this.once = once;
    this.#reloads = new Reloads(config);
    this.stop = this.#stop.signal;
    this.requests = this.#reloads;
    this.#own = own;
    this.#id = id;
  }

  /** The config that the supervisor accepted last. */
  get config(): AcceptedConfig {
    return this.#reloads.config;
  }

  /** Why the config in the file does not run; null: the supervisor has accepted it. */
  get refused(): SentError | null {
    return this.#reloads.refused;
  }

  /** The part of a config for this shard. The status page is the supervisor's. */
  part(config: Config): Config {
    const { state, ...part } = ofShard(config, this.shard);
    this.#status = config.status;
    const starter = { instance: state.kafka?.instance, pid: process.ppid };
    const kafka = state.kafka && { ...state.kafka, instance: undefined, starter };
    return { ...part, state: { ...state, kafka }, status: null };
  }

  /** The right to run the shard; `lost` is called once, when another process owns the shard. */
  membership(sessionMs: number, tools: TurnTools, lost: (why: ExportError) => void): Membership {
    const membership = new TurnMembership((message) => this.say(message), sessionMs, tools, lost);
    this.#listeners.add(membership.received);
    for (const said of [this.#answered, this.#lost]) if (said !== null) membership.received(said);
    return membership;
  }

  /** Reports the status and carries out requests from now on, until closed. */
  show(shown: TurnShown): { close(): void } {
    this.#runs = true;
    // A status of thousands of streams is too large to send without a reader.
    if (this.#status !== null) this.#look = shown.look;
    const tails = new WorkerTails(shown.tap, (message) => this.say(message));
    const received = (message: ToTurn) => {
      if (message.say === 'retry') shown.retry(message.name);
      else tails.received(message);
    };
    this.#listeners.add(received);
    this.report();
    return {
      close: () => {
        this.#look = () => null;
        tails.close();
        this.#listeners.delete(received);
      },
    };
  }

  /** Whether a reader may want to see events (`status.tail`). */
  get isTailed(): boolean {
    return this.#status?.tail === true;
  }

  /** Reports why the turn ends by itself. */
  ends(why: unknown): void {
    this.say({ say: 'ends', error: sentError(why, 'running') });
  }

  /** Reports the status. */
  report(): void {
    this.say({ say: 'standing', runs: this.#runs, moment: this.#look() });
  }

  /** The turn has ended. */
  end(code: number): void {
    this.#listeners.clear();
    this.say({ say: 'ended', code });
  }

  say(message: FromTurn): void {
    send(this.#own, { turn: this.#id, message });
  }

  received(message: ToTurn): void {
    if (message.say === 'stop') this.#stop.abort(new Error(message.why));
    else if (message.say === 'reload') this.#reloads.add(message);
    else if (message.say === 'answered') this.#answered = message;
    else if (message.say === 'lost') this.#lost = message;
    for (const listener of this.#listeners) listener(message);
  }
}

function send(own: WorkerSelf, message: FromWorker): void {
  // Without the channel this process ends anyway.
  own.send?.(message, undefined, undefined, () => undefined);
}

/** The requested reloads of a turn. */
class Reloads implements ReloadRequests {
  #reason: ReloadReason | null = null;
  #wake = Promise.withResolvers<void>();
  config: AcceptedConfig;
  refused: SentError | null = null;

  constructor(config: AcceptedConfig) {
    this.config = config;
  }

  add({ reason, config, refused }: Extract<ToTurn, { say: 'reload' }>): void {
    this.config = config;
    this.refused = refused;
    this.#reason = reason;
    this.#wake.resolve();
  }

  async next(stop: AbortSignal, again?: AbortSignal): Promise<ReloadReason> {
    const waiting = again === undefined ? stop : AbortSignal.any([stop, again]);
    try {
      await untilAborted(this.#wake.promise, waiting);
    } catch (error) {
      if (stop.aborted) throw error;
      return refusedBefore;
    }
    this.#wake = Promise.withResolvers<void>();
    return this.#reason ?? 'the file has changed';
  }

  follow(): void {
    // The supervisor watches the files.
  }

  release(): void {
    // Nothing listens.
  }
}

/** The membership of the supervisor. */
class TurnMembership implements Membership {
  readonly #say: (message: FromTurn) => void;
  readonly #clock: Clock;
  readonly #contact: GroupContact;
  readonly #lost: (why: ExportError) => void;
  readonly #waiting = new Map<number, PromiseWithResolvers<number>>();
  #last = 0;
  #givenUp = 0;

  constructor(
    say: (message: FromTurn) => void,
    sessionMs: number,
    tools: TurnTools,
    lost: (why: ExportError) => void,
  ) {
    this.#say = say;
    this.#clock = tools.clock;
    this.#contact = new GroupContact(sessionMs, tools);
    this.#lost = lost;
  }

  get hasContact(): () => boolean {
    return this.#contact.hasContact;
  }

  get givenUp(): number {
    return this.#givenUp;
  }

  get answeredAt(): number | null {
    return this.#contact.answeredAt;
  }

  readonly received = (message: ToTurn): void => {
    switch (message.say) {
      case 'answered': {
        const agoMs = uptimeMs() - message.uptimeMs;
        this.#givenUp = message.givenUp;
        this.#contact.note({ monotonic: this.#clock.monotonic() - agoMs, now: message.now });
        if (message.failure !== null) this.#contact.failed(message.failure);
        return;
      }
      case 'confirmed':
        this.#waiting.get(message.id)?.resolve(message.givenUp);
        return;
      case 'refused':
        this.#waiting.get(message.id)?.reject(receivedError(message.error));
        return;
      case 'lost':
        this.#lost(receivedError(message.error));
    }
  };

  readonly confirm = async (signal?: AbortSignal): Promise<number> => {
    signal?.throwIfAborted();
    this.#last += 1;
    const id = this.#last;
    const answer = Promise.withResolvers<number>();
    this.#waiting.set(id, answer);
    this.#say({ say: 'confirm', id });
    const stop = () => answer.reject(signal?.reason);
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return await answer.promise;
    } finally {
      this.#waiting.delete(id);
      signal?.removeEventListener('abort', stop);
    }
  };

  async close(): Promise<void> {
    // The membership is the supervisor's.
  }
}
