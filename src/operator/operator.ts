// What an operator can request from a state, whatever runs with it. One of the adapters carries it out: the
// state directory (no process runs), a running process of this machine, or the owner of a state in Kafka, here or
// elsewhere, by the control topic. Invariant: callers see no difference but `null`, where a request concerns a
// running pipeline and no process runs.

import { z } from 'zod';
import type { Config } from '../config/index.ts';
import {
  type ErrorCode,
  ExportError,
  errorCodes,
  invariant,
  isObject,
  type JsonObject,
  type PairPhase,
} from '../contracts/index.ts';
import { holderOf, type OperatorRequest, parsedObject } from '../hold/index.ts';
import { type BackfillRequest, backfillsIn, type Past, readProgress } from '../hold/open.ts';
import { runningIn } from '../run/index.ts';
import { cleanText, systemClock } from '../tools/index.ts';
import type { Adapter, Stored } from './adapter.ts';
import { type Drained, drainProcess, undrainProcess } from './draining.ts';
import { OwnerHere } from './owner-here.ts';
import { RemoteProcess } from './remote-process.ts';
import { RunningProcess } from './running-process.ts';
import { StateDirectory } from './state-directory.ts';

/** One state: of a config, or of one of its shards. */
export interface Operator {
  /** The process that has the state, as messages name it; null: none runs. */
  holder(): Promise<string | null>;
  /** Reads the state as it is stored. Throws `state_damaged`, or `sink_unreachable` if it is in Kafka. */
  status<T>(read: (stored: Stored) => Promise<T> | T): Promise<T>;
  /** Retries a stream or sink of this name now; null: no process runs, so the next one does. */
  retry(name: string): Promise<readonly Retried[] | null>;
  readonly checkpoint: {
    /** Has a stream read again from its position at a time (`to`, epoch ms). Throws `checkpoint_mismatch`. */
    rewind(
      stream: string,
      how: { readonly to: number; readonly forget: boolean },
    ): Promise<RewoundStream>;
    /** Deletes the checkpoint of a stream; returns the number of forgotten records, null if none were to be. */
    reset(stream: string, forget: boolean): Promise<number | null>;
  };
  readonly deadLetters: {
    /** Returns dead letters to their sinks, or deletes them; each is named by its id and uid. Yields each part once it is done. */
    move(
      does: 'retry' | 'drop',
      letters: readonly DeadLetterName[],
    ): AsyncIterable<MovedDeadLetters>;
    /** Makes dead letters of a sink's suspects, of all or of those with these uids; null: no process runs. */
    add(sink: string, uids: readonly string[] | null): Promise<number | null>;
  };
  readonly backfill: {
    /** Requests one; resumes an unfinished one for the same time, unless it is to start again. */
    begin(past: Past, isAnew: boolean): Promise<BackfillRequest>;
    /** The request as it is now; undefined: it was cancelled. */
    now(request: BackfillRequest): Promise<BackfillRequest | undefined>;
    /** Has its reader stop, to be resumed by the same request. */
    stop(request: BackfillRequest): Promise<BackfillRequest | undefined>;
    /** Deletes the request; what was stored for it is still delivered. */
    cancel(request: BackfillRequest): Promise<void>;
  };
  readonly sinks: {
    /** Gives up the events that are stored for a removed sink; returns their number. Throws `config_invalid` if the state does not know the sink, or a process runs with it. */
    remove(name: string): Promise<number>;
  };
  /**
   * Has a process of a state in Kafka release its shards, for good; `alone` is called first if no other process is on
   * standby. Throws a UsageError if the state is not in Kafka or has no such process, `state_locked` if it takes too long.
   */
  drain(instance: string, alone: () => void): Promise<Drained>;
  /** Lets a drained process own shards again. Throws a UsageError as `drain`. */
  undrain(instance: string): Promise<void>;
  readonly succession: {
    /** Cutover (`cut_over`) or rollback (`shadow`) of the pair with this successor; `isForced`: also if it is not ready. */
    turn(
      successor: string,
      how: { readonly phase: PairPhase; readonly isForced: boolean },
    ): Promise<Turned>;
  };
}

