// `sluice checkpoint`: where a stream stands, and the two ways to move it by hand. Both are for the rare day when a
// checkpoint no longer fits: they are refused while a run holds the state directory, touch nothing that is held for the
// sinks, and keep the identities of what was read, so that what is read again is not delivered again; `--forget` is for
// those who want just that. Cursors are shown by their digest only.

import { ExportError } from '../../contracts/errors.ts';
import { isObject, type JsonObject } from '../../contracts/json.ts';
import { identityBytes, type TrailEntry } from '../../contracts/spool.ts';
import type { ListCheckpoint } from '../../fetch/checkpoint.ts';
import { noHorizon } from '../../fetch/horizon.ts';
import { roundWanted } from '../../fetch/read-round.ts';
import { forgetDelivered } from '../../hold/delivered.ts';
import { takeLock } from '../../hold/lock.ts';
import type { Store } from '../../hold/store.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { readConfigAtWork } from '../at-work.ts';
import {
  type ConfigOptions,
  commandText,
  type ExitCode,
  type Means,
  UsageError,
} from '../command.ts';
import { type Config, readConfig } from '../config/config.ts';
import { hint } from '../config/nearest.ts';
import {
  digestOf,
  hasState,
  notHere,
  openForLooking,
  openForMending,
  readState,
  type StreamState,
} from '../state.ts';
import { counted, factLines } from '../table.ts';
import { streamsOf } from './status.ts';

/** Options of all three. */
export interface CheckpointOptions extends ConfigOptions {
  readonly stream: string;
  readonly forget?: boolean;
}

/** Prints what is known of a stream. */
export async function show(options: CheckpointOptions, means: Means): Promise<ExitCode> {
  const { config } = readConfigAtWork(options.config, means);
  const { stream, state } = await find(config, options);
  if (state === null || !hasState(config.state.dir)) {
    means.out(`${stream} has no checkpoint and starts from the beginning${notHere(config)}`);
    return 0;
  }
  const store = openForLooking(config.state.dir);
  try {
    for (const line of factLines(factsOf(state, store, stream))) means.out(line);
  } finally {
    store.close();
  }
  return 0;
}

function factsOf(
  state: StreamState,
  store: Store,
  stream: string,
): Parameters<typeof factLines>[0] {
  const { checkpoint, caughtUpAt, error } = state;
  const known = store.rows(
    'SELECT coalesce(sum(length(keys)), 0) AS n, min(at) AS since FROM identities WHERE stream = ?',
    stream,
  )[0];
  const trail = store.rows(
    'SELECT count(*) AS n, min(at) AS oldest, max(at) AS newest FROM trail WHERE stream = ?',
    stream,
  )[0];
  const places = Number(trail?.n ?? 0);
  const records = Number(known?.n ?? 0) / identityBytes;
  return [
    ['stream', stream],
    ['checkpoint', checkpoint === null ? 'none' : time(checkpoint.savedAt)],
    ['resumes at', checkpoint?.resume ?? '-'],
    ['order', checkpoint?.order ?? '-'],
    ['read whole once', checkpoint?.swept === null ? '-' : checkpoint?.swept ? 'yes' : 'not yet'],
    ['latest record', time(checkpoint?.watermark)],
    ['caught up', time(caughtUpAt)],
    ['records known', records === 0 ? '0' : `${records}, since ${time(known?.since)}`],
    [
      'places to rewind to',
      places === 0 ? '0' : `${places}, ${time(trail?.oldest)} to ${time(trail?.newest)}`,
    ],
    ['last error', error?.message ?? '-'],
  ];
}

/** Deletes the checkpoint, so that the stream is read from its start. */
export async function reset(options: CheckpointOptions, means: Means): Promise<ExitCode> {
  const config = readConfig(options.config, { env: means.env });
  const { stream } = await find(config, options);
  const forgotten = mend(config, stream, (store) => {
    store.change('DELETE FROM checkpoint WHERE stream = ?', stream);
    // Its cursors belong to the list as it was asked for before.
    store.change('DELETE FROM trail WHERE stream = ?', stream);
    return options.forget === true ? forget(store, stream, 0) : null;
  });
  means.out(`${stream}: its checkpoint is gone; the next run reads it from its start`);
  means.out(
    forgotten === null
      ? 'what was read is still known, half a million records at least, and not delivered again; --forget would deliver it again'
      : `${forgotten} records are forgotten: what upstream still has of them is delivered again`,
  );
  return 0;
}

/**
 * Has a list read again: from the newest place before a time where all that was read since stands behind it, else from its
 * beginning.
 */
export async function rewind(
  options: CheckpointOptions & { readonly to: string },
  means: Means,
): Promise<ExitCode> {
  const to = timeOf(options.to);
  const config = readConfig(options.config, { env: means.env });
  const { stream } = await find(config, options);
  const reset = `${commandText('checkpoint reset', config.file, '--stream', stream)}; nothing was changed`;
  const { place, forgotten } = mend(config, stream, (store) => {
    const checkpoint = listCheckpointOf(store, { stream, reset });
    const forgotten = options.forget === true ? forget(store, stream, to) : null;
    // Records may have been read long after they happened: those forgotten can stand anywhere.
    const place = forgotten === null ? placeBefore(store, to, { stream, checkpoint }) : null;
    const moved = {
      ...checkpoint,
      ...(place === null ? fromBeginning : resumingAt(place.cursor)),
      ...(forgotten === null ? {} : { openWalk: openWalkAfter(store, checkpoint) }),
    };
    store.saveCheckpoint(stream, moved, Date.now());
    return { place, forgotten };
  });
  for (const line of rewoundLines(place, forgotten, to)) means.out(`${stream}: ${line}`);
  return 0;
}

