// The pairs of a config as the spool has them. Records that wait are compared again where the config
// folds them otherwise than before: an operator who sets `id` or `fields` because too few match must
// not get twice what was held until then.

import type { ComparedAnew, NewPage, PairStore, Spool } from '../../contracts/spool.ts';
import type { WaitingRecord } from '../../contracts/succession.ts';
import { type PairedSource, type Pairing, pairingsOf } from './pairing.ts';
import { pairedPage } from './side.ts';

/** Records that are compared in one transaction. */
const comparedAtOnce = 256;

/** Starts or resumes the pairs of these sources, before any of their streams is read. */
export async function settlePairs(
  { pairs }: Pick<Spool, 'pairs'>,
  sources: readonly PairedSource[],
): Promise<void> {
  const pairings = pairingsOf(sources);
  const changed = (await pairs?.settle(pairings.map(({ plan }) => plan))) ?? [];
  for (const pairing of pairings) {
    if (pairs !== undefined && changed.includes(pairing.plan.successor)) {
      await compareAnew(pairing, pairs);
    }
  }
}

async function compareAnew(pairing: Pairing, pairs: PairStore): Promise<void> {
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
): ComparedAnew[] {
  const body = Buffer.concat([Buffer.from('['), record, Buffer.from(']')]);
  const page: NewPage = { context: JSON.parse(context), body, items: '', kept: null, uids: uid };
  // A change of a collection is known by what it was compared with then.
  if (page.context.kind === 'drift') return [];
  const { pair } = pairedPage(page, { pairing, side });
  return (pair?.records ?? []).map((compared) => ({ id, record: compared }));
}
