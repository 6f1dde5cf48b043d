// How far back the memory of a stream's records reaches, in event time. The number of remembered records is bounded
// (repeats.ts). In a longer list, forgotten records would look new when they are read again. So records before the
// horizon count as known.

import type { ListCheckpoint } from './checkpoint.ts';

/** The checkpoint's part: remembered groups of records, and the horizon. */
export type Remembered = Pick<ListCheckpoint['memory'], 'remembered' | 'horizon'>;

/** Records per group. */
const stretchMax = 100_000;
/** Number of groups that are always remembered. */
const stretchesMax = 5;

/** The horizon if no forgotten record had a time. */
export const noHorizon = Number.MAX_SAFE_INTEGER;

/** The memory with `count` more records. `latest`: their latest event time; null: they have none. */
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
