// The right to remove data from an archive: with accept_requests false, a request needs the signature of the archive's
// key or of an operator's, for this archive, this kind of request and exactly its content.

import { hash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { requestAgeMsMax, signRequest } from '../../src/archive/authority.ts';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { encodeHold, type Hold, holdPath, releaseOf } from '../../src/archive/holds.ts';
import { encodeManifest } from '../../src/archive/layout.ts';
import { entriesOf, loggedEntries, newestCheckpoint } from '../../src/archive/logged.ts';
import { type Signer, signingKeyText } from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { encodeWish, prunePath, pruneWish } from '../../src/archive/retention.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { writableStore } from '../support/archive/memory-store.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

const origin = aSigner().verifier.name;
const operator = aSigner('operator.example', 7);
const stranger = aSigner('archive.test', 9);
const [uid = ''] = uidsOfPages(heldPages(1));
const later = Date.now() + 60_000;

/** Which archive a request is for. */
async function ofIt(store: ObjectStore) {
  const manifest = await store.read('archive.json');
  return { origin, archive: hash('sha256', manifest?.body ?? '', 'hex') };
}

async function anArchive(accepts = false, store: ObjectStore = writableStore()) {
  const state: State = { mark: null };
  const wishes = { store, state, accept_requests: accepts, operators: [operator.verifier] };
  const writer = await aWriter(wishes);
  await archived(writer, heldPages(2));
  return { store, writer, wishes };
}

async function removalsIn(store: ObjectStore) {
  const reader = new ArchiveReader(store);
  const { size } = await newestCheckpoint(reader);
  const entries = await Array.fromAsync(loggedEntries(reader, size), ({ entry }) => entry);
  return entries.flatMap((entry) =>
    entry.t === 'pruned' ||
    entry.t === 'erased' ||
    (entry.t === 'hold' && entry.released_at !== null)
      ? [{ t: entry.t, by: entry.by }]
      : [],
  );
}

const verified = (store: ObjectStore) =>
  verifyArchive(new ArchiveReader(store), { trusted: [aSigner().verifier] });

/** Writes a request of each kind, signed by this key; null: unsigned. */
const requests = {
  async pruned(store: ObjectStore, signer: Signer | null, now = Date.now()) {
    const wish = pruneWish(later, now);
    const signed =
      signer && (await signRequest(signer, await ofIt(store), { kind: 'prune', wish }));
    await store.put(prunePath, [encodeWish(later, now, signed ?? undefined)]);
  },
  async erased(store: ObjectStore, signer: Signer | null, now = Date.now()) {
    const wish = { uid, reason: 'a case', asked_at: timeText(now) };
    const signed =
      signer && (await signRequest(signer, await ofIt(store), { kind: 'erase', wish }));
    await store.put(requestPath(uid), [encodeRequest({ ...wish, ...(signed && { signed }) })]);
  },
  async hold(store: ObjectStore, signer: Signer | null, now = Date.now()) {
    const hold: Hold = {
      ...{ id: 'case-1', from: null, to: null, reason: 'a case' },
      ...{ placed_at: timeText(now), released_at: timeText(now) },
    };
    const signed = signer && (await signRequest(signer, await ofIt(store), releaseOf(hold)));
    await store.put(holdPath('case-1') ?? '', [encodeHold({ ...hold, ...(signed && { signed }) })]);
  },
};
const kinds = Object.keys(requests) as (keyof typeof requests)[];

/** Sets the hold that is to be released. */
async function held(store: ObjectStore) {
  const hold = { id: 'case-1', from: null, to: null, reason: 'a case', released_at: null };
  await store.put(holdPath('case-1') ?? '', [encodeHold({ ...hold, placed_at: timeText(0) })]);
}

describe.each(kinds)('a request (%s)', (kind) => {
  test.each([
    ["the archive's key", aSigner()],
    ["an operator's key", operator],
  ])('signed by %s is carried out once, and its entry names the key', async (_, signer) => {
    const { store, writer, wishes } = await anArchive();
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](store, signer);
    const request = await store.read(requestObject(kind));

    await archived(writer, heldPages(1, 9));
    await archived(writer, heldPages(1, 12));

    const removals = await removalsIn(store);
    expect(removals.length).toBeGreaterThan(0);
    expect(new Set(removals.map(({ t, by }) => `${t} ${by}`))).toEqual(
      new Set([`${kind} ${signer.verifier.vkey}`]),
    );

    // The same request once more, to this process and to the next.
    await store.put(requestObject(kind), [request?.body ?? Buffer.alloc(0)]);
    await archived(writer, heldPages(1, 15));
    await writer.close();
    const next = await aWriter(wishes);
    await archived(next, heldPages(1, 18));
    expect(await removalsIn(store)).toEqual(removals);
    expect((await verified(store)).breaks).toEqual([]);
  });

  test.each([
    ['nobody', null],
    ['a key of that name that is none of them', stranger],
  ])('signed by %s changes nothing', async (_, signer) => {
    const { store, writer } = await anArchive();
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](store, signer);

    await archived(writer, heldPages(1, 9));

    expect(await removalsIn(store)).toEqual([]);
    expect((await verified(store)).breaks).toEqual([]);
  });

  test('signed for another archive of the same key changes nothing', async () => {
    const [{ store, writer }, other] = [await anArchive(), await anArchive()];
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](other.store, operator);
    const request = await other.store.read(requestObject(kind));
    await store.put(requestObject(kind), [request?.body ?? Buffer.alloc(0)]);

    await archived(writer, heldPages(1, 9));

    expect(await removalsIn(store)).toEqual([]);
  });

  test('that was signed too long ago, or is changed, changes nothing', async () => {
    const { store, writer } = await anArchive();
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](store, operator, Date.now() - requestAgeMsMax - 60_000);
    await archived(writer, heldPages(1, 9));
    await requests[kind](store, operator);
    const found = Buffer.from((await store.read(requestObject(kind)))?.body ?? []).toString();
    // The signed text within the signature stays as it is.
    const changed = found.replace(
      /("(?:asked|released)_at": ?"[^"]*)(\d)Z"/,
      (_, before, last) => `${before}${last === '9' ? 0 : 9}Z"`,
    );
    await store.put(requestObject(kind), [Buffer.from(changed)]);

    await archived(writer, heldPages(1, 12));

    expect(changed).not.toBe(found);
    expect(await removalsIn(store)).toEqual([]);
  });

  test('that was rejected can be requested again from the same process', async () => {
    const { store, writer } = await anArchive();
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](store, stranger, Date.now() - 1000);
    await archived(writer, heldPages(1, 9));
    await archived(writer, heldPages(1, 12));
    await requests[kind](store, operator);

    await archived(writer, heldPages(1, 15));

    const removals = await removalsIn(store);
    expect(new Set(removals.map(({ t, by }) => `${t} ${by}`))).toEqual(
      new Set([`${kind} ${operator.verifier.vkey}`]),
    );
    expect((await verified(store)).breaks).toEqual([]);
  });

  test('needs no signature where accept_requests is true', async () => {
    const { store, writer } = await anArchive(true);
    if (kind === 'hold') await held(store);
    await archived(writer, heldPages(1, 6));
    await requests[kind](store, null);

    await archived(writer, heldPages(1, 9));

    const removals = await removalsIn(store);
    expect(new Set(removals.map(({ t, by }) => `${t} ${by}`))).toEqual(
      new Set([`${kind} undefined`]),
    );
    expect((await verified(store)).breaks).toEqual([]);
  });
});

