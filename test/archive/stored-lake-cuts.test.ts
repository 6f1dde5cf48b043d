// Which cuts a lake counts when it resumes: only what the archive's key has signed, or what the log
// names. A cut that somebody has put there or changed decides nothing: each event is in the lake, and once.

import { hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import { noHeads } from '../../src/archive/heads.ts';
import { encodeManifest } from '../../src/archive/layout.ts';
import { emptyRoot } from '../../src/archive/merkle.ts';
import type { Secret } from '../../src/contracts/secret.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { readParquet } from '../../src/parquet/read.ts';
import { objectBytes } from '../parquet/object-bytes.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import { eventsOf } from './a-lake.ts';
import {
  archived,
  aSigner,
  aSigningKey,
  aWriter,
  heldPages,
  type State,
  uidsOfPages,
} from './a-writer.ts';

/**
 * Writes the events of pages with a lake whose process has no memory of the archive; returns the existing objects it
 * found, and its reports.
 */
async function written(
  location: string,
  pages: readonly HeldPage[],
  {
    key = aSigningKey(),
    spoolId = 'spool-1',
  }: { readonly key?: Secret | null; readonly spoolId?: string } = {},
) {
  const signing = key === null ? {} : { signing_key: key };
  const { sink, batch, tools } = await openSink(
    lakeSink,
    { location, every: 3_600_000, ...signing },
    { spoolId },
  );
  const signal = new AbortController().signal;
  const reach = await sink.committed?.(signal);
  const sending = sink.send(batch(eventsOf(pages)), signal);
  sink.flush?.();
  const { outcome } = await sending;
  await sink.close();
  return { reach, outcome, reported: tools.logged.map(({ text }) => text) };
}

const filesIn = (location: string, ending: string) =>
  readdirSync(join(location, 'lake'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(location, 'lake', name))
    .toSorted();

/** The uids of all rows, in order. */
async function rowsIn(location: string): Promise<readonly (string | undefined)[]> {
  const tables = filesIn(location, '.parquet').map((name) =>
    readParquet(objectBytes(readFileSync(name))),
  );
  return (await Promise.all(tables))
    .flat()
    .map(({ metadata }) => metadata.uid)
    .toSorted();
}

/** An archive with a cut of its two pages, which the log names where it `isEntered`. */
async function anArchive({ isEntered = false } = {}) {
  const location = join(tempDir(), 'archive');
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(location), state });
  await archived(writer, heldPages(2));
  await written(location, heldPages(2));
  if (isEntered) await writer.close();
  const [cut = ''] = filesIn(location, '.cut');
  return { location, state, writer, cut };
}

const edited = (cut: string, change: (facts: Record<string, string>) => object) => {
  const [line = '', ...rest] = readFileSync(cut, 'latin1').split('\n');
  const facts = JSON.stringify({ ...JSON.parse(line), ...change(JSON.parse(line)) });
  return Buffer.from([facts, ...rest].join('\n'), 'latin1');
};

test('a cut as it was written counts', async () => {
  const { location } = await anArchive();

  const { reach, reported } = await written(location, heldPages(3));

  expect(reach).toEqual({ position: 6, ahead: false });
  expect(reported).toEqual([]);
  expect(await rowsIn(location)).toEqual(uidsOfPages(heldPages(3)).toSorted());
});

test.each<readonly [string, (cut: string) => void]>([
  [
    'says that it reaches further',
    (cut) =>
      writeFileSync(
        cut,
        edited(cut, () => ({ 'sluice-next': '900' })),
      ),
  ],
  [
    'is a copy under a later name, which says so',
    (cut) =>
      writeFileSync(
        cut.replace(/\d{2}\.cut$/, '90.cut'),
        edited(cut, () => ({ 'sluice-next': '900' })),
      ),
  ],
  [
    'has no signature',
    (cut) =>
      writeFileSync(
        cut.replace(/\d{2}\.cut$/, '90.cut'),
        edited(cut, () => ({ 'sluice-next': '900', 'sluice-signed': undefined })),
      ),
  ],
  ['is nothing of the kind', (cut) => writeFileSync(cut.replace(/\d{2}\.cut$/, '90.cut'), '{')],
])('a cut that %s keeps no event out of the lake', async (_, attack) => {
  const { location, cut } = await anArchive();
  attack(cut);

  const { outcome, reach, reported } = await written(location, heldPages(3));

  expect(outcome).toBe('delivered');
  expect(reach?.position).toBeLessThanOrEqual(6);
  expect(reported).toEqual(['a cut of the lake does not count']);
  expect(new Set(await rowsIn(location))).toEqual(new Set(uidsOfPages(heldPages(3))));
});

