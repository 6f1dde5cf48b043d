// The cost of an event, computed the same way by each bench: cases run in turn, so that a slow phase of the machine
// affects all, and the result is the median of the rounds with minimum and maximum. Start-up is subtracted twice: by a
// run over one page, and by one over half of the work. The second also excludes the warm-up of a program.

import type { Usage } from './program.ts';
import { pageEvents } from './work.ts';

/** What a run over so many pages has used. */
export type Run<U extends Pick<Usage, 'cpuUs' | 'rssPeakBytes'>> = (pages: number) => Promise<U>;

/** The results of one round. */
export interface Cost<U> {
  /** CPU microseconds an event beyond a run over one page. */
  readonly cpuUs: number;
  /** The same beyond a run over half of the pages. */
  readonly warmUs: number;
  /** The run over all pages. */
  readonly whole: U;
}

/** The median of the rounds, and the range. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** The value in the middle. */
export function median(list: readonly number[]): number {
  return list.toSorted((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
}

/** The median and the range of the rounds. */
export function spreadOf(list: readonly number[]): Spread {
  return { median: median(list), least: Math.min(...list), most: Math.max(...list) };
}

/** Three runs: over one page, half of the pages, and all. */
export async function costOf<U extends Pick<Usage, 'cpuUs' | 'rssPeakBytes'>>(
  run: Run<U>,
  pages: number,
): Promise<Cost<U>> {
  const halfPages = Math.ceil(pages / 2);
  const [one, half, whole] = [await run(1), await run(halfPages), await run(pages)];
  const beyond = (less: U, count: number) =>
    (whole.cpuUs - less.cpuUs) / ((pages - count) * pageEvents);
  return { cpuUs: beyond(one, 1), warmUs: beyond(half, halfPages), whole };
}

/**
 * Measures each case once in each pass, starting with another one each time. Returns the results of each case, in the
 * order of `cases`.
 */
export async function inTurn<C, R>(
  cases: readonly C[],
  rounds: number,
  measure: (one: C) => Promise<R>,
): Promise<readonly (readonly R[])[]> {
  const said = cases.map((): R[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (let i = 0; i < cases.length; i += 1) {
      const at = (i + round) % cases.length;
      said[at]?.push(await measure(cases[at] as C));
    }
  }
  return said;
}

/** Medians of what an event costs and of the most memory. */
export function mediansOf(rounds: readonly Cost<Pick<Usage, 'rssPeakBytes'>>[]) {
  const { median: us, least, most } = spreadOf(rounds.map(({ cpuUs }) => cpuUs));
  return {
    'CPU us/event': Number(us.toFixed(1)),
    least: Number(least.toFixed(1)),
    most: Number(most.toFixed(1)),
    'warm us/event': Number(median(rounds.map(({ warmUs }) => warmUs)).toFixed(1)),
    'RSS peak MB': Math.round(median(rounds.map(({ whole }) => whole.rssPeakBytes)) / 1e6),
  };
}
