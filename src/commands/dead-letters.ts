// `sluice dead-letters`: the events that a sink refused for good. `retry` puts each back into the
// spool as a page for that sink alone and deletes the letter in the same transaction, so that it is
// in one of the two places at every moment; a process that runs notices within a second. What would
// then go nowhere (a sink that left the config, a route that no longer leads to it) stays where it
// is.

import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { UsageError } from '../contracts/errors.ts';
import type { HeldDeadLetter } from '../hold/dead-letters.ts';
import { changeState, lookInto, type Store } from '../hold/store.ts';
import { type DeadLetterWish, type Moved, moveDeadLetters } from '../run/dead-letter-moves.ts';
import { counted, painted, tableLines } from '../terminal/table.ts';
import { cleanText } from '../tools/clean-text.ts';
import { timeText } from '../tools/time-text.ts';
import { notHere } from '../watch/state.ts';
import { type CommandGroup, configOption, defineCommand, type Given } from './shared/command.ts';
import { partsAtWork } from './shared/parts.ts';
import { askAtWork, isAtWork } from './shared/process-requests.ts';
import { isAgreed } from './shared/prompt.ts';
import { isRemote, withCopy } from './shared/remote.ts';
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

/** A transaction puts back this many at most, so that a running process can write. */
const deadLettersAtOnce = 500;
const reasonLengthMax = 300;
/** Enough to tell one from another; --json has the whole. */
const uidLengthShown = 12;

/** Prints the letters. */
export const deadLetterList = defineCommand({
  name: 'list',
  about: 'list refused events with the reason',
  options: { config, sink, since, json: { about: 'one JSON object per line' } },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const letters = (await chosen(given, parts)).flat();
    if (given.json) {
      for (const { id, sink, uid, at, reason, context } of letters) {
        const { source, stream } = context;
        const reported = cleanText(reason, reasonLengthMax);
        out(JSON.stringify({ id, sink, uid, source, stream, at: timeText(at), reason: reported }));
      }
      return 0;
    }
    if (letters.length === 0) out(`no dead letters${missingIn(parts)}`);
    else for (const line of deadLetterLines(letters, process.stdout.isTTY === true)) out(line);
    return 0;
  },
});

/** For a person why each was refused, then which; for a program a table with everything. */
export function deadLetterLines(
  letters: readonly HeldDeadLetter[],
  onTerminal: boolean,
): readonly string[] {
  if (onTerminal) return letters.flatMap(shortLines);
  const rows = letters.map(({ id, sink, at, context, uid, reason }) => [
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

/** Puts letters back for their sink. */
const retry = defineCommand({
  name: 'retry',
  about: 'return dead letters to their sink, also while another process runs',
  options: { config, sink, uid, since },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const moved = new Map<string, number>();
    const stuck = new Map<string, number>();
    const held = await chosen(given, parts);
    for (const [at, { config }] of parts.entries()) {
      const come = await move(config, held[at] ?? [], 'retry');
      add(moved, Object.fromEntries(come.moved));
      add(stuck, Object.fromEntries(come.stuck));
    }
    for (const [sink, n] of moved) out(`${sink}: ${n} put back, to be sent again`);
    for (const [why, n] of stuck) out(`${n} stay dead letters: ${why}`);
    if (moved.size === 0 && stuck.size === 0) out(`no dead letters${missingIn(parts)}`);
    return 0;
  },
});

/** Deletes letters, once somebody has said so: 1 where nobody has. */
const drop = defineCommand({
  name: 'drop',
  about: 'delete dead letters for good; prompts on a terminal, otherwise requires --yes',
  options: { config, sink, uid, since, yes: { about: 'do not prompt' } },
  async run(given, deps) {
    const { out } = deps;
    const parts = partsAtWork(given.config, deps);
    const held = await chosen(given, parts);
    const letters = held.flat();
    if (letters.length === 0) {
      out(`no dead letters${missingIn(parts)}`);
      return 0;
    }
    const reported = `${counted(letters.length, 'dead letter')} would be deleted for good`;
    if (!given.yes && !(await isAgreed(reported, 'drop them?', deps))) {
      out(`${reported}; nothing was dropped${process.stdin.isTTY ? '' : ': --yes drops them'}`);
      return 1;
    }
    for (const [at, { config }] of parts.entries()) await move(config, held[at] ?? [], 'drop');
    for (const { id, sink, uid } of letters) out(`dropped ${id} of ${sink}: ${uid}`);
    return 0;
  },
});

const addedShape = z.object({ added: z.number() });

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
    const working = parts.filter(({ config }) => isAtWork(config));
    if (working.length === 0) {
      out('no process runs with this config: start it, then suspects can be moved');
      return 1;
    }
    const reported = `${uids === null ? 'all suspects' : counted(uids.length, 'suspect')} of ${cleanText(sink, 80)} would become dead letters`;
    if (!yes && !(await isAgreed(reported, 'move them?', deps))) {
      out(`${reported}; none was moved${process.stdin.isTTY ? '' : ': --yes moves them'}`);
      return 1;
    }
    let moved = 0;
    for (const { config } of working) {
      refuseUnknown('sink', sink, Object.keys(config.sinks));
      const wish = { what: 'give_up', uids } as const;
      moved += (await askAtWork(config, { name: sink, wish, shape: addedShape })).added;
    }
    out(moved === 0 ? `${sink}: no such suspects` : `${sink}: ${moved} moved to the dead letters`);
    return 0;
  },
});