test('a list of uids that another key has signed keeps no event out after a lost state', async () => {
  const { location, cut } = await anArchive();
  const elsewhere = join(tempDir(), 'archive');
  const other = await aWriter({
    store: openDirectory(elsewhere),
    signer: aSigner('archive.test', 9),
  });
  await archived(other, heldPages(3));
  await written(elsewhere, heldPages(3), { key: aSigningKey('archive.test', 9) });
  await other.close();
  copyFileSync(filesIn(elsewhere, '.cut')[0] ?? '', cut.replace(/\d{2}\.cut$/, '90.cut'));
  await (
    await aWriter({ store: openDirectory(location), spool: 'spool-2' }).catch(() => null)
  )?.close();

  rmSync(join(location, 'writer'));
  const next = await aWriter({ store: openDirectory(location), spool: 'spool-2' });
  await written(location, heldPages(3), { spoolId: 'spool-2' });
  await next.close();

  expect(await rowsIn(location)).toEqual(uidsOfPages(heldPages(3)).toSorted());
});

test('a planted cut at the location of the next one is replaced', async () => {
  const { location, writer, cut } = await anArchive({ isEntered: false });
  const next = cut.replace(/\d{2}\.cut$/, '06.cut');
  mkdirSync(dirname(next), { recursive: true });
  copyFileSync(cut, next);
  await archived(writer, heldPages(1, 6));

  const { outcome } = await written(location, heldPages(3));
  await writer.close();

  expect(outcome).toBe('delivered');
  expect(readFileSync(next)).not.toEqual(readFileSync(cut));
  expect(await rowsIn(location)).toEqual(uidsOfPages(heldPages(3)).toSorted());
});

test.each([
  ['that the log names counts, with any signature', true],
  ['that the log does not name counts only if the present key has signed it', false],
])('a cut %s', async (_, isEntered) => {
  const { location } = await anArchive({ isEntered });
  const key = aSigningKey('archive.test', 2);
  const { rotateKey } = await import('../../src/archive/rotate.ts');
  const { systemClock } = await import('../../src/tools/clock.ts');
  await rotateKey(
    {
      ...{ store: openDirectory(location), clock: systemClock(), signer: aSigner() },
      ...{ spool: 'spool-1', epoch: 1, staleMs: 0, mark: null },
      remember: async () => undefined,
    },
    aSigner('archive.test', 2),
  );

  const { reach } = await written(location, heldPages(3), { key });

  expect(reach?.position).toBe(isEntered ? 6 : 0);
  expect(new Set(await rowsIn(location))).toEqual(new Set(uidsOfPages(heldPages(3))));
});

test('an unsigned cut counts in an archive of an older version', async () => {
  const location = join(tempDir(), 'archive');
  const { vkey: key, name: origin } = aSigner().verifier;
  const manifest = encodeManifest({
    ...{ origin, key, salt: '5a'.repeat(32), created_at: '2026-01-01T00:00:00.000Z' },
  });
  mkdirSync(location);
  writeFileSync(join(location, 'archive.json'), manifest);
  const begun = { size: 0, root: emptyRoot.toString('hex'), at: 0, heads: noHeads(key) };
  const mark = { archive: hash('sha256', manifest), location, ...begun };
  const writer = await aWriter({ store: openDirectory(location), state: { mark: mark as never } });
  await archived(writer, heldPages(2));
  await written(location, heldPages(2), { key: null });

  const { reach } = await written(location, heldPages(3));
  await writer.close();

  expect(reach).toEqual({ position: 6, ahead: false });
  expect(await rowsIn(location)).toEqual(uidsOfPages(heldPages(3)).toSorted());
});
