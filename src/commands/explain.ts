// `sluice explain STREAM`: shows the state of one stream, the reason of its wait, and the operator's options. The facts
// come from the state directory and, if it answers, from the running process. Facts that only a running process has
// (waits, rates, request ids) are left out if none answers, and the output gives the reason.

import type { Config } from '../config/index.ts';
import { type Json, UsageError } from '../contracts/index.ts';
import type { PlannedSource } from '../fetch/engine.ts';
import { lookInto } from '../hold/index.ts';
import type { Stored } from '../operator/index.ts';
import { planToLook } from '../run/index.ts';
import { commandText, factLines, painted } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import {
  emptyState,
  roomInSpool,
  type State,
  type StatusFacts,
  type StoredStream,
  streamsAndSinks,
} from '../watch/index.ts';
import { askRunning } from '../watch/running-status.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { partsAtWork, partWithStream } from './shared/parts.ts';
import { type KnownStream, streamFacts } from './shared/stream-facts.ts';
import { unknownText } from './shared/typed.ts';

/** Explains a stream. */
export const explain = defineCommand({
  name: 'explain',
  about: 'show the state of a stream, why it waits, and the next step',
  arguments: { stream: { about: 'stream name, as shown by sluice status' } },
  options: { config: configOption },
  async run({ stream: name, config: file }, deps) {
    const part = await partWithStream(partsAtWork(file, deps), name);
    const { config, refused, isElsewhere } = part;
    const { out } = deps;
    const plan = await planToLook(config);
    const seen = isElsewhere
      ? notSeen
      : await part.operator.status((stored) => seenIn(stored, name));
    const { state, missing } = seen;
    const asked = state.holder === null || seen.isCopy ? null : await askRunning(config);
    const live = asked?.outcome === 'answered' ? asked.status : null;
    const stored = streamsAndSinks(state, { plan, state: config.state, refused });
    const of = ({ streams }: Pick<StatusFacts, 'streams'>) =>
      streams.find((stream) => stream.name === name);
    const known: KnownStream = {
      ...find(name, plan.sources),
      config,
      ...{ running: state.holder, missing },
      // `find` has found the stream, and the status from the database has every stream of the config.
      stands: (live && of(live)) ?? (of(stored) as StoredStream),
      live: live?.streams.find((stream) => stream.name === name) ?? null,
      reported: live,
      held: state.streams.get(name)?.checkpoint ?? null,
      checkpoint: seen.checkpoint,
      silence: asked === null || asked.outcome === 'answered' ? '' : asked.why,
      now: Date.now(),
    };
    const { doing, next, urgent } = isElsewhere ? verdictElsewhere(config) : verdictOf(known);
    out(painted(`${name}: ${doing}`, urgent ? 'bad' : 'good'));
    out('');
    for (const line of factLines([...streamFacts(known), ['next step', next]])) out(line);
    for (const line of conditionLines(known)) out(line);
    return 0;
  },
});

function find(name: string, sources: readonly PlannedSource[]) {
  for (const source of sources) {
    const stream = source.streams.find((one) => one.name === name);
    if (stream !== undefined) return { source, stream };
  }
  const names = sources.flatMap(({ streams }) => streams.map((stream) => stream.name));
  throw new UsageError(unknownText('stream', name, names));
}

interface Seen extends Pick<Stored, 'missing' | 'isCopy'> {
  readonly state: State;
  readonly checkpoint: Json | null;
}

const notSeen: Seen = { state: emptyState, checkpoint: null, missing: '', isCopy: false };

function seenIn({ config: { state }, facts, missing, isCopy }: Stored, stream: string): Seen {
  const checkpoint = lookInto(state.dir, null, ({ streams }) => streams.recall(stream).checkpoint);
  return { state: facts(), checkpoint, missing, isCopy };
}

interface Verdict {
  readonly doing: string;
  readonly next: string;
  readonly urgent: boolean;
}

function verdictElsewhere({ file }: Config): Verdict {
  return {
    doing: 'runs in another process of the state in Kafka; this machine has no facts about it',
    next: `${commandText('cluster', file)} shows the stream as it is committed, and every process`,
    urgent: false,
  };
}

/** The one sentence, and the other one. */
function verdictOf(known: KnownStream): Verdict {
  const { config, running, held, stands, live, silence } = known;
  const { state, error } = stands;
  if (running === null) {
    const resumes = held === null ? 'it has read nothing yet' : 'it resumes from its checkpoint';
    return {
      doing: `is not read, since nothing runs with this config; ${resumes}`,
      next: `${commandText('run', config.file)}${error === null ? '' : `; and for its last error: ${error.next}`}`,
      urgent: error !== null,
    };
  }
  if (state === 'halted') {
    return {
      doing: 'is halted, and waits for an operator; the other streams continue',
      next: error?.next ?? 'Look into the log for why it was halted.',
      urgent: true,
    };
  }
  if (error !== null) {
    return { doing: `fails and is tried again: ${error.message}`, next: error.next, urgent: true };
  }
  if (stands.waits_for === roomInSpool) {
    return {
      doing: 'waits for room in the spool, which is full; nothing is lost',
      next: `Find the sink that does not accept its events: ${commandText('status', config.file)}; or raise state.max_bytes.`,
      urgent: true,
    };
  }
  if (live === null) {
    return {
      doing: `was ${state === 'new' ? 'not read yet' : state} when it was last noted`,
      next: silence === '' ? 'nothing' : `nothing; to see more: ${silence}`,
      urgent: false,
    };
  }
  if (state === 'polling') {
    const waits = stands.waits_for === null ? '' : `, waiting for ${stands.waits_for}`;
    return { doing: `is being read${waits}`, next: 'nothing', urgent: false };
  }
  return { doing: `waits for ${stands.waits_for ?? 'its turn'}`, next: 'nothing', urgent: false };
}

const conditionsMax = 5;

/** Recent conditions of the source, which its sinks received as events. */
function conditionLines({ reported, stream }: KnownStream): readonly string[] {
  const found = reported?.conditions.filter((one) => one.stream === stream.name) ?? [];
  return found
    .slice(0, conditionsMax)
    .map(({ observed_at: at, condition, message }) =>
      painted(cleanText(`${at}  ${condition}: ${message}`, 500), 'warn'),
    );
}
