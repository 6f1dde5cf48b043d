// From when a successor's records are compared: `overlap` before the pairing began, or as far back as the predecessor's
// stored identities reach, if that is less.

import type { Log, Spool } from '../contracts/index.ts';
import { noHorizon, parseListCheckpoint } from '../list/index.ts';

import { timeText } from '../tools/index.ts';
import type { Pairing } from './pairing.ts';

/** Epoch milliseconds. */
export async function comparedFrom(
  pairing: Pairing | undefined,
  spool: Pick<Spool, 'recall' | 'pairs'>,
  log?: Log,
): Promise<number> {
  if (pairing === undefined) return Number.NEGATIVE_INFINITY;
  const { plan, sides } = pairing;
  const reports = (await spool.pairs?.reports()) ?? [];
  const report = reports.find(({ successor }) => successor === plan.successor);
  const begunAt = report?.begunAt;
  const requested = (begunAt ?? Date.now()) - plan.overlapMs;
  const reached = await Promise.all(
    plan.streams.old
      // The other streams deliver from the pairing on, whatever the time of their records.
      .filter((stream) => report?.fresh.includes(stream) !== true)
      .map((stream) => reachOf(stream, spool, sides.old.paths.id !== null)),
  );
  const from = Math.max(
    requested,
    ...reached.flatMap((reach) => (reach === 'pairing' ? (begunAt ?? requested) : reach)),
  );
  if (from > requested) {
    const { successor, predecessor } = plan;
    log?.info('overlap_shortened', 'a successor is compared from a later time than overlap says', {
      ...{ source: successor, predecessor },
      ...{ compared_from: timeText(from), overlap_from: timeText(requested) },
      next: `The stored identities of ${predecessor} reach back no further. Nothing is missing: ${predecessor} delivered what is older.`,
    });
  }
  return from;
}

/** From when all records delivered by a stream are known; `pairing`: earlier deliveries cannot be compared. */
async function reachOf(
  stream: string,
  spool: Pick<Spool, 'recall'>,
  hasIds: boolean,
): Promise<number | 'pairing' | readonly []> {
  const { checkpoint, identities } = await spool.recall(stream);
  if (checkpoint === null || identities.length === 0) return [];
  if (!hasIds) return 'pairing';
  const list = parseListCheckpoint(checkpoint);
  if (list === null) return [];
  const { wanted: requested, memory } = list;
  // Some records have no id, or no identity is remembered.
  if (memory.nameless || memory.horizon === noHorizon) return 'pairing';
  return Math.max(
    requested.standingBefore ?? requested.since ?? Number.NEGATIVE_INFINITY,
    memory.horizon ?? Number.NEGATIVE_INFINITY,
  );
}
