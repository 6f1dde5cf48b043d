// `sluice checkpoint`: where a stream stands, and the two ways to move it by hand. Both are for the
// rare day when a checkpoint no longer fits: they touch nothing that is held for the sinks, and
// keep the identities of what was read, so that what is read again is not delivered again;
// `--forget` is for those who want just that. A process that runs rewinds a stream itself
// (requests.ts), and has to be stopped for a reset; with a state in Kafka whoever works there does
// both, for commands on machines where nothing runs. Cursors are shown by their digest only.

import { z } from 'zod';
import { type Config, readConfig } from '../config/config.ts';
import { inShards } from '../config/shards.ts';
import { forgetDelivered } from '../hold/delivered.ts';
import { takeLock } from '../hold/lock.ts';
import { lookInto } from '../hold/store.ts';
import type { StreamExtent } from '../hold/streams.ts';
import { type Rewind, type Rewound, resetStream, rewindStream } from '../run/checkpoint-moves.ts';
import { counted, factLines } from '../terminal/table.ts';
import { notHere, readState, type StreamState } from '../watch/state.ts';
import { type CommandGroup, configOption, defineCommand } from './shared/command.ts';
import { streamNames } from './shared/looking.ts';
import { partsAtWork, partWithStream } from './shared/parts.ts';
import { askAtWork, isAtWork } from './shared/process-requests.ts';
import { isRemote, withCopy } from './shared/remote.ts';
import { parentsText, rotationText } from './shared/stream-facts.ts';
import { refuseUnknown, timeTyped } from './shared/typed.ts';

/** Options of all three. */
const options = {
  config: configOption,
  stream: { value: 'name', about: 'stream name, as shown by sluice status', needed: true },
} as const;

/** Prints what is known of a stream. */
export const show = defineCommand({
  name: 'show',
  about: 'show the checkpoint of a stream, without its cursor',
  options,
  async run({ config: file, stream }, deps) {
    const { config, isElsewhere } = await partWithStream(partsAtWork(file, deps), stream);
    const show = async (looked: Config) => {
      const state = await find(looked, stream);
      if (state === null) {
        deps.out(`${stream} has no checkpoint and starts from the beginning${notHere(looked)}`);
        return;
      }
      const { dir } = looked.state;
      const extent = lookInto(dir, null, ({ streams }) => streams.extent(stream));
      // A copy has no identities of records.
      const facts = factsOf(state, isElsewhere ? undefined : extent, stream);
      for (const line of factLines(facts)) deps.out(line);
    };
    if (isElsewhere && isRemote(config)) await withCopy(config, show);
    else await show(config);
    return 0;
  },
});

function factsOf(
  { checkpoint, caught_up_at, error, parents }: StreamState,
  extent: StreamExtent | null | undefined,
  stream: string,
): Parameters<typeof factLines>[0] {
  if (parents !== undefined) {
    return [
      ['stream', stream],
      ['checkpoint', time(checkpoint?.savedAt)],
      ['parents', parentsText(parents)],
      ['rotation', rotationText(parents)],
      ['caught up', time(caught_up_at)],
      ['last error', error?.message ?? '-'],
    ];
  }
  return [
    ['stream', stream],
    ['checkpoint', checkpoint === null ? 'none' : time(checkpoint.savedAt)],
    ['resumes at', checkpoint?.resume ?? '-'],
    ['order', checkpoint?.order ?? '-'],
    ['read whole once', checkpoint?.swept === null ? '-' : checkpoint?.swept ? 'yes' : 'not yet'],
    ['latest record', time(checkpoint?.watermark)],
    ['caught up', time(caught_up_at)],
    ...(extent === undefined ? [] : extentFacts(extent)),
    ['last error', error?.message ?? '-'],
  ];
}

function extentFacts(extent: StreamExtent | null): Parameters<typeof factLines>[0] {
  const { records = 0, places = 0, knownSince, oldestPlace, newestPlace } = extent ?? {};
  return [
    ['records known', records === 0 ? '0' : `${records}, since ${time(knownSince)}`],
    [
      'positions to rewind to',
      places === 0 ? '0' : `${places}, ${time(oldestPlace)} to ${time(newestPlace)}`,
    ],
  ];
}