function requestObject(kind: keyof typeof requests): string {
  const objects = { pruned: prunePath, erased: requestPath(uid), hold: holdPath('case-1') ?? '' };
  return objects[kind];
}

test('an archive.json that was changed to accept unsigned requests is refused, also where the state is lost', async () => {
  const { store, writer } = await anArchive();
  await writer.close();
  const found = Buffer.from((await store.read('archive.json'))?.body ?? []).toString();
  const changed = found.replace(/,\s*"requests": "signed"/, '');
  await store.put('archive.json', [Buffer.from(changed)]);

  const opening = aWriter({ store, spool: 'spool-2', isNew: true });

  expect(changed).not.toBe(found);
  await expect(opening).rejects.toThrow('archive.json is not the one that the log names');
});

test('an archive.json that stands there before the first checkpoint decides nothing', async () => {
  const store = writableStore();
  const { verifier } = aSigner();
  const about = { origin, key: verifier.vkey, salt: '00'.repeat(32), created_at: timeText(0) };
  await store.put('archive.json', [encodeManifest(about)]);
  const writer = await aWriter({ store, isNew: true });
  await archived(writer, heldPages(2));
  await requests.erased(store, null);

  await archived(writer, heldPages(1, 6));

  expect(await removalsIn(store)).toEqual([]);
  const manifest = Buffer.from((await store.read('archive.json'))?.body ?? []).toString();
  expect(manifest).toContain('"requests": "signed"');
  expect(manifest).not.toContain(about.salt);
  expect((await verified(store)).breaks).toEqual([]);
});

