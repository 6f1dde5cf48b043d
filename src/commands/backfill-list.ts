// `sluice backfill list` and `cancel`: list the backfills with their progress, and delete an unfinished one. Invariant:
// the identities that live streams remember are not touched, and pages that a backfill has stored are delivered like
// all others.

import type { Config } from '../config/index.ts';
import { UsageError } from '../contracts/index.ts';
import {
  type BackfillProgress,
  type BackfillRequest,
  backfillsIn,
  importBackfillFiles,
} from '../hold/open.ts';
import { commandText, counted, type Mood, painted } from '../terminal/index.ts';
import { cleanText, spanText, timeText } from '../tools/index.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { type PartAtWork, partsAtWork } from './shared/parts.ts';

/** `waiting`: requested, and not started yet. */
type StatusView = 'waiting' | BackfillProgress['state'];

interface Begun extends BackfillRequest {
  readonly state: StatusView;
}

/** The reader of a backfill notes its progress several times a second; a machine under load needs longer. */
const activeWithinMs = 5_000;
/** As many of an id's characters as people are shown; any beginning that only one has will do. */
const idLength = 8;

/** Prints the backfills, oldest first. */
export const backfillList = defineCommand({
  name: 'list',
  about: 'list backfills with their progress, and how to resume them',
  options: { config: configOption, json: { about: 'one JSON object per line' } },
  async run({ config: file, json }, deps) {
    const { out } = deps;
    const parts = partsAtWork(file, deps);
    const seen = await Promise.all(parts.map(begunIn));
    for (const [at, { config }] of parts.entries()) {
      for (const one of seen[at]?.begun ?? []) {
        for (const line of json ? [JSON.stringify(factsOf(one))] : linesOf(one, config)) out(line);
      }
    }
    if (!json && seen.every(({ begun }) => begun.length === 0)) {
      out(
        `no backfill was begun${seen.map(({ missing }) => missing).find((text) => text !== '') ?? ''}`,
      );
    }
    return 0;
  },
});

/** Forgets one that is not done. */
export const cancel = defineCommand({
  name: 'cancel',
  about: 'cancel an unfinished backfill; events that it stored are still delivered',
  arguments: { id: { about: 'id, as shown by backfill list' } },
  options: { config: configOption },
  async run({ id, config: file }, deps) {
    const { out } = deps;
    const { operator, ...seen } = await partWith(id, partsAtWork(file, deps));
    const request = found(id, seen);
    const { source, progress, state } = request;
    if (state === 'done') {
      throw new UsageError(`${shown(request)} is done: there is nothing to cancel`);
    }
    await operator.backfill.cancel(request);
    out(
      `${source}: the backfill ${shown(request)} is cancelled; its stored events (${counted(progress?.held ?? 0, 'event')}) are delivered`,
    );
    return 0;
  },
});

interface Seen {
  readonly begun: readonly Begun[];
  /** Why no backfill is known: there is no state; else empty. */
  readonly missing: string;
}

/** The part that has a backfill of that id; if none has, the first. */
async function partWith(
  id: string,
  parts: readonly PartAtWork[],
): Promise<Seen & Pick<PartAtWork, 'operator'>> {
  const all = await Promise.all(
    parts.map(async (part) => ({ operator: part.operator, ...(await begunIn(part)) })),
  );
  const [first] = all as [(typeof all)[number]];
  return all.find(({ begun }) => begun.some((one) => one.id.startsWith(id))) ?? first;
}

async function begunIn({ operator }: PartAtWork): Promise<Seen> {
  const holder = await operator.holder();
  return await operator.status(({ config: { state }, isCopy, missing }) => {
    if (holder === null && !isCopy) importBackfillFiles(state);
    const begun = backfillsIn(state.dir)
      .map((request) => ({ ...request, state: statusOf(request, holder) }))
      .toSorted((a, b) => a.askedAt - b.askedAt);
    return { begun, missing };
  });
}

function statusOf({ isRequested, progress }: BackfillRequest, holder: string | null): StatusView {
  if (!isRequested) return progress?.state ?? 'stopped';
  if (holder === null) return 'stopped';
  const isActive = Date.now() - (progress?.at ?? 0) < activeWithinMs;
  const state = progress?.state;
  return isActive && (state === 'reading' || state === 'delivering') ? state : 'waiting';
}

function found(id: string, { begun, missing }: Seen): Begun {
  const [one, another] = begun.filter((request) => id !== '' && request.id.startsWith(id));
  if (one !== undefined && another === undefined) return one;
  const known = begun.map(shown).join(', ');
  const there = known === '' ? `none was begun${missing}` : `there are ${known}`;
  const what = one === undefined ? 'no backfill' : 'more than one backfill';
  throw new UsageError(`there is ${what} ${cleanText(id, 80)}; ${there}`);
}

function linesOf(begun: Begun, config: Config): readonly string[] {
  const { source, from, to, progress, state } = begun;
  const head = `${shown(begun)}  ${cleanText(source, 80)}  ${timeText(from)} to ${timeText(to)}  `;
  const next = nextText(begun, config);
  const below = [progressText(progress), ...(next === null ? [] : [next])];
  return [
    `${head}${painted(state, moods[state])}`,
    ...below.map((text) => `${' '.repeat(idLength)}  ${cleanText(text, 500)}`),
  ];
}

const moods = {
  waiting: 'plain',
  reading: 'good',
  delivering: 'good',
  stopped: 'warn',
  failed: 'bad',
  done: 'dim',
} as const satisfies Record<StatusView, Mood>;

function progressText(progress: BackfillProgress | null): string {
  if (progress === null) return 'nothing read yet';
  const { share, read, held, behind, slowest, reachedAt, at } = progress;
  const to = slowest === undefined ? '' : ` to ${slowest.sink}`;
  const fails = slowest?.error ? ` (${slowest.error})` : '';
  return [
    ...(share === null ? [] : [`${Math.floor(share * 100)}%`]),
    `${counted(read, 'record')} read, ${counted(held, 'event')} held for the sinks`,
    ...(behind === 0 ? [] : [`${behind} to deliver${to}${fails}`]),
    ...(reachedAt === null ? [] : [`reached ${timeText(reachedAt)}`]),
    `last step ${spanText(Date.now() - at)} ago`,
  ].join(', ');
}

function nextText(begun: Begun, { file }: Config): string | null {
  const { source, from, to, isBounded, isRequested, progress, state } = begun;
  if (state !== 'stopped' && state !== 'failed') return null;
  const span = ['--from', timeText(from), ...(isBounded ? ['--to', timeText(to)] : [])];
  const again = commandText('backfill', file, '--source', source, ...span);
  if (state === 'failed' && progress?.error) {
    const { message, next } = progress.error;
    return `${message}. ${next} Then: ${again}`;
  }
  return isRequested ? `resumes with the next run, or with: ${again}` : `resume with: ${again}`;
}

function factsOf(begun: Begun): Readonly<Record<string, unknown>> {
  const { id, source, from, to, progress, state } = begun;
  const { share = null, read = 0, held = 0, untimed = 0, behind = 0 } = progress ?? {};
  return {
    ...{ id, source, from: timeText(from), to: timeText(to), state },
    ...{ share, read, held, untimed, behind, slowest: progress?.slowest ?? null },
    reached_at: timeText(progress?.reachedAt ?? null),
    last_step_at: timeText(progress?.at ?? null),
    error: progress?.error ?? null,
  };
}

function shown({ id }: BackfillRequest): string {
  return id.slice(0, idLength);
}
