// `sluice sinks`: the sinks that the state knows, also those that are no longer in the config, with the events that
// wait for each. `remove` deletes the waiting events of a sink that left the config. Invariant: a sink that a running
// process uses is not removed, and nothing is removed without a confirmation.

import { z } from 'zod';
import { backlog } from '../contracts/index.ts';
import { holderOf } from '../hold/index.ts';
import type { Stored } from '../operator/index.ts';
import { runningIn } from '../run/index.ts';
import { counted, tableLines } from '../terminal/index.ts';
import { cleanText } from '../tools/index.ts';
import { joinedRemoved, type RemovedSink, removedSinksOf, type State } from '../watch/index.ts';
import { type CommandGroup, configOption, defineCommand } from './shared/command.ts';
import { type PartAtWork, partsAtWork } from './shared/parts.ts';
import { isAgreed } from './shared/prompt.ts';
import { unknownText } from './shared/typed.ts';

const lengthMax = 500;

/** A sink as it is listed; times are RFC 3339 or null. */
interface ListedSink extends RemovedSink {
  readonly in_config: boolean;
  /** Null: it is not in the config. */
  readonly type: string | null;
}

const list = defineCommand({
  name: 'list',
  about: 'show the sinks that the state knows, and the events that wait for each',
  options: { config: configOption, json: { about: 'as JSON' } },
  async run({ config: file, json }, deps) {
    const { listed, missing } = await listedIn(partsAtWork(file, deps));
    if (json) deps.out(JSON.stringify({ sinks: listed }, null, 2));
    else for (const line of sinkLines(listed)) deps.out(line);
    if (missing !== '') deps.err(cleanText(`nothing is known${missing}`, lengthMax));
    return 0;
  },
});

const remove = defineCommand({
  name: 'remove',
  about: 'give up the events of a sink that is no longer in the config; its dead letters stay',
  arguments: { name: { about: 'sink name, as shown by sluice sinks' } },
  options: { config: configOption, yes: { about: 'do not prompt' } },
  async run({ name, config: file, yes }, deps) {
    const { out, err } = deps;
    const parts = partsAtWork(file, deps);
    const { listed, knowing } = await listedIn(parts);
    const found = listed.find((sink) => sink.name === name);
    if (found === undefined) {
      err(
        unknownText(
          'sink',
          name,
          listed.map((sink) => sink.name),
        ),
      );
      return 1;
    }
    const user = await userOf(name, found, parts);
    if (user !== null) {
      err(
        cleanText(
          `the sink ${name} is not removed: ${user}. Remove it from the config first: restart without it, or reload with --allow-removal.`,
          lengthMax,
        ),
      );
      return 1;
    }
    const reported = `${counted(found.pending, 'event')} kept for the sink ${name} would be given up`;
    if (!yes && !(await isAgreed(reported, 'give them up?', deps))) {
      out(`${reported}; nothing was changed${process.stdin.isTTY ? '' : ': --yes gives them up'}`);
      return 1;
    }
    const deadLetters =
      found.dead_letters === 0 ? '' : `; ${counted(found.dead_letters, 'dead letter')} stay`;
    const all = knowing(name);
    let [events, done] = [0, 0];
    try {
      for (const { operator } of all) {
        events += await operator.sinks.remove(name);
        done += 1;
      }
    } finally {
      // Also if a later shard does not answer.
      const of = done === all.length ? '' : ` in ${done} of ${counted(all.length, 'shard')}`;
      if (done > 0) out(`${name}: ${counted(events, 'event')} given up${of}${deadLetters}`);
    }
    return 0;
  },
});

/** The two; `list` may be left out. */
export const sinks: CommandGroup = {
  name: 'sinks',
  about: 'list the sinks in the state, also removed ones, or give up the events of one',
  commands: [remove],
  alone: list,
};

/** The process that uses a sink and so keeps it from being removed; null: none. */
async function userOf(
  name: string,
  { in_config: inConfig, kept, missing_since: since }: ListedSink,
  parts: readonly PartAtWork[],
): Promise<string | null> {
  if (inConfig) return 'the config has it';
  for (const {
    config: { state },
  } of parts) {
    const running = runningIn(state.dir);
    if (running !== null && sinksOf(running.config).includes(name)) {
      return `${holderOf(state.dir) ?? 'a running process'} has it`;
    }
  }
  if (!kept || since !== null) return null;
  for (const { config, operator } of parts) {
    const isUsed = config.state.kafka !== null && (await operator.holder()) !== null;
    if (isUsed) return 'a running process may have it';
  }
  return null;
}

function sinksOf(config: unknown): readonly string[] {
  const shape = z.object({ sinks: z.record(z.string(), z.unknown()) });
  return Object.keys(shape.safeParse(config).data?.sinks ?? {});
}

interface Listed {
  /** The sinks of all parts, those of the config first. */
  readonly listed: readonly ListedSink[];
  /** Why a part has no sinks: it has no state; else empty. */
  readonly missing: string;
  /** The parts whose state has a sink. */
  readonly knowing: (name: string) => readonly PartAtWork[];
}

async function listedIn(parts: readonly PartAtWork[]): Promise<Listed> {
  const seen = await Promise.all(parts.map(({ operator }) => operator.status(sinksIn)));
  const types = new Map(
    parts.flatMap(({ config: { sinks } }) =>
      Object.entries(sinks).map(([name, { settings }]) => [name, settings.type] as const),
    ),
  );
  const listed = joinedRemoved(seen.map(({ sinks }) => sinks))
    .map((sink) => {
      const type = types.get(sink.name) ?? null;
      return { ...sink, in_config: type !== null, type };
    })
    .toSorted((a, b) => Number(b.in_config) - Number(a.in_config));
  const missing = seen.map((part) => part.missing).find((text) => text !== '') ?? '';
  const knowing = (name: string) =>
    parts.filter((_, at) => seen[at]?.sinks.some((sink) => sink.name === name));
  return { listed, missing, knowing };
}

function sinksIn({ config, missing, facts }: Stored) {
  const { removedSinksMs } = config.state;
  const state = facts();
  const present = Object.keys(config.sinks);
  const sinks: readonly RemovedSink[] = [
    ...present.map((name) => presentIn(state, name)),
    ...removedSinksOf(state, { present, removedSinksMs }),
  ];
  return { sinks, missing };
}

function presentIn({ sinks, spool }: State, name: string): RemovedSink {
  const { position = 0, deadLetters = 0 } = sinks.get(name) ?? {};
  const pending = backlog(spool, position ?? 0);
  const never = { missing_since: null, kept_until: null, released: 0 };
  return { name, kept: true, pending, dead_letters: deadLetters, ...never };
}

function sinkLines(listed: readonly ListedSink[]): readonly string[] {
  return tableLines(
    ['SINK', 'TYPE', 'PENDING', 'DEAD LETTERS', 'IN THE CONFIG', 'KEPT UNTIL', 'RELEASED'],
    listed.map((sink) => [
      sink.name,
      sink.type ?? '-',
      String(sink.pending),
      String(sink.dead_letters),
      sink.in_config ? 'yes' : 'no',
      sink.kept_until ?? (sink.kept ? '-' : 'not kept'),
      String(sink.released),
    ]),
  );
}
