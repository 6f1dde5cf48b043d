// How far back a stream's memory of records reaches, in the time of events. A bounded number is
// remembered (see repeats.ts), so in a longer list those from before would look new where it is
// read again. There what happened before the horizon is therefore taken for known.

import type { ListCheckpoint } from './checkpoint.ts';

/** Of a checkpoint: what is remembered, a stretch of records each, and the horizon. */
export type Remembered = Pick<ListCheckpoint['memory'], 'remembered' | 'horizon'>;

/** Records of one stretch. */
const stretchMax = 100_000;
/** So many records are remembered for certain, however they came in. */
const stretchesMax = 5;

/** The horizon where nothing of what was forgotten has a time. */
export const noHorizon = Number.MAX_SAFE_INTEGER;

/** The memory with some more records, the last of this event time; null: they have none. */
export function remember(
  { remembered, horizon }: Remembered,
  count: number,
  latest: number | null,
): Remembered {
  const last = remembered.at(-1);
  const time = latest ?? noHorizon;
  if (last !== undefined && last.count < stretchMax) {
    const grown = { count: last.count + count, latest: Math.max(last.latest, time) };
    return { remembered: [...remembered.slice(0, -1), grown], horizon };
  }
  const all = [...remembered, { count, latest: time }];
  const gone = all.length > stretchesMax ? (all[0]?.latest ?? null) : null;
  return {
    remembered: all.slice(-stretchesMax),
    horizon: gone === null ? horizon : Math.max(horizon ?? gone, gone),
  };
}
