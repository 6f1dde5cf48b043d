// The lake of an archive in a directory: what stands there after failures, restarts and beside an older state.

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lakeSink } from '../../../connectors/sinks/lake.ts';
import { Claim } from '../../../src/archive/claim.ts';
import { cutsPrefix, lakePrefix, parseLakeCut } from '../../../src/archive/lake-cuts.ts';
import type { Event } from '../../../src/contracts/event.ts';
import { openDirectory } from '../../../src/objects/directory.ts';
import { lakeNameParts } from '../../../src/parquet/lake.ts';
import { readParquet } from '../../../src/parquet/read.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { objectBytes } from '../../parquet/object-bytes.ts';
import { anEvent } from '../../support/an-event.ts';
import { type OpeningWishes, openSink, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';

const settings = (location: string) => ({ location, every: 3_600_000 });

/** Events of two classes and two days, in order. */
const events = (from: number, to: number): readonly Event[] =>
  Array.from({ length: to - from }, (_, i) => {
    const offset = from + i;
    const day = Date.UTC(2026, 2, 3 + (offset % 2), 12);
    const class_uid = offset % 3 === 0 ? 3002 : 6003;
    return anEvent({ offset, ocsf: { class_uid, time: day + offset } });
  });

/** The archive there as its sink has opened it. */
async function opened(location: string, { spoolId = 'spool-1', epochs }: OpeningWishes = {}) {
  const epoch = epochs?.at(-1)?.id ?? 1;
  const store = openDirectory(location);
  await Claim.take({ store, clock: systemClock(), spool: spoolId, epoch, staleMs: 0 });
}

/** Sends the events as one batch, and has them written; what it came to, and what is remembered. */
async function written(location: string, sent: readonly Event[], wishes: OpeningWishes = {}) {
  await opened(location, wishes);
  const { sink, batch } = await openSink(lakeSink, settings(location), wishes);
  const reach = await sink.committed?.(new AbortController().signal);
  const sending = sink.send(batch(sent), new AbortController().signal);
  sink.flush?.();
  const { outcome } = await sending;
  await sink.close();
  return { outcome, reach };
}

async function statusView(location: string) {
  const names: string[] = [];
  for await (const { name } of openDirectory(location).list(lakePrefix)) names.push(name);
  const tables = names.filter((name) => lakeNameParts(name) !== null);
  const rows = await Promise.all(
    tables.map((name) => readParquet(objectBytes(readFileSync(join(location, name))))),
  );
  const cuts = names.filter((name) => name.startsWith(cutsPrefix));
  const listed = cuts.flatMap((name) => parseLakeCut(readFileSync(join(location, name))).objects);
  return { tables, cuts, listed, uids: rows.flat().map(({ metadata }) => metadata.uid) };
}

const sorted = (uids: readonly string[]) => uids.toSorted();
const uidsOf = (list: readonly Event[]) => list.map(({ uid }) => uid);

test('events stand by class and day, each once, in objects that a cut lists', async () => {
  const location = tempDir();
  const sent = events(0, 60);

  expect((await written(location, sent)).outcome).toBe('delivered');

  const { tables, listed, uids, cuts } = await statusView(location);
  expect(sorted(uids)).toEqual(sorted(uidsOf(sent)));
  expect(new Set(tables)).toEqual(new Set(listed.map(({ object }) => object)));
  expect(tables.length).toBe(4);
  expect(cuts.length).toBe(1);
  expect(tables[0]).toMatch(
    /^lake\/3002\/region=local\/accountId=c-1\/eventDay=20260303\/\d{13}-\d{13}-[0-9a-f]{12}\.parquet$/,
  );
});

test('a state that knows nothing any more writes no event a second time', async () => {
  const location = tempDir();
  await written(location, events(0, 60));

  const again = await written(location, events(0, 90), { spoolId: 'another' });

  expect(again.reach?.ahead).toBe(true);
  expect(again.outcome).toBe('delivered');
  expect(sorted((await statusView(location)).uids)).toEqual(sorted(uidsOf(events(0, 90))));
});

test('the same state resumes after the existing objects', async () => {
  const location = tempDir();
  await written(location, events(0, 60));

  const again = await written(location, events(0, 90));

  expect(again.reach).toEqual({ position: 60, ahead: false });
  expect(sorted((await statusView(location)).uids)).toEqual(sorted(uidsOf(events(0, 90))));
});

test.each<[string, OpeningWishes | null]>([
  ['was not opened', null],
  ['is another state’s', { spoolId: 'another' }],
  ['is at work for a process that began later', { epochs: [{ id: 2, until: null }] }],
])('nothing is written beside an archive that %s', async (_, other) => {
  const location = tempDir();
  if (other !== null) await opened(location, other);
  const before = readdirSync(location, { recursive: true });
  let now = 0;
  const clock = { ...systemClock(), monotonic: () => (now += 100), sleep: async () => undefined };
  const { sink, batch } = await openSink(lakeSink, settings(location), { tools: testTools(clock) });
  const signal = new AbortController().signal;

  const refused = { code: 'sink_unreachable', message: expect.stringContaining('not opened') };
  await expect(sink.committed?.(signal)).rejects.toMatchObject(refused);
  const sending = sink.send(batch(events(0, 5)), signal);
  sink.flush?.();
  expect(await sending).toMatchObject({ outcome: 'retry', cause: refused });
  expect(readdirSync(location, { recursive: true })).toEqual(before);

  rmSync(join(location, 'writer'), { force: true });
  expect((await written(location, events(0, 5))).outcome).toBe('delivered');
});

test('nothing more is written once another process owns the archive', async () => {
  const location = tempDir();
  await opened(location);
  const { sink, batch } = await openSink(lakeSink, settings(location));
  const signal = new AbortController().signal;
  await sink.committed?.(signal);
  await opened(location, { epochs: [{ id: 2, until: null }] });
  const sending = sink.send(batch(events(0, 5)), signal);
  sink.flush?.();

  expect(await sending).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  expect((await statusView(location)).tables).toEqual([]);
});