/** Whether a pair was turned; `reasons`: why not, or in spite of which. */
type Turned = z.output<typeof answers.turned>;

/** The id and uid of a dead letter. */
export type DeadLetterName = readonly [id: number, uid: string];

/** A stream or sink that was requested to retry; `waitsUntil` (epoch ms): its upstream or receiver requested this wait. */
export type Retried = z.output<typeof retried>;

/** The dead letters of a request that was carried out; by sink the number that was moved, by reason the number that stays. */
export type MovedDeadLetters = z.output<typeof moved> & {
  readonly named: readonly DeadLetterName[];
};

/** Where a stream resumes (epoch ms, with the digest of the cursor; null: at its start), and the forgotten records. */
export type RewoundStream = z.output<typeof answers.rewound>;

const retried = z.object({
  part: z.enum(['stream', 'sink']),
  waitsUntil: z.number().nullable(),
});
const moved = z.object({
  moved: z.record(z.string(), z.number()),
  stuck: z.record(z.string(), z.number()),
});
const reportedMax = 1_000;
const backfillShape = z
  .object({
    ...{ row: z.number(), id: z.string(), source: z.string(), from: z.number(), to: z.number() },
    ...{ isBounded: z.boolean(), askedAt: z.number(), isRequested: z.boolean() },
    progress: z.unknown(),
  })
  .transform(({ progress, ...request }): BackfillRequest => {
    const come = readProgress(parsedObject(JSON.stringify(progress)));
    const { message, next } = come?.error ?? {};
    const [said, then] = [message, next].map((text) => cleanText(String(text), reportedMax));
    const error = come?.error ? { message: said ?? '', next: then ?? '' } : null;
    return { ...request, progress: come && { ...come, error } };
  });
const answers = {
  retry: z.object({ asked: z.array(retried).nullable() }),
  rewound: z.object({
    place: z.object({ at: z.number(), digest: z.string().regex(/^[0-9a-f]+$/) }).nullable(),
    forgotten: z.number().nullable(),
  }),
  forgotten: z.object({ forgotten: z.number().nullable() }),
  backfill: z.object({ request: backfillShape.nullable() }),
  turned: z.object({
    isDone: z.boolean(),
    reasons: z.array(z.string()),
    // Before the change; null: the state has no such pair yet.
    report: z.object({ phase: z.string() }).nullish(),
  }),
  removed: z.object({ events: z.number() }),
  added: z.object({ added: z.number().nullable() }),
};

/** A transaction moves this many dead letters at most, so that a running process can write. */
const deadLettersAtOnce = 500;
const pauseMs = 100;
const patienceMs = 20_000;

/** The operator of a config, or of one shard's part of `whole`. Nothing is opened before a call. */
export function operatorOf(config: Config, whole: Config = config): Operator {
  return operatorBy(whole, () => adapterOf(config, whole));
}

/** The operator of a state that this process has opened itself. */
export function ownOperator(config: Config): Operator {
  const adapter = new StateDirectory(config, { isOwn: true, whole: config });
  return operatorBy(config, async () => adapter);
}

