// A cutover and its answer are one change: a process that is killed right after the change leaves its answer to the successor,
// which would find the pair cut over already, and say that it was not done. One that its command has withdrawn is not carried out.

import { expect, test } from 'vitest';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import type { OwnSpool } from '../../src/hold/spool.ts';
import { lookInto } from '../../src/hold/store.ts';
import { type RequestDeps, serveRequests } from '../../src/run/requests.ts';
import { settlePairs } from '../../src/succession/settle.ts';
import { aSpool, minuteMs } from '../list/reading.ts';
import { answerWith, madeUpList } from '../support/made-up-list.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const cutover = { what: 'cut_over', phase: 'cut_over', isForced: true } as const;

/** A pair, and a process that is killed before it could store an answer by itself. `reading` runs while its sides are read. */
async function aPair(reading: (spool: OwnSpool) => Promise<void> = async () => undefined) {
  const dir = tempDir();
  const spool = (await aSpool(dir)) as OwnSpool;
  const source = (name: string, parts: Partial<PlannedSource> = {}) =>
    ({
      ...{ name, reading: { id: 'id', time: [] }, collection: null },
      streams: [madeUpList(async () => answerWith([{ id: 'a' }]), { name, source: name })],
      ...parts,
    }) as unknown as PlannedSource;
  const succeeds = { source: 'old', overlapMs: 0, patienceMs: minuteMs, fields: {}, ignore: [] };
  await settlePairs(spool, [source('old'), source('new', { succeeds })], silent);
  await spool.takeUp('command', 'new', cutover, 1);
  let reads = 0;
  const killed: Pick<OwnSpool, 'requests' | 'settle' | 'cutOver'> = {
    requests: () => spool.requests(),
    cutOver: (wish) => spool.cutOver(wish),
    settle: async () => undefined,
  };
  const readNow = async () => {
    reads += 1;
    await reading(spool);
    return null;
  };
  const sources = { new: { succeeds: { source: 'old' } } };
  const stop = new AbortController();
  const clock = manualClock();
  const serving = serveRequests(
    {
      ...{ spool: killed, pipeline: { readNow }, tools: { clock, log: silent } },
      ...{ made: () => ({ config: { sources } }), reads: () => false },
    } as unknown as RequestDeps,
    stop.signal,
  );
  return {
    spool,
    isCutOver: () =>
      lookInto(dir, null, (store) => store.pairReports(1))?.[0]?.phase === 'cut_over',
    async end() {
      // Both sides are read by the first look.
      await waitUntil(() => reads === 2, { what: 'both sides to be read' });
      await spool.requests();
      stop.abort(new Error('killed'));
      await serving;
    },
  };
}

test('a cutover is stored with its answer', async () => {
  const { spool, isCutOver, end } = await aPair();

  await end();

  const [request] = await spool.requests();
  expect(request?.answer).toMatchObject({ isDone: true });
  expect(isCutOver()).toBe(true);
});

test('a cutover that was withdrawn while both sides were read is not carried out', async () => {
  const { spool, isCutOver, end } = await aPair(async (spool) => {
    for (const { id } of await spool.requests()) await spool.withdraw(id);
  });

  await end();

  expect(await spool.requests()).toEqual([]);
  expect(isCutOver()).toBe(false);
});