function rewoundLines(
  place: TrailEntry | null,
  forgotten: number | null,
  to: number,
): readonly string[] {
  return [
    place === null
      ? 'the next run reads it again from its beginning'
      : `resumes where it was at ${time(place.at)} (cursor with digest ${digestOf(place.cursor)})`,
    forgotten === null
      ? 'what was read is still known and not delivered again; --forget would deliver again what was read since'
      : `${counted(forgotten, 'record')} read since ${time(to)} forgotten: what upstream still has of them is delivered again, and nothing else is`,
  ];
}

interface Found {
  readonly stream: string;
  readonly state: StreamState | null;
}

/** The stream of that name, in the config or left over in the state. */
async function find(config: Config, { stream }: CheckpointOptions): Promise<Found> {
  const { streams } = readState(config.state.dir);
  const names = new Set([...(await streamsOf(config)).map(({ name }) => name), ...streams.keys()]);
  if (!names.has(stream)) {
    throw new UsageError(
      `--stream: there is no stream ${cleanText(stream, 80)}${hint(stream, names)}`,
    );
  }
  return { stream, state: streams.get(stream) ?? null };
}

/** Runs one transaction on the state while no run can: a runner's memory would overrule what is changed under it. */
function mend<T>(config: Config, stream: string, work: (store: Store) => T): T {
  const lock = takeLock(config.state.dir);
  try {
    forgetDelivered(config.state.dir, stream);
    const store = openForMending(config);
    try {
      return store.transaction(() => work(store));
    } finally {
      store.close();
    }
  } finally {
    lock.release();
  }
}

/** Forgets the identities of records read at or after a time; returns how many. */
function forget(store: Store, stream: string, since: number): number {
  const sum = store.rows(
    'SELECT coalesce(sum(length(keys)), 0) AS n FROM identities WHERE stream = ? AND at >= ?',
    stream,
    since,
  )[0];
  store.change('DELETE FROM identities WHERE stream = ? AND at >= ?', stream, since);
  return Number(sum?.n ?? 0) / identityBytes;
}

/** Numbers of forgotten blocks are given anew: a walk that is still open must not take the new ones for old. */
function openWalkAfter(store: Store, { openWalk }: JsonObject): JsonObject | null {
  if (!isObject(openWalk)) return null;
  const next = Number(store.rows('SELECT coalesce(max(block), 0) + 1 AS n FROM identities')[0]?.n);
  return { ...openWalk, block: Math.min(Number(openWalk.block), next) };
}

/** A stream that is to be rewound, and how to begin it anew where it cannot be. */
interface Rewound {
  readonly stream: string;
  readonly reset: string;
}

function listCheckpointOf(store: Store, { stream, reset }: Rewound): JsonObject {
  const { checkpoint } = store.recall(stream);
  const isList = isObject(checkpoint) && checkpoint.kind === 'list';
  // So many records without a time were read that repeats could not be told.
  if (isList && checkpoint.horizon !== noHorizon) return checkpoint;
  const why =
    checkpoint === null
      ? 'it was never read'
      : isList
        ? 'too much of what was read is no longer known'
        : 'it is read whole each time';
  throw new ExportError('checkpoint_mismatch', `rewinding ${stream}: ${why}`, {
    next: `To begin anew: ${reset}.`,
  });
}

/** The whole list is due to be read, through what is known. What looks new at its end need not have come in there. */
const fromBeginning = {
  round: null,
  sweptAt: roundWanted,
  atEnd: false,
} satisfies Partial<ListCheckpoint>;

/** The list's end is asked for there, and shows what was there before. */
function resumingAt(cursor: string) {
  return {
    resume: { by: 'cursor', cursor },
    atEnd: false,
    again: 0,
    overlap: null,
    resumePage: null,
  } satisfies Partial<ListCheckpoint>;
}

/**
 * The newest place of before a time, where the list goes on behind it and repeats are told by their ids. Null: there is none.
 */
function placeBefore(
  store: Store,
  to: number,
  { stream, checkpoint }: { readonly stream: string; readonly checkpoint: JsonObject },
): TrailEntry | null {
  const { order, swept, nameless } = checkpoint;
  if (order !== 'oldest_first' || swept !== true || nameless !== false) return null;
  return store.trail(stream).findLast(({ at }) => at <= to) ?? null;
}

function timeOf(text: string): number {
  const at = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (!Number.isNaN(at)) return at;
  throw new UsageError(
    `--to: expected an RFC 3339 time such as 2026-01-31T08:00:00Z, found ${cleanText(text, 80)}`,
  );
}

function time(at: unknown): string {
  return typeof at === 'number' ? new Date(at).toISOString() : '-';
}