/** `adapterNow` is called before each request: processes come and go. */
function operatorBy(whole: Config, adapterNow: () => Promise<Adapter>): Operator {
  const ask = <T>(name: string, wish: OperatorRequest, shape: z.ZodType<T>) =>
    carriedOut(adapterNow, { name, wish }, shape);
  const about = async ({ source, id }: BackfillRequest, does: 'look' | 'stop' | 'cancel') => {
    const wish = { what: 'about_backfill', key: id, does } as const;
    return (await ask(source, wish, answers.backfill)).request ?? undefined;
  };
  return {
    holder: async () => (await adapterNow()).holder,
    status: async (read) => await (await adapterNow()).look(read),
    retry: async (name) => (await ask(name, { what: 'retry' }, answers.retry)).asked,
    checkpoint: {
      rewind: (stream, how) => ask(stream, { what: 'rewind', ...how }, answers.rewound),
      reset: async (stream, forget) =>
        (await ask(stream, { what: 'reset', forget }, answers.forgotten)).forgotten,
    },
    deadLetters: {
      async *move(does, letters) {
        for (let from = 0; from < letters.length; from += deadLettersAtOnce) {
          const some = letters.slice(from, from + deadLettersAtOnce);
          const wish = { what: 'letters', does, letters: some } as const;
          yield { named: some, ...(await ask('dead letters', wish, moved)) };
        }
      },
      add: async (sink, uids) => (await ask(sink, { what: 'give_up', uids }, answers.added)).added,
    },
    backfill: {
      async begin({ source, from, to }, isAnew) {
        const wish = { what: 'begin_backfill', from, to, isAnew } as const;
        const { request } = await ask(source, wish, answers.backfill);
        invariant(request !== null, 'the answer has the request that was made');
        return request;
      },
      async now(request) {
        const adapter = await adapterNow();
        // A copy of the whole state would be read each time.
        if (adapter instanceof RemoteProcess) return await about(request, 'look');
        return await adapter.look(({ config: { state } }) =>
          backfillsIn(state.dir).find(({ id }) => id === request.id),
        );
      },
      stop: (request) => about(request, 'stop'),
      async cancel(request) {
        await about(request, 'cancel');
      },
    },
    drain: (instance, alone) => drainProcess(whole, instance, alone),
    undrain: (instance) => undrainProcess(whole, instance),
    succession: {
      turn: (successor, how) => ask(successor, { what: 'cut_over', ...how }, answers.turned),
    },
    sinks: {
      remove: async (name) => (await ask(name, { what: 'remove_sink' }, answers.removed)).events,
    },
  };
}

async function adapterOf(config: Config, whole: Config): Promise<Adapter> {
  const { dir, kafka } = config.state;
  const holder = holderOf(dir);
  if (holder !== null) {
    const here = new RunningProcess(config, holder);
    // A command that has the state reads no control topic.
    const isRun = runningIn(dir) !== null;
    return kafka !== null && isRun ? new OwnerHere(config, kafka, here) : here;
  }
  if (kafka === null) return new StateDirectory(config, { whole });
  // Its client takes long to load.
  const { processesOf, processText } = await import('../cluster/kafka.ts');
  const processes = await processesOf(kafka, systemClock());
  const { shard = 0 } = kafka;
  const owner =
    processes.find(({ owns }) => owns.includes(shard)) ??
    processes.find(({ isDrained }) => !isDrained);
  if (owner !== undefined) return new RemoteProcess(config, kafka, processText(owner));
  if (processes.length > 0) return new RemoteProcess(config, kafka, null);
  return new StateDirectory(config, { whole });
}

async function carriedOut<T>(
  adapterNow: () => Promise<Adapter>,
  { name, wish }: { readonly name: string; readonly wish: OperatorRequest },
  shape: z.ZodType<T>,
): Promise<T> {
  const clock = systemClock();
  const deadline = clock.monotonic() + patienceMs;
  while (clock.monotonic() < deadline) {
    const adapter = await adapterNow();
    const answer = await adapter.carryOut(name, wish);
    if (answer !== null) return parsed(name, answer, shape);
    await clock.sleep(pauseMs);
  }
  throw new ExportError('state_locked', `request about ${name}: other processes hold the state`, {
    next: 'Retry when they have finished. Nothing was changed.',
  });
}

function parsed<T>(name: string, answer: JsonObject, shape: z.ZodType<T>): T {
  const { error } = answer;
  if (isObject(error)) {
    const said = String(error.code);
    const code = Object.hasOwn(errorCodes, said) ? (said as ErrorCode) : 'broken_invariant';
    throw new ExportError(code, String(error.message), { next: String(error.next) });
  }
  const { data } = shape.safeParse(answer);
  if (data !== undefined) return data;
  throw new ExportError('broken_invariant', `request about ${name}: cannot read the response`, {
    next: 'The process may be of another version. Check the result with `sluice status`.',
  });
}
