// `sluice dead-letters`: the events that a sink rejected permanently. `retry` puts each back into the spool as a page
// for that sink alone and deletes the dead letter in the same transaction, so that the event is always in exactly one
// of the two. A dead letter is kept if its sink is no longer in the config or no route leads there.

import { UsageError } from '../contracts/index.ts';
import { type HeldDeadLetter, lookInto } from '../hold/index.ts';
import { commandText, counted, painted, tableLines } from '../terminal/index.ts';
import { cleanText, timeText } from '../tools/index.ts';
import { type CommandGroup, configOption, defineCommand, type Given } from './shared/command.ts';
import { type PartAtWork, partsAtWork } from './shared/parts.ts';
import { isAgreed } from './shared/prompt.ts';
import { refuseUnknown, timeTyped } from './shared/typed.ts';

const config = configOption;
const sink = { value: 'name', about: 'only dead letters of this sink' } as const;
const uid = {
  value: 'uid',
  about: 'only the dead letter with this uid; repeatable',
  several: true,
} as const;
const since = { value: 'time', about: 'only dead letters since this time (RFC 3339)' } as const;
type Choice = Given<{ sink: typeof sink; uid: typeof uid; since: typeof since }>;

const reasonLengthMax = 300;
/** Enough to distinguish them; --json has the whole uid. */
const uidLengthShown = 12;

/** Prints the dead letters. */
export const deadLetterList = defineCommand({
  name: 'list',
  about: 'list refused events with the reason',
  options: { config, sink, since, json: { about: 'one JSON object per line' } },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const { held, missing } = await chosen(given, parts);
    const deadLetters = held.flat();
    if (given.json) {
      for (const { id, sink, uid, at, reason, context } of deadLetters) {
        const { source, stream } = context;
        const reported = cleanText(reason, reasonLengthMax);
        out(JSON.stringify({ id, sink, uid, source, stream, at: timeText(at), reason: reported }));
      }
      return 0;
    }
    if (deadLetters.length === 0) out(`no dead letters${missing}`);
    else for (const line of deadLetterLines(deadLetters, process.stdout.isTTY === true)) out(line);
    return 0;
  },
});

/** For a person why each was refused, then which; for a program a table with everything. */
export function deadLetterLines(
  deadLetters: readonly HeldDeadLetter[],
  onTerminal: boolean,
): readonly string[] {
  if (onTerminal) return deadLetters.flatMap(shortLines);
  const rows = deadLetters.map(({ id, sink, at, context, uid, reason }) => [
    ...[String(id), sink, timeText(at), context.stream, uid, reason],
  ]);
  return tableLines(['ID', 'SINK', 'TIME', 'STREAM', 'UID', 'REASON'], rows);
}

function shortLines({ id, sink, uid, reason, at, context }: HeldDeadLetter): readonly string[] {
  const which = `${timeText(at)}, stream ${context.stream}, uid ${uid.slice(0, uidLengthShown)}…`;
  return [
    `${id}  ${cleanText(sink, 80)}: ${painted(cleanText(reason, reasonLengthMax), 'bad')}`,
    `${' '.repeat(String(id).length)}  ${painted(cleanText(which, reasonLengthMax), 'dim')}`,
  ];
}

/** Puts dead letters back for their sink. */
const retry = defineCommand({
  name: 'retry',
  about: 'return dead letters to their sink, also while another process runs',
  options: { config, sink, uid, since },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const moved = new Map<string, number>();
    const stuck = new Map<string, number>();
    const { held, missing } = await chosen(given, parts);
    try {
      for (const [at, { operator }] of parts.entries()) {
        for await (const come of operator.deadLetters.move('retry', named(held[at]))) {
          add(moved, come.moved);
          add(stuck, come.stuck);
        }
      }
    } finally {
      // Also if a later shard does not answer.
      for (const [sink, n] of moved) out(`${sink}: ${n} put back, to be sent again`);
      for (const [why, n] of stuck) out(`${n} stay dead letters: ${why}`);
    }
    if (moved.size === 0 && stuck.size === 0) out(`no dead letters${missing}`);
    return 0;
  },
});

/** Deletes dead letters after a confirmation; 1 without one. */
const drop = defineCommand({
  name: 'drop',
  about: 'delete dead letters for good; prompts on a terminal, otherwise requires --yes',
  options: { config, sink, uid, since, yes: { about: 'do not prompt' } },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const { held, missing } = await chosen(given, parts);
    const deadLetters = held.flat();
    if (deadLetters.length === 0) {
      out(`no dead letters${missing}`);
      return 0;
    }
    const reported = `${counted(deadLetters.length, 'dead letter')} would be deleted for good`;
    if (!given.yes && !(await isAgreed(reported, 'drop them?', deps))) {
      out(`${reported}; nothing was dropped${process.stdin.isTTY ? '' : ': --yes drops them'}`);
      return 1;
    }
    for (const [at, { operator }] of parts.entries()) {
      const sinks = new Map(held[at]?.map(({ id, sink }) => [id, sink]));
      for await (const done of operator.deadLetters.move('drop', named(held[at]))) {
        for (const [id, uid] of done.named) out(`dropped ${id} of ${sinks.get(id)}: ${uid}`);
      }
    }
    return 0;
  },
});