test('an archive that began with accept_requests: true needs signatures when that is removed', async () => {
  const location = join(tempDir(), 'archive');
  const store = openDirectory(location);
  const state: State = { mark: null };
  const first = await aWriter({ store, state, accept_requests: true });
  await archived(first, heldPages(2));
  await first.close();
  const writer = await aWriter({ store, state, isNew: true });
  await archived(writer, heldPages(1, 6));
  await requests.erased(store, null);
  const prune = ['archive', 'prune', location, '--before', timeText(later), '--yes'];

  await archived(writer, heldPages(1, 9));
  const pruned = await runHere(prune);

  expect(await removalsIn(store)).toEqual([]);
  expect(pruned).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--sign-with') });
  const reader = new ArchiveReader(store);
  const starts = await Array.fromAsync(entriesOf(reader, ['start']), ({ entry }) => entry.requests);
  expect(starts).toEqual(['accepted', 'signed']);
  expect((await verified(store)).breaks).toEqual([]);
  await writer.close();
});

test('a new archive accepts signed requests only, and the commands prompt for the key', async () => {
  const location = join(tempDir(), 'archive');
  const store = openDirectory(location);
  const wishes = { store, state: { mark: null }, accept_requests: undefined } as const;
  const writer = await aWriter({ ...wishes, isNew: true });
  await archived(writer, heldPages(2));
  const key = join(tempDir(), 'key');
  writeFileSync(key, signingKeyText(origin, Buffer.alloc(32, 1)));
  const erase = ['archive', 'erase', location, '--uid', uid, '--reason', 'a case', '--yes'];

  const refused = await runHere(erase);
  const asked = await runHere([...erase, '--sign-with', key]);
  await archived(writer, heldPages(1, 6));

  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('--sign-with') });
  expect(asked).toMatchObject({ exitCode: 0 });
  expect(await removalsIn(store)).toEqual([{ t: 'erased', by: aSigner().verifier.vkey }]);
  const prune = ['archive', 'prune', location, '--before', timeText(later), '--yes'];
  expect((await runHere(prune)).exitCode).toBe(1);
  expect((await runHere([...prune, '--sign-with', key])).exitCode).toBe(0);
  await archived(writer, heldPages(1, 9));
  expect((await removalsIn(store)).map(({ t }) => t)).toContain('pruned');
  expect((await verified(store)).breaks).toEqual([]);
});

test('`hold release` repeats a release that the writer has rejected', async () => {
  const location = join(tempDir(), 'archive');
  const store = openDirectory(location);
  const wishes = { store, state: { mark: null }, accept_requests: undefined } as const;
  const writer = await aWriter({ ...wishes, isNew: true });
  const keyFile = (name: string, seed: number) => {
    const file = join(tempDir(), 'key');
    writeFileSync(file, signingKeyText(name, Buffer.alloc(32, seed)));
    return file;
  };
  const [key, foreign] = [keyFile(origin, 1), keyFile(origin, 9)];
  const release = ['archive', 'hold', 'release', location, '--id', 'case-1', '--sign-with'];
  await held(store);
  await archived(writer, heldPages(2));
  await runHere([...release, foreign]);
  await archived(writer, heldPages(1, 6));
  const rejected = await removalsIn(store);

  const again = await runHere([...release, key]);
  await archived(writer, heldPages(1, 9));
  const done = await runHere([...release, key]);

  expect(rejected).toEqual([]);
  expect(again.stdout).toContain('it is entered into the log with the next checkpoint');
  expect(await removalsIn(store)).toEqual([{ t: 'hold', by: aSigner().verifier.vkey }]);
  expect(done.stdout).toContain('was released at');
});
