// An erasure while an object of the lake, or a segment, is away: somebody could put the record back with it. The writer
// refuses the request, and carries out the next one when the object is there again.

import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { entriesOf } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import { archived, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

test.each([
  ['lake', '.parquet'],
  ['segments', '.zst'],
])('an erasure is refused while an object of %s/ is away', async (part, ending) => {
  const place = join(tempDir(), 'archive');
  const store = openDirectory(place);
  const state: State = { mark: null };
  const pages = heldPages(2);
  const writer = await aWriter({ store, state });
  await archived(writer, pages);
  await cut(place, eventsOf(pages));
  await archived(writer, heldPages(1, 6));
  const erased = () =>
    Array.fromAsync(
      entriesOf(new ArchiveReader(store), ['erased', 'lake_erased']),
      ({ entry }) => entry.t,
    );
  const request = async () => {
    const [uid = ''] = uidsOfPages(pages);
    const wish = { uid, reason: 'a case', asked_at: timeText(Date.now()) };
    await store.put(requestPath(uid), [encodeRequest(wish)]);
  };
  const objects = readdirSync(join(place, part), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(place, part, name));
  const aside = tempDir();
  const back = objects.map((path, i) => [path, join(aside, `${i}`)] as const);
  for (const [path, away] of back) renameSync(path, away);
  await request();
  await archived(writer, heldPages(1, 9));
  for (const [path, away] of back) renameSync(away, path);
  const during = await erased();
  await writer.close();
  // A process tries a failed request once.
  const next = await aWriter({ store, state });
  await archived(next, heldPages(1, 12));
  await next.close();

  expect(during).toEqual([]);
  expect(await erased()).toEqual(['erased', 'lake_erased']);
});