/** Deletes the checkpoint, so that the stream is read from its start. */
const reset = defineCommand({
  name: 'reset',
  about: 'read the stream again from its start; delivered events are not delivered again',
  options: {
    ...options,
    forget: { about: 'forget the records read, so that all are delivered again' },
  },
  async run({ config: file, stream, forget = false }, { env, out }) {
    const parts = inShards(readConfig(file, { env })).map((config) => ({ config }));
    const { config } = await partWithStream(parts, stream);
    await find(config, stream);
    const { forgotten } = isRemote(config)
      ? await askAtWork(config, {
          name: stream,
          wish: { what: 'reset', forget },
          shape: z.object({ forgotten: z.number().nullable() }),
        })
      : { forgotten: locked(config, stream, () => resetStream(config, stream, forget)) };
    const who = isRemote(config) ? 'the process that works' : 'the next run';
    out(`${stream}: its checkpoint is gone; ${who} reads it from its start`);
    out(
      forgotten === null
        ? 'records already read (at least half a million) are still known and not delivered again; --forget would deliver them again'
        : `${forgotten} records are forgotten: those that upstream still has are delivered again`,
    );
    return 0;
  },
});

/**
 * Has a list read again: from the newest place before a time where all that was read since stands
 * behind it, else from its beginning.
 */
const rewind = defineCommand({
  name: 'rewind',
  about: 'read the stream again from its position at a time, without repeats',
  options: {
    ...options,
    to: { value: 'time', about: 'RFC 3339 time', needed: true },
    forget: { about: 'forget records read since then, so that they are delivered again' },
  },
  async run({ config: file, stream, to: typed, forget = false }, deps) {
    const to = timeTyped('to', typed);
    const { config } = await partWithStream(partsAtWork(file, deps), stream);
    await find(config, stream);
    const wish: Rewind = { what: 'rewind', to, forget };
    const isRunning = isAtWork(config);
    const rewound = isRunning
      ? await askAtWork(config, { name: stream, wish, shape: rewoundShape })
      : locked(config, stream, () => rewindStream(config, stream, wish));
    const who = isRunning ? 'the running process' : 'the next run';
    for (const line of rewoundLines(rewound, to, who)) deps.out(`${stream}: ${line}`);
    return 0;
  },
});

/** The three. */
export const checkpoint: CommandGroup = {
  name: 'checkpoint',
  about: 'see or move a stream’s checkpoint',
  commands: [show, reset, rewind],
};

function rewoundLines({ place, forgotten }: Rewound, to: number, who: string): readonly string[] {
  return [
    place === null
      ? `${who} reads it again from its beginning`
      : `resumes where it was at ${time(place.at)} (cursor with digest ${place.digest})`,
    forgotten === null
      ? 'records already read are still known and not delivered again; --forget would deliver those read since then again'
      : `${counted(forgotten, 'record')} read since ${time(to)} forgotten: only those that upstream still has are delivered again`,
  ];
}

/** What is held of the stream of that name, which is in the config or left over in the state. */
async function find(config: Config, stream: string): Promise<StreamState | null> {
  const { streams } = readState(config.state.dir);
  refuseUnknown('stream', stream, [...(await streamNames(config)), ...streams.keys()]);
  return streams.get(stream) ?? null;
}

const rewoundShape = z.object({
  place: z.object({ at: z.number(), digest: z.string().regex(/^[0-9a-f]+$/) }).nullable(),
  forgotten: z.number().nullable(),
});

/** Moves a checkpoint while no run can: a runner's memory would overrule the change. */
function locked<T>(config: Config, stream: string, move: () => T): T {
  const lock = takeLock(config.state.dir);
  try {
    forgetDelivered(config.state.dir, stream);
    return move();
  } finally {
    lock.release();
  }
}

function time(at: unknown): string {
  return typeof at === 'number' ? new Date(at).toISOString() : '-';
}
