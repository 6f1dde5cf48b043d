// Pages whose events are in no cut of the lake, as `verify` counts them.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import { archived, aSigner, aWriter, heldPages, type State } from './a-writer.ts';

const cutsIn = (place: string) =>
  readdirSync(join(place, 'lake/cuts'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.cut'))
    .map((name) => join(place, 'lake/cuts', name))
    .toSorted();

/** Five pages of three events; each of `cuts` lists pages of one cut, and `spoil` changes one before it is entered. */
async function anArchive(cuts: readonly (readonly number[])[], spoil = (_: string) => {}) {
  const place = join(tempDir(), 'archive');
  const state: State = { mark: null };
  const pages = heldPages(5);
  const writer = await aWriter({ store: openDirectory(place), state });
  for (const page of pages) await archived(writer, [page]);
  for (const numbers of cuts) {
    await cut(place, eventsOf(pages.filter((_, i) => numbers.includes(i))), () => Date.now());
  }
  if (cuts.length > 0) spoil(place);
  await writer.close();
  const { exitCode, stdout } = await runHere([
    ...['archive', 'verify', place, '--key', aSigner().verifier.vkey, '--json'],
  ]);
  const { remarks } = JSON.parse(stdout) as { remarks: readonly string[] };
  return { exitCode, uncut: remarks.filter((one) => /no cut|newest cut/.test(one)) };
}

test('an archive without a lake, and a lake with all events, have no such page', async () => {
  expect(await anArchive([])).toEqual({ exitCode: 0, uncut: [] });
  expect(
    await anArchive([
      [0, 1, 2],
      [3, 4],
    ]),
  ).toEqual({ exitCode: 0, uncut: [] });
});

test('pages before the first cut and after the last are counted with their entries', async () => {
  const { exitCode, uncut } = await anArchive([[1], [2]]);

  expect(exitCode).toBe(0);
  expect(uncut).toEqual([
    expect.stringMatching(/^3 events of 1 pages \(entries (\d+) to \1\) are in no cut of the lake/),
    expect.stringMatching(/^6 events of 2 pages \(entries \d+ to \d+\) are newer than the newest/),
  ]);
});

test.each([
  ['removed', (path: string) => rmSync(path)],
  [
    'changed',
    (path: string) =>
      writeFileSync(path, readFileSync(path, 'latin1').replace(/"rows":\d+/, '"rows":9'), 'latin1'),
  ],
])('a cut that was %s before it was entered leaves its pages counted', async (_, change) => {
  const { exitCode, uncut } = await anArchive([[0], [1, 2], [3, 4]], (place) =>
    change(cutsIn(place)[1] ?? ''),
  );

  expect(exitCode).toBe(0);
  expect(uncut).toEqual([
    expect.stringMatching(/^6 events of 2 pages \(entries \d+ to \d+\) are in no cut of the lake/),
  ]);
});
