// Erasing one record: it is removed from every page that has it, the archive verifies and reports the erasure, all
// other records are proven as before, and a process killed at any step leaves an archive that verifies and resumes.

import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { copiesOf } from '../../src/archive/copies.ts';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { archivedPage } from '../../src/archive/pages.ts';
import { findRecord } from '../../src/archive/prove.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { keptRecords } from '../../src/archive/records.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import {
  archived,
  aSigner,
  aWriter,
  heldPages,
  type Kill,
  Killed,
  mortal,
  type State,
  uidsOfPages,
} from './a-writer.ts';

const { vkey } = aSigner().verifier;
const reason = 'request 17 of a <person> of a\u001b[31mn\u202eame';

/** Three pages of three records each, and one that shows the second record of the first again. */
function pages(): readonly HeldPage[] {
  const [first, ...others] = heldPages(3);
  if (first === undefined) throw new Error('there are pages');
  const again = { ...first, kept: new Uint32Array(0), uids: new Uint8Array(0), first: 9, count: 0 };
  return [first, ...others, again];
}

const [, uid = '', third = ''] = uidsOfPages(pages());

/** All that can be read of an archive's segments. */
async function textsOf(store: ObjectStore): Promise<string> {
  const texts: string[] = [];
  for await (const { name } of store.list('segments/')) {
    const { body } = (await store.read(name)) ?? { body: new Uint8Array(0) };
    texts.push(Buffer.from(body).toString('latin1'), everyFrame(Buffer.from(body)));
  }
  return texts.join('\n');
}

const magic = Buffer.from('28b52ffd', 'hex');

/** Whatever decompresses, wherever it begins. */
function everyFrame(bytes: Buffer): string {
  const found: string[] = [];
  for (let at = bytes.indexOf(magic); at >= 0; at = bytes.indexOf(magic, at + 1)) {
    found.push(zstdDecompressSync(bytes.subarray(at)).toString('utf8'));
  }
  return found.join('\n');
}

async function requested(store: ObjectStore, of = uid): Promise<string> {
  const reader = new ArchiveReader(store);
  const found = await findRecord(reader, of);
  if (found === null) throw new Error('the record is there');
  const record = keptRecords({ ...found.page, items: found.page.entry.items })[found.place];
  const bytes = record ?? new Uint8Array(0);
  const sha256 = hash('sha256', bytes, 'hex');
  const copies = await copiesOf(reader, { bytes, sha256 });
  const request = {
    uid: of,
    sha256,
    reason,
    asked_at: timeText(Date.now()),
    pages: [...copies],
    lake: [],
  };
  await store.put(requestPath(of), [encodeRequest(request)]);
  return Buffer.from(bytes).toString('utf8');
}

/** A store that keeps versions, and all that can be read of the older ones. */
function versionedStore(): { readonly store: ObjectStore; readonly olderText: () => string } {
  const inner = writableStore();
  const older = new Map<string, readonly Uint8Array[]>();
  const store: ObjectStore = {
    ...inner,
    replace: async (name, ...by) => {
      const before = await inner.read(name);
      const tag = await inner.replace(name, ...by);
      const isOlder = before !== null && tag !== null && name.startsWith('segments/');
      if (isOlder) older.set(name, [...(older.get(name) ?? []), before.body]);
      return tag;
    },
    removeOlder: async (name) => {
      older.delete(name);
    },
  };
  const bodies = () => [...older.values()].flat();
  return {
    store,
    olderText: () =>
      bodies()
        .map((one) => everyFrame(Buffer.from(one)))
        .join('\n'),
  };
}

const verified = (store: ObjectStore) =>
  verifyArchive(new ArchiveReader(store), { trusted: [aSigner().verifier] });

async function uidsLeft(store: ObjectStore): Promise<readonly string[]> {
  const reader = new ArchiveReader(store);
  const uids: string[] = [];
  for await (const { entry } of loggedEntries(reader, (await newestCheckpoint(reader)).size)) {
    const page = entry.t === 'page' ? await archivedPage(reader, entry, 0) : null;
    if (page !== null) uids.push(...uidsOfPages([page]));
  }
  return uids;
}

