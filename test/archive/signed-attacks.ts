// Archives of a writer that believed what somebody had put into the store, as older versions did: it signed what is not
// true. And the attack that had it do so, on the writer of this version.

import { hash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import type { Entry, PageEntry } from '../../src/archive/entries.ts';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { openArchiveLog } from '../../src/archive/recovery.ts';
import { blankFrame, compressBody, pageRange } from '../../src/archive/segments.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { archived, aSigner, aWriter, heldPages } from './a-writer.ts';
import type { Attack } from './attacks.ts';

const at = '2026-11-25T00:00:00.000Z';

/** Signs these entries, whatever they say. */
export async function sign(store: ObjectStore, entries: readonly Entry[]): Promise<void> {
  const log = await openArchiveLog({
    ...{ store, clock: systemClock(), signer: aSigner(), spool: 'spool-1', staleMs: 1 },
    ...{ mark: null, remember: async () => undefined },
  });
  for (const entry of entries) log.append(entry);
  await log.publish([], Date.now());
  await log.deps.claim.renew(true);
}

async function pagesIn(place: string) {
  const reader = new ArchiveReader(openDirectory(place));
  const { size } = await newestCheckpoint(reader);
  const all = await Array.fromAsync(loggedEntries(reader, size));
  return all.flatMap(({ entry, index }) => (entry.t === 'page' ? [{ entry, index }] : []));
}

/** The last of some pages of an archive, its body in another form behind its segment, and its own blanked. */
async function rewritten(
  place: string,
  change: (body: string, record: string) => string,
  isOne: (entry: PageEntry) => boolean = () => true,
) {
  const pages = await pagesIn(place);
  const { entry, index } = pages.findLast((page) => isOne(page.entry)) as (typeof pages)[number];
  const { segment, length } = entry.body;
  const whole = readFileSync(join(place, segment));
  const range = pageRange(entry);
  const page = whole.subarray(range.from, range.from + range.length);
  const body = zstdDecompressSync(page.subarray(0, length));
  const { starts, ends } = cutRecords(body, entry.items);
  const record = body.toString('utf8', starts[0], ends[0]);
  const text = Buffer.from(change(body.toString(), record));
  const frame = await compressBody(text);
  const kept = Buffer.from(page.subarray(length));
  blankFrame(page.subarray(0, length));
  const bytes = Buffer.concat([whole, frame, kept]);
  await openDirectory(place).put(segment, [bytes]);
  return {
    ...{ index, page: entry, record },
    body: {
      ...{ sha256: hash('sha256', text, 'hex'), bytes: text.length },
      ...{ segment, at: whole.length, length: frame.length },
    },
    segment: { bytes: bytes.length, sha256: hash('sha256', bytes, 'hex') },
  };
}

/** An entry that erases the first record of that page. */
function erasureOf({ index, page, record, body, segment }: Awaited<ReturnType<typeof rewritten>>) {
  const { fetched_at, body: was } = page;
  return {
    ...{ t: 'erased', at, page: { index, segment: was.segment, at: was.at, fetched_at } },
    ...{ records: [{ place: 0, sha256: hash('sha256', record, 'hex') }], reason: 'a case' },
    ...{ body, segment },
  } satisfies Entry;
}

/**
 * Signs an erasure, and stops before the segment is written: it is as an earlier erasure left it. The archive is whole.
 * In a full archive, whose first segment has an erasure.
 */
export async function interruptedErasure(place: string): Promise<void> {
  const segment = (await pagesIn(place))[6]?.entry.body.segment ?? '';
  const bytes = readFileSync(join(place, segment));
  const change = (body: string, record: string) => body.replace(record, 'null');
  const made = await rewritten(place, change, (entry) => entry.body.segment === segment);
  await openDirectory(place).put(segment, [bytes]);
  await sign(openDirectory(place), [erasureOf(made)]);
}

/** Those that end in a broken archive. */
export const signedAttacks: readonly Attack[] = [
  {
    name: 'an erasure was signed, and another record is another',
    async apply(place) {
      const change = (body: string, record: string) =>
        body.replace(record, 'null').replace('"id":"', '"id":"9');
      await sign(openDirectory(place), [erasureOf(await rewritten(place, change))]);
    },
  },
  {
    name: 'an erasure was signed, and something is in the place of its record',
    async apply(place) {
      const change = (body: string, record: string) => body.replace(record, '{"id":"x"}');
      await sign(openDirectory(place), [erasureOf(await rewritten(place, change))]);
    },
  },
  {
    name: 'an erasure was signed that names another segment than there is',
    async apply(place) {
      const made = await rewritten(place, (body) => body);
      const segment = { ...made.segment, sha256: '0'.repeat(64) };
      await sign(openDirectory(place), [erasureOf({ ...made, segment })]);
    },
  },
  {
    name: 'a forged body and a request to erase, before the writer runs again',
    async apply(place) {
      const made = await rewritten(place, (body) => body.replace('{', '{"invented":true,'));
      const uids = await openDirectory(place).read(made.page.body.segment);
      const uid = Buffer.from(uids?.body ?? [])
        .subarray(made.body.at + made.body.length + 8)
        .toString('hex', 0, 32);
      const span = { from: '2020-01-01T00:00:00Z', to: '2030-01-01T00:00:00Z' };
      const request = { uid, reason: 'a case', asked_at: timeText(Date.now()), ...span };
      await openDirectory(place).put(requestPath(uid), [encodeRequest(request)]);
      const writer = await aWriter({ store: openDirectory(place), spool: 'spool-2' });
      for (const page of heldPages(2)) await archived(writer, [page]);
      await writer.close();
    },
  },
  {
    name: 'a segment under a hold was removed, and an entry says that its pages are older',
    unseen: 'removals',
    async apply(place) {
      const object = (await pagesIn(place)).at(-1)?.entry.body.segment ?? '';
      const [first, last] = ['1990-01-01T00:00:00.000Z', '1990-01-01T00:00:01.000Z'];
      await sign(openDirectory(place), [
        { t: 'pruned', at, object, pages: 6, first, last, why: 'asked' },
      ]);
      rmSync(join(place, object));
    },
  },
  {
    name: 'an erasure was signed of what is no page',
    unseen: 'removals',
    async apply(place) {
      const { entry } = (await pagesIn(place))[0] as { entry: PageEntry };
      const page = { index: 0, segment: entry.body.segment, at: 0, fetched_at: at };
      const sha256 = '5f'.repeat(32);
      const body = { sha256, bytes: 1, segment: entry.body.segment, at: 0, length: 1 };
      const segment = { bytes: 1, sha256 };
      await sign(openDirectory(place), [
        { t: 'erased', at, page, records: [{ place: 0, sha256 }], reason: 'r', body, segment },
      ]);
    },
  },
  {
    name: 'a row of the lake was erased whose record is there',
    unseen: 'the lake',
    async apply(place) {
      const reader = new ArchiveReader(openDirectory(place));
      const { size } = await newestCheckpoint(reader);
      const all = await Array.fromAsync(loggedEntries(reader, size));
      const lake = all.map(({ entry }) => entry).findLast((entry) => entry.t === 'lake');
      if (lake?.t !== 'lake') throw new Error('there is a lake');
      const { object, sha256: from } = lake;
      const nothing = { bytes: 0, sha256: hash('sha256', '', 'hex'), rows: 0 };
      await sign(openDirectory(place), [
        {
          ...{ t: 'lake_erased', at, object, from, uids: ['5f'.repeat(32)], reason: 'a case' },
          ...{ ...nothing, first: at, last: at },
        },
      ]);
      rmSync(join(place, object));
    },
  },
];
