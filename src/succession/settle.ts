// Synchronises the pairs of a config with the spool. Waiting records are compared again if the config folds them
// otherwise than before: an operator who sets `id` or `fields` because too few records match must not receive the
// waiting ones twice.

import type {
  ComparedRecord,
  Log,
  NewPage,
  PairStore,
  Spool,
  WaitingRecord,
} from '../contracts/index.ts';
import { type PairedSource, type Pairing, pairingsOf } from './pairing.ts';
import { pairedPage } from './side.ts';

/** Records compared in one transaction. */
const comparedAtOnce = 256;

/** Starts or resumes the pairs of these sources, before any of their streams is read. */
export async function settlePairs(
  { pairs }: Pick<Spool, 'pairs'>,
  sources: readonly PairedSource[],
  log: Log,
): Promise<void> {
  const pairings = pairingsOf(sources);
  for (const { successor, predecessor, phase } of (await pairs?.reports()) ?? []) {
    const isKept = pairings.some(
      ({ plan }) => plan.successor === successor && plan.predecessor === predecessor,
    );
    if (isKept || phase === 'cut_over') continue;
    log.warn('pair_given_up', 'succeeds was removed before the cutover: records can be repeated', {
      ...{ source: successor, predecessor, phase },
      next: givenUpNext(successor, predecessor),
    });
  }
  const changed = (await pairs?.settle(pairings.map(({ plan }) => plan))) ?? [];
  for (const pairing of pairings) {
    if (pairs !== undefined && changed.includes(pairing.plan.successor)) {
      await compareAgain(pairing, pairs);
    }
  }
}

/** The next step if a pair was removed before its cutover. */
export function givenUpNext(successor: string, predecessor: string): string {
  return `Put succeeds: { source: ${predecessor} } of sources.${successor} back and cut over first (sluice succession cutover ${successor}), or expect records that both sources deliver.`;
}

async function compareAgain(pairing: Pairing, pairs: PairStore): Promise<void> {
  const { successor } = pairing.plan;
  for (let after = 0; ; ) {
    const waiting = await pairs.waiting(successor, after, comparedAtOnce);
    const last = waiting.at(-1);
    if (last === undefined) return;
    await pairs.compare(
      successor,
      waiting.flatMap((one) => comparedOf(one, pairing)),
    );
    after = last.id;
  }
}

function comparedOf(
  { id, side, context, uid, record }: WaitingRecord,
  pairing: Pairing,
): ComparedRecord[] {
  const body = Buffer.concat([Buffer.from('['), record, Buffer.from(']')]);
  const page: NewPage = { context: JSON.parse(context), body, items: '', kept: null, uids: uid };
  // A change of a collection keeps the comparison key of that time.
  if (page.context.kind === 'drift') return [];
  const { pair } = pairedPage(page, { pairing, side });
  return (pair?.records ?? []).map((compared) => ({ id, record: compared }));
}