test('the program erases a record, and everything else is proven as before', async () => {
  const location = tempDir();
  const store = openDirectory(location);
  const state: State = { mark: null };
  const writer = await aWriter({ store, state });
  await archived(writer, pages());
  const run = (...args: readonly string[]) => runHere(['archive', ...args]);
  const record = join(tempDir(), 'record');
  const before = await run('prove', location, '--uid', uid, '--record', record);
  const oldProof = join(tempDir(), 'proof');
  writeFileSync(oldProof, before.stdout);
  const text = readFileSync(record, 'utf8');
  const args = ['--uid', uid, '--reason', reason];

  const unsure = await run('erase', location, ...args);
  const asked = await run('erase', location, ...args, '--yes');
  await archived(writer, heldPages(1, 9));
  const again = await run('erase', location, ...args, '--yes');
  const other = await run('erase', location, '--uid', third, '--reason', 'another', '--yes');
  await archived(writer, heldPages(1, 12));
  await writer.close();

  expect([unsure, asked, again, other].map(({ exitCode }) => exitCode)).toEqual([1, 0, 0, 0]);
  expect(asked.stdout).toContain('would be erased from 2 pages in 1 segment: requested');
  expect(again.stdout).toContain('is erased already');
  expect(await textsOf(store)).not.toContain(text);
  const report = await run('verify', location, '--key', vkey, '--html', `${record}.html`);
  expect(report).toMatchObject({ exitCode: 0, stderr: '' });
  const sha256 = hash('sha256', text, 'hex');
  expect(report.stdout).toMatch(
    new RegExp(`1 record of the page of entry \\d+ \\(SHA-256 ${sha256}\\): request 17`),
  );
  expect(report.stdout).not.toMatch(/\u001b\[31m|\u202e/);
  expect(readFileSync(`${record}.html`, 'utf8')).toContain('request 17 of a &#60;person');
  const json = JSON.parse((await run('verify', location, '--key', vkey, '--json')).stdout);
  expect(json.erasures.map(({ records }: { records: string[] }) => records.length)).toEqual([
    ...[1, 1, 1, 1],
  ]);

  const uids = uidsOfPages([...heldPages(5)]);
  for (const one of uids) {
    const proven = await run('prove', location, '--uid', one, '--record', record);
    if (one === uid || one === third) {
      expect(proven).toMatchObject({ exitCode: 1, stdout: '' });
      expect(proven.stderr).toContain('the record was erased');
      continue;
    }
    expect(proven).toMatchObject({ exitCode: 0 });
    const proof = join(tempDir(), 'proof');
    writeFileSync(proof, proven.stdout);
    const checked = await run('check-proof', proof, '--record', record, '--key', vkey);
    expect(checked).toMatchObject({ exitCode: 0 });
  }
  // Who had the record and its proof before has a proof still.
  writeFileSync(record, text);
  const held = await run('check-proof', oldProof, '--record', record, '--key', vkey);
  expect(held.exitCode).toBe(0);
  expect(await uidsLeft(store)).toEqual(uids.filter((one) => one !== uid && one !== third));
  const out = join(tempDir(), 'out');
  const span = ['--from', '2000-01-01T00:00:00Z', '--to', '2100-01-01T00:00:00Z'];
  expect((await run('export', location, ...span, '--out', out)).exitCode).toBe(0);
  expect((await run('verify', out, '--key', vkey)).exitCode).toBe(0);
});

describe('an erasure', () => {
  test.each(['before', 'after'] as const)(
    'killed %s each change verifies, and the erasure resumes',
    async (when) => {
      for (let left = 1; ; left += 1) {
        const [{ store, olderText }, state] = [versionedStore(), { mark: null } as State];
        const writer = await aWriter({ store, state });
        await archived(writer, pages());
        await writer.close();
        const text = await requested(store);
        const kill: Kill = { left, when, isDead: false };
        const dying = await aWriter({ store: mortal(store, kill), state }).catch((error) => error);
        const error =
          dying instanceof Error
            ? dying
            : await archived(dying, heldPages(1, 9)).then(
                () => null,
                (error: unknown) => error,
              );
        if (error !== null) expect(error).toBeInstanceOf(Killed);
        expect([left, (await verified(store)).breaks]).toEqual([left, []]);

        const next = await aWriter({ store, state });
        await archived(next, heldPages(1, 12));
        await archived(next, heldPages(1, 15));
        await next.close();

        const { breaks, erasures, remarks } = await verified(store);
        expect([left, breaks, remarks.filter((one) => one.includes('erased'))]).toEqual([
          left,
          [],
          [],
        ]);
        expect(erasures.length).toBeGreaterThanOrEqual(2);
        expect(await textsOf(store)).not.toContain(text);
        expect([left, olderText().includes(text)]).toEqual([left, false]);
        expect(await store.read(requestPath(uid))).toBeNull();
        if (error === null && !kill.isDead) break;
        expect(left).toBeLessThan(40);
      }
    },
  );

  test('requested again erases the record from pages that were read since', async () => {
    const location = tempDir();
    const store = openDirectory(location);
    const writer = await aWriter({ store });
    const args = ['archive', 'erase', location, '--uid', uid, '--reason', 'a', '--yes'];
    await archived(writer, pages().slice(0, 3));
    const text = await requested(store);
    await archived(writer, pages().slice(3));
    const between = await textsOf(store);

    const again = await runHere(args);
    await archived(writer, heldPages(1, 9));
    const done = await runHere(args);

    expect(between).toContain(text);
    expect(again.stdout).toContain('would be erased from 1 page in 1 segment: requested');
    expect(await textsOf(store)).not.toContain(text);
    expect(done.stdout).toContain('is erased already');
    expect((await verified(store)).breaks).toEqual([]);
  });

  test('also reaches responses without new records, which name no path of their records', async () => {
    const store = writableStore();
    const writer = await aWriter({ store });
    const [first, ...others] = pages();
    if (first === undefined) throw new Error('there are pages');
    const answer = { status: 200, path: '/audit/events', records: 3, asked: null, next: null };
    const read = { ...first, context: { ...first.context, answer } };
    const context = { ...read.context, kind: 'answer' } as const;
    const none = { items: '', kept: null, uids: new Uint8Array(32), onlySink: '', count: 1 };
    await archived(writer, [{ ...read, context, ...none, first: 20 }]);
    await archived(writer, [read, ...others, { ...read, context, ...none, first: 30 }]);
    const text = await requested(store);
    const before = await textsOf(store);
    await archived(writer, heldPages(1, 39));

    expect(before).toContain(text);
    expect(await textsOf(store)).not.toContain(text);
    expect((await verified(store)).breaks).toEqual([]);
  });

  test('of two records of one page, requested together, erases both', async () => {
    const store = writableStore();
    const writer = await aWriter({ store });
    await archived(writer, pages());
    const texts = [await requested(store), await requested(store, third)];
    await archived(writer, heldPages(1, 9));
    await archived(writer, heldPages(1, 12));
    await writer.close();

    const left = await textsOf(store);
    expect(texts.filter((text) => left.includes(text))).toEqual([]);
    const { breaks, erasures } = await verified(store);
    expect(breaks).toEqual([]);
    expect(new Set(erasures.flatMap(({ records }) => records)).size).toBe(2);
    expect(await Array.fromAsync(store.list('erase/'))).toEqual([]);
  });

  test('that is undone by an older copy of its segment is reported, and any other change is a break', async () => {
    const store = writableStore();
    const writer = await aWriter({ store });
    await archived(writer, pages());
    const names = async () => (await Array.fromAsync(store.list('segments/')))[0]?.name ?? '';
    const name = await names();
    const old = (await store.read(name))?.body ?? new Uint8Array(0);
    await requested(store);
    await archived(writer, heldPages(1, 9));
    const now = (await store.read(name))?.body ?? new Uint8Array(0);

    await store.put(name, [old]);
    const undone = await verified(store);
    const found: number[] = [];
    for (let at = 0; at < now.length; at += 7) {
      const flipped = Buffer.from(now);
      flipped[at] = (flipped[at] ?? 0) ^ 1;
      await store.put(name, [flipped]);
      found.push((await verified(store)).breaks.length);
    }
    await store.put(name, [now.subarray(0, -1)]);
    found.push((await verified(store)).breaks.length);

    expect(undone.breaks).toEqual([]);
    expect(undone.remarks.join('\n')).toContain('still has a record that an entry erases');
    expect(found.filter((breaks) => breaks === 0)).toEqual([]);
  });

  test('is refused under a hold, by the command and by the writer, and reported as a break if it was done', async () => {
    const location = tempDir();
    const store = openDirectory(location);
    const writer = await aWriter({ store });
    await archived(writer, pages());
    const hold = ['--id', 'case-1', '--reason', 'a case', '--to', '2030-01-01T00:00:00Z'];
    const text = await requested(store);
    await runHere(['archive', 'hold', 'add', location, ...hold]);

    const refused = await runHere([
      'archive',
      'erase',
      location,
      '--uid',
      uid,
      '--reason',
      'a',
      '--yes',
    ]);
    await archived(writer, heldPages(1, 9));

    expect(refused).toMatchObject({ exitCode: 1, stdout: '' });
    expect(refused.stderr).toMatch(/the hold case-1, which is for pages read before 2030-01-01/);
    expect(await textsOf(store)).toContain(text);
    expect((await verified(store)).erasures).toEqual([]);
  });

  test('requested with an invalid uid, an unknown record or a bad request changes nothing', async () => {
    const location = tempDir();
    const store = openDirectory(location);
    const writer = await aWriter({ store });
    await archived(writer, pages());
    const run = (...args: readonly string[]) => runHere(['archive', 'erase', location, ...args]);

    const none = await run('--uid', 'f'.repeat(64), '--reason', 'a', '--yes');
    const wrong = await run('--uid', 'abc', '--reason', 'a', '--yes');
    const silent = await run('--uid', uid, '--reason', ' ', '--yes');
    await store.put(requestPath(uid), [Buffer.from('{}')]);
    await archived(writer, heldPages(1, 9));

    expect([none, wrong, silent].map(({ exitCode }) => exitCode)).toEqual([1, 64, 64]);
    expect((await verified(store)).breaks).toEqual([]);
    expect(await uidsLeft(store)).toEqual(uidsOfPages([...pages(), ...heldPages(1, 9)]));
  });
});