/** Moves suspects to the dead letters, once an operator has agreed: 1 where there is no consent. */
const addSuspects = defineCommand({
  name: 'add',
  about: 'move suspects (refused while nothing is accepted) to the dead letters',
  options: {
    config,
    sink: { value: 'name', about: 'the sink whose suspects are moved', needed: true },
    uid: { ...uid, about: 'only the suspect with this uid; repeatable' },
    yes: { about: 'do not prompt' },
  },
  async run({ config: file, sink, uid: uids = null, yes }, deps) {
    const { out } = deps;
    const parts = partsAtWork(file, deps);
    for (const { config } of parts) refuseUnknown('sink', sink, Object.keys(config.sinks));
    const reported = `${uids === null ? 'all suspects' : counted(uids.length, 'suspect')} of ${cleanText(sink, 80)} would become dead letters`;
    if (!yes && !(await isAgreed(reported, 'move them?', deps))) {
      out(`${reported}; none was moved${process.stdin.isTTY ? '' : ': --yes moves them'}`);
      return 1;
    }
    let moved: number | null = null;
    try {
      for (const { operator } of parts) {
        const added = await operator.deadLetters.add(sink, uids);
        if (added !== null) moved = (moved ?? 0) + added;
      }
    } finally {
      // Also if a later shard does not answer.
      if (moved !== null && moved > 0) out(`${sink}: ${moved} moved to the dead letters`);
    }
    if (moved === null) {
      out('no process runs with this config: start it, then suspects can be moved');
      return 1;
    }
    if (moved === 0) out(noneMoved(file, sink, uids));
    return 0;
  },
});

function noneMoved(file: string, sink: string, uids: readonly string[] | null): string {
  const why =
    uids === null
      ? 'no event is a suspect, that is, refused while the sink accepts nothing'
      : `no suspect has ${uids.length === 1 ? 'this uid' : 'one of these uids'}`;
  const list = commandText('status', file, '--json');
  return `${cleanText(sink, 80)}: ${why}; nothing was moved. The suspects of each sink: ${list}`;
}

/** All of them. */
export const deadLetters: CommandGroup = {
  name: 'dead-letters',
  about: 'events that a sink refused for good: list, send again, drop, or add suspects',
  commands: [deadLetterList, retry, drop, addSuspects],
};

function named(
  deadLetters: readonly HeldDeadLetter[] = [],
): readonly (readonly [number, string])[] {
  return deadLetters.map(({ id, uid }) => [id, uid] as const);
}

function add(to: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [reported, n] of Object.entries(counts)) {
    const name = cleanText(reported, reasonLengthMax);
    to.set(name, (to.get(name) ?? 0) + n);
  }
}

/** By part, the dead letters that are concerned; and, where a part has no state, why none is found. */
interface Chosen {
  readonly held: readonly (readonly HeldDeadLetter[])[];
  readonly missing: string;
}

/**
 * Finds the dead letters of the sink with the given uids. Throws a UsageError if no part has the sink, or no part has a
 * uid.
 */
async function chosen(
  { sink, uid: uids, since }: Choice,
  parts: readonly PartAtWork[],
): Promise<Chosen> {
  const fromMs = since === undefined ? 0 : timeTyped('since', since);
  const seen = await Promise.all(parts.map((part) => deadLettersOf(sink, part)));
  // One that has left the config may still have dead letters.
  refuseUnknown('sink', sink, [...new Set(seen.flatMap(({ sinks }) => sinks))]);
  const missing = seen.map((part) => part.missing).find((text) => text !== '') ?? '';
  const held = seen.map(({ deadLetters }) => deadLetters.filter(({ at }) => at >= fromMs));
  if (uids === undefined) return { held, missing };
  const known = new Set(held.flatMap((deadLetters) => deadLetters.map(({ uid }) => uid)));
  const unknown = uids.find((uid) => !known.has(uid));
  if (unknown !== undefined) {
    throw new UsageError(`--uid: there is no dead letter with the uid ${cleanText(unknown, 80)}`);
  }
  return {
    held: held.map((deadLetters) => deadLetters.filter(({ uid }) => uids.includes(uid))),
    missing,
  };
}

interface PartDeadLetters {
  readonly sinks: readonly string[];
  readonly deadLetters: readonly HeldDeadLetter[];
  readonly missing: string;
}

/** The dead letters that a part has of a sink; undefined: of all sinks. */
async function deadLettersOf(
  sink: string | undefined,
  { config, operator }: PartAtWork,
): Promise<PartDeadLetters> {
  const sinks = Object.keys(config.sinks);
  return await operator.status(({ config: { state }, missing }) =>
    lookInto(state.dir, { sinks, deadLetters: [], missing }, ({ deadLetters }): PartDeadLetters => {
      const all = [...sinks, ...deadLetters.counts().keys()];
      return { sinks: all, deadLetters: deadLetters.list(sink ?? null), missing };
    }),
  );
}
