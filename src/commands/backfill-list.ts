// `sluice backfill list` and `cancel`: what was begun and how far it is, and how one that is not
// wanted any more is forgotten. Both work while another process runs, which looks at the requests.
// What must stay true: the live streams' memory is not touched, and what a backfill has held for
// the sinks is delivered like all that is held.

import { type Config, readConfig } from '../config/config.ts';
import { inShards } from '../config/shards.ts';
import { UsageError } from '../contracts/errors.ts';
import { importBackfillFiles } from '../hold/backfill-files.ts';
import {
  type BackfillProgress,
  type BackfillRequest,
  backfillsIn,
  cancelBackfill,
  forgetBackfill,
} from '../hold/backfills.ts';
import { holderOf } from '../hold/lock.ts';
import { changeState, lookInto } from '../hold/store.ts';
import { commandText } from '../terminal/command-text.ts';
import { counted, type Mood, painted } from '../terminal/table.ts';
import { cleanText } from '../tools/clean-text.ts';
import { systemClock } from '../tools/clock.ts';
import { spanText, timeText } from '../tools/time-text.ts';
import { notHere } from '../watch/state.ts';
import { whereItRuns } from './shared/at-work.ts';
import { cancelRemote } from './shared/backfill-board.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { partsAtWork } from './shared/parts.ts';
import { isRemote, isServed, withCopy } from './shared/remote.ts';

/** `waiting`: asked for, and not taken up yet. */
type StatusView = 'waiting' | BackfillProgress['state'];

interface Begun extends BackfillRequest {
  readonly state: StatusView;
}

/** Whoever reads a backfill says so several times a second; with a machine under load in mind. */
const activeWithinMs = 5_000;
const letGoWithinMs = 10_000;
const lookEveryMs = 100;
/** As many of an id's characters as people are shown; any beginning that only one has will do. */
const idLength = 8;

/** Prints what was begun, oldest first. */
export const backfillList = defineCommand({
  name: 'list',
  about: 'list backfills with their progress, and how to resume them',
  options: { config: configOption, json: { about: 'one JSON object per line' } },
  async run({ config: file, json }, deps) {
    const { out } = deps;
    const parts = partsAtWork(file, deps).map(({ config }) => config);
    const begun = await Promise.all(parts.map(begunIn));
    for (const [at, config] of parts.entries()) {
      for (const one of begun[at] ?? []) {
        for (const line of json ? [JSON.stringify(factsOf(one))] : linesOf(one, config)) out(line);
      }
    }
    if (!json && begun.flat().length === 0) {
      out(`no backfill was begun${parts.map(notHere).find((text) => text !== '') ?? ''}`);
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
  async run({ id, config: file }, { env, out }) {
    const parts = inShards(readConfig(file, { env })).map((part) => whereItRuns(part).config);
    const config = await partWith(id, parts);
    const request = await found(id, config);
    const { source, progress, state } = request;
    if (state === 'done') {
      throw new UsageError(`${shown(request)} is done: there is nothing to cancel`);
    }
    if (isRemote(config)) await cancelRemote(config, request);
    else await cancelHere(request, config);
    const held = counted(progress?.held ?? 0, 'event');
    out(`${source}: the backfill ${shown(request)} is forgotten; the ${held} it has held go out`);
    return 0;
  },
});

async function cancelHere(request: Begun, { state }: Config): Promise<void> {
  changeState(state, (store) => cancelBackfill(store, request));
  const isRead = request.state === 'reading' || request.state === 'delivering';
  if (!isRead || !(await letGo(request, state))) {
    changeState(state, (store) => forgetBackfill(store, request));
  }
}

/** The part in which one of that id was begun; where none was, the first, which says so. */
async function partWith(id: string, parts: readonly Config[]): Promise<Config> {
  const [first] = parts as readonly [Config];
  for (const part of parts.length === 1 ? [] : parts) {
    if ((await begunIn(part)).some((one) => one.id.startsWith(id))) return part;
  }
  return first;
}

async function begunIn(config: Config): Promise<readonly Begun[]> {
  const { state } = config;
  if (isRemote(config)) {
    const holder = (await isServed(config.state)) ? 'the process that works' : null;
    return await withCopy(config, (copy) => existingIn(copy.state, holder));
  }
  const holder = holderOf(state.dir);
  if (holder === null) importBackfillFiles(state);
  return existingIn(state, holder);
}

function existingIn({ dir }: Config['state'], holder: string | null): readonly Begun[] {
  return backfillsIn(dir)
    .map((request) => ({ ...request, state: statusOf(request, holder) }))
    .toSorted((a, b) => a.askedAt - b.askedAt);
}

function statusOf({ isRequested, progress }: BackfillRequest, holder: string | null): StatusView {
  if (!isRequested) return progress?.state ?? 'stopped';
  if (holder === null) return 'stopped';
  const isActive = Date.now() - (progress?.at ?? 0) < activeWithinMs;
  const state = progress?.state;
  return isActive && (state === 'reading' || state === 'delivering') ? state : 'waiting';
}

async function found(id: string, config: Config): Promise<Begun> {
  const begun = await begunIn(config);
  const [one, another] = begun.filter((request) => id !== '' && request.id.startsWith(id));
  if (one !== undefined && another === undefined) return one;
  const known = begun.map(shown).join(', ');
  const there = known === '' ? `none was begun${notHere(config)}` : `there are ${known}`;
  const what = one === undefined ? 'no backfill' : 'more than one backfill';
  throw new UsageError(`there is ${what} ${cleanText(id, 80)}; ${there}`);
}

/** Waits until whoever reads it has forgotten it; false where nobody seems to read it any more. */
async function letGo({ row }: BackfillRequest, { dir }: Config['state']): Promise<boolean> {
  const clock = systemClock();
  const deadline = clock.monotonic() + letGoWithinMs;
  const isThere = () =>
    lookInto(dir, false, ({ requests }) => requests.all().some(({ id }) => id === row));
  while (isThere()) {
    if (clock.monotonic() > deadline) return false;
    await clock.sleep(lookEveryMs);
  }
  return true;
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
  const { share, read, held, behind, reachedAt, at } = progress;
  return [
    ...(share === null ? [] : [`${Math.floor(share * 100)}%`]),
    `${counted(read, 'record')} read, ${counted(held, 'event')} held for the sinks`,
    ...(behind === 0 ? [] : [`${behind} to deliver`]),
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
    ...{ share, read, held, untimed, behind },
    reached_at: timeText(progress?.reachedAt ?? null),
    last_step_at: timeText(progress?.at ?? null),
    error: progress?.error ?? null,
  };
}

function shown({ id }: BackfillRequest): string {
  return id.slice(0, idLength);
}
