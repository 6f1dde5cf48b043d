// `sluice checkpoint`: shows the checkpoint of a stream, and has two ways to change it by hand, for the rare case of a
// checkpoint that no longer fits. Both leave the stored pages alone and keep the identities of records, so that a
// record that is read again is not delivered again; `--forget` deletes identities too. Cursors are shown by their
// digest only.

import { lookInto, type StreamExtent } from '../hold/index.ts';
import type { Operator, RewoundStream, Stored } from '../operator/index.ts';
import { counted, factLines } from '../terminal/index.ts';
import type { StreamState } from '../watch/index.ts';
import {
  type CommandDeps,
  type CommandGroup,
  configOption,
  defineCommand,
} from './shared/command.ts';
import { streamNames } from './shared/looking.ts';
import { partsAtWork, partWithStream } from './shared/parts.ts';
import { parentsText, rotationText } from './shared/stream-facts.ts';
import { refuseUnknown, timeTyped } from './shared/typed.ts';

/** Options of all three. */
const options = {
  config: configOption,
  stream: { value: 'name', about: 'stream name, as shown by sluice status', needed: true },
} as const;

/** Prints the facts about a stream. */
export const show = defineCommand({
  name: 'show',
  about: 'show the checkpoint of a stream, without its cursor',
  options,
  async run({ config: file, stream }, deps) {
    const { operator } = await partWithStream(partsAtWork(file, deps), stream);
    const lines = await operator.status(async (stored) => {
      const state = await find(stored, stream);
      if (state === null) {
        return [
          `${stream} has no checkpoint; it starts as \`start\` of its source says${stored.missing}`,
        ];
      }
      const { dir } = stored.config.state;
      const extent = lookInto(dir, null, ({ streams }) => streams.extent(stream));
      // A copy has no identities of records.
      return factLines(factsOf(state, stored.isCopy ? undefined : extent, stream));
    });
    for (const line of lines) deps.out(line);
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
  const { records = 0, places = 0, knownSince, oldestPosition, newestPosition } = extent ?? {};
  return [
    ['records known', records === 0 ? '0' : `${records}, since ${time(knownSince)}`],
    [
      'positions to rewind to',
      places === 0 ? '0' : `${places}, ${time(oldestPosition)} to ${time(newestPosition)}`,
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
  async run({ config: file, stream, forget = false }, deps) {
    const operator = await withStream(file, stream, deps);
    const forgotten = await operator.checkpoint.reset(stream, forget);
    deps.out(`${stream}: checkpoint deleted; the stream is read again from its start`);
    deps.out(
      forgotten === null
        ? 'records already read (at least half a million) are still known and not delivered again; --forget would deliver them again'
        : `${forgotten} records are forgotten: those that upstream still has are delivered again`,
    );
    return 0;
  },
});

/**
 * Makes a stream read its list again: from the newest cursor before a time after which all records were read, else from
 * the start.
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
    const operator = await withStream(file, stream, deps);
    const rewound = await operator.checkpoint.rewind(stream, { to, forget });
    for (const line of rewoundLines(rewound, to)) deps.out(`${stream}: ${line}`);
    return 0;
  },
});

/** The three. */
export const checkpoint: CommandGroup = {
  name: 'checkpoint',
  about: 'see or move a stream’s checkpoint',
  commands: [show, reset, rewind],
};

function rewoundLines({ place, forgotten }: RewoundStream, to: number): readonly string[] {
  return [
    place === null
      ? 'the stream is read again from its start'
      : `the stream resumes where it was at ${time(place.at)} (cursor with digest ${place.digest})`,
    forgotten === null
      ? 'records already read are still known and not delivered again; --forget would deliver those read since then again'
      : `${counted(forgotten, 'record')} read since ${time(to)} forgotten: only those that upstream still has are delivered again`,
  ];
}

/** The operator of the state that has the stream. Throws a UsageError if neither config nor state has the stream. */
async function withStream(file: string, stream: string, deps: CommandDeps): Promise<Operator> {
  const { operator } = await partWithStream(partsAtWork(file, deps), stream);
  await operator.status((stored) => find(stored, stream));
  return operator;
}

/** The stored state of the stream of that name, which is in the config or left over in the state. */
async function find({ config, facts }: Stored, stream: string): Promise<StreamState | null> {
  const { streams } = facts();
  refuseUnknown('stream', stream, [...(await streamNames(config)), ...streams.keys()]);
  return streams.get(stream) ?? null;
}

function time(at: unknown): string {
  return typeof at === 'number' ? new Date(at).toISOString() : '-';
}
