// Whether a successor may begin its first walk. That walk begins `overlap` before the pairing, because the predecessor
// has delivered older records. Invariant: if nothing shows that the predecessor has delivered them, and it cannot be
// read, the successor reads nothing until the operator sets `start`: no record is skipped silently.

import { type Clock, ExportError, type Spool } from '../contracts/index.ts';
import { parseListCheckpoint } from '../list/index.ts';
import type { PollResult } from '../poll/index.ts';
import { timeText } from '../tools/index.ts';
import { comparedFrom } from './compared-from.ts';
import type { Pairing } from './pairing.ts';

/** A stream of the predecessor, as this process reads it. */
export interface OldStream {
  readonly polls: number;
  /** Null: its last poll did not fail. */
  readonly failure: ExportError | null;
}

/** `wait`: the predecessor is polled for the first time. An error: see `deadPredecessor`. */
export type FirstWalk = 'begin' | 'wait' | ExportError;

/** Whether the first walk of a successor's stream may begin; `begin` also after it has. */
export async function firstWalk(
  pairing: Pairing,
  stream: string,
  { spool, olds }: { readonly spool: Spool; readonly olds: readonly OldStream[] },
): Promise<FirstWalk> {
  if ((await spool.recall(stream)).checkpoint !== null) return 'begin';
  const { successor, predecessor, streams } = pairing.plan;
  const from = await comparedFrom(pairing, spool);
  const reports = (await spool.pairs?.reports()) ?? [];
  const report = reports.find((one) => one.successor === successor);
  if ((report?.reached.old ?? 0) >= from) return 'begin';
  const failure = olds.find((one) => one.failure !== null)?.failure ?? null;
  if (failure === null) return olds.some(({ polls }) => polls === 0) ? 'wait' : 'begin';
  const known = await Promise.all(streams.old.map((name) => newestOf(name, spool)));
  return deadPredecessor({
    ...{ successor, predecessor, from, cause: failure.message },
    newest: earliestOf(known),
  });
}

/** The latest record time that a stream has read, epoch milliseconds; null: unknown. */
async function newestOf(stream: string, spool: Pick<Spool, 'recall'>): Promise<number | null> {
  const { checkpoint } = await spool.recall(stream);
  return parseListCheckpoint(checkpoint)?.memory.watermark ?? null;
}

/** The earliest of the streams' times decides; streams without one are ignored. */
export function earliestOf(times: readonly (number | null)[]): number | null {
  const known = times.filter((one) => one !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The facts on a predecessor that cannot be read. Times are epoch milliseconds. */
interface DeadPredecessor {
  readonly successor: string;
  readonly predecessor: string;
  /** Why it cannot be read. */
  readonly cause: string;
  /** From when the successor would read. */
  readonly from: number;
  /** The newest record that it has delivered; null: unknown. */
  readonly newest: number | null;
}

/** Why a successor does not start, with the `start` to set. */
export function deadPredecessor(dead: DeadPredecessor): ExportError {
  const { successor, predecessor, cause, from, newest } = dead;
  const start =
    newest === null
      ? `the time of the newest event of ${predecessor} at your sinks; the state does not have it`
      : `${timeText(newest)}, the time of the newest record that ${predecessor} has delivered`;
  return new ExportError(
    'config_invalid',
    `starting ${successor}: ${predecessor} cannot be read (${cause}), so no record can be matched, and records before ${timeText(from)} that ${predecessor} has not delivered would be missing; set sources.${successor}.start`,
    {
      next: `Set sources.${successor}.start to ${start}. Then cut over: sluice succession cutover ${successor} --force. If ${predecessor} can be read again, ${successor} starts by itself.`,
    },
  );
}

/** Wait for the predecessor's first poll, milliseconds. */
const awaitMs = 250;
/**
 * Interval at which a held-back successor tries again, and at which it checks whether its predecessor is read;
 * milliseconds.
 */
const [againMs, lookMs] = [60_000, 1_000];

/** The poll result of a successor that must not begin its first walk. */
export function heldBack(
  verdict: Exclude<FirstWalk, 'begin'>,
  { clock, olds }: { readonly clock: Clock; readonly olds: () => readonly OldStream[] },
): PollResult {
  if (verdict === 'wait') return { outcome: 'done', fresh: 0, more: true, againMs: awaitMs };
  const recovered = async (signal: AbortSignal) => {
    do await clock.sleep(lookMs, signal);
    while (olds().some(({ failure }) => failure !== null));
  };
  const wait = { ms: againMs, cut: () => undefined, repaired: recovered };
  return { outcome: 'refused', isDefinite: true, cause: verdict, wait };
}