/** All of them. */
export const deadLetters: CommandGroup = {
  name: 'dead-letters',
  about: 'events that a sink refused for good: list, send again, drop, or add suspects',
  commands: [deadLetterList, retry, drop, addSuspects],
};

function missingIn(parts: readonly { readonly config: Config }[]): string {
  return parts.map(({ config }) => notHere(config)).find((text) => text !== '') ?? '';
}

/** Moves them, some at a time: here, or by whoever has the state in Kafka. */
async function move(
  config: Config,
  letters: readonly HeldDeadLetter[],
  does: DeadLetterWish['does'],
) {
  const moved = new Map<string, number>();
  const stuck = new Map<string, number>();
  for (let from = 0; from < letters.length; from += deadLettersAtOnce) {
    const some = letters.slice(from, from + deadLettersAtOnce);
    const come = await moveSome(config, some, does);
    add(moved, come.moved);
    add(stuck, come.stuck);
  }
  return { moved, stuck };
}

async function moveSome(
  config: Config,
  letters: readonly HeldDeadLetter[],
  does: DeadLetterWish['does'],
): Promise<Moved> {
  if (isRemote(config)) {
    const named = letters.map(({ id, uid }) => [id, uid] as const);
    const wish: DeadLetterWish = { what: 'letters', does, letters: named };
    return await askAtWork(config, { name: 'dead letters', wish, shape: movedShape });
  }
  return changeState(config.state, (store) =>
    store.transaction(() => moveDeadLetters(store, letters, does, config)),
  );
}

function add(to: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [reported, n] of Object.entries(counts)) {
    const name = cleanText(reported, reasonLengthMax);
    to.set(name, (to.get(name) ?? 0) + n);
  }
}

const movedShape = z.object({
  moved: z.record(z.string(), z.number()),
  stuck: z.record(z.string(), z.number()),
});

/**
 * By part, the dead letters of the sink with the uids asked for. Throws a UsageError where no part
 * knows the sink, or no part has a uid.
 */
async function chosen(
  { sink, uid: uids, since }: Choice,
  parts: readonly { readonly config: Config }[],
): Promise<readonly (readonly HeldDeadLetter[])[]> {
  const fromMs = since === undefined ? 0 : timeTyped('since', since);
  const held = await Promise.all(parts.map(({ config }) => deadLettersOf(sink, config)));
  const seen = held.map(({ sinks, letters }) => ({
    sinks,
    letters: letters.filter(({ at }) => at >= fromMs),
  }));
  // One that has left the config may still have dead letters.
  const sinks = seen.flatMap((part) => part.sinks);
  refuseUnknown('sink', sink, [...new Set(sinks)]);
  if (uids === undefined) return seen.map(({ letters }) => letters);
  const known = new Set(seen.flatMap(({ letters }) => letters.map(({ uid }) => uid)));
  const missing = uids.find((uid) => !known.has(uid));
  if (missing !== undefined) {
    throw new UsageError(`--uid: there is no dead letter with the uid ${cleanText(missing, 80)}`);
  }
  return seen.map(({ letters }) => letters.filter(({ uid }) => uids.includes(uid)));
}

interface PartDeadLetters {
  readonly sinks: readonly string[];
  readonly letters: readonly HeldDeadLetter[];
}

/** What a part of the work has of a sink; left out: of all. */
async function deadLettersOf(sink: string | undefined, config: Config): Promise<PartDeadLetters> {
  const named = Object.keys(config.sinks);
  const look = ({ state: { dir } }: Config) =>
    lookInto(dir, { sinks: named, letters: [] }, (store: Store): PartDeadLetters => {
      const { deadLetters } = store;
      return {
        sinks: [...named, ...deadLetters.counts().keys()],
        letters: deadLetters.list(sink ?? null),
      };
    });
  return isRemote(config) ? await withCopy(config, look) : look(config);
}
