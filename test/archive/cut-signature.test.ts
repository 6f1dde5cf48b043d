// A cut of the lake is entered only as the process made it: what others change between the write and the entry, or put
// there, is reported and not entered, and what was entered has the hashes of the objects as they were made.

import { hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import { noHeads } from '../../src/archive/heads.ts';
import { encodeManifest } from '../../src/archive/layout.ts';
import { emptyRoot } from '../../src/archive/merkle.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { rotateKey } from '../../src/archive/rotate.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { Secret } from '../../src/contracts/secret.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anEvent } from '../support/an-event.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';
import {
  archived,
  aSigner,
  aSigningKey,
  aWriter,
  heldPages,
  readArchive,
  type State,
} from './a-writer.ts';

const time = Date.UTC(2026, 2, 3, 12);

/** Has the lake write a cut of the events of these pages; without a key as versions without signatures do. */
async function cut(
  location: string,
  pages: readonly HeldPage[],
  signing_key: Secret | null = aSigningKey(),
  more: object = {},
): Promise<void> {
  const events = pages.flatMap(({ first, count, uids, context }) =>
    Array.from({ length: count }, (_, i) => {
      const uid = Buffer.from(uids).toString('hex', i * 32, (i + 1) * 32);
      const ocsf = { class_uid: 3002, time: time + first + i, ...more };
      return { ...anEvent({ offset: first + i, uid, ocsf }), context };
    }),
  );
  const key = signing_key === null ? {} : { signing_key };
  const { sink, batch } = await openSink(lakeSink, { location, every: 3_600_000, ...key });
  const signal = new AbortController().signal;
  await sink.committed?.(signal);
  const sending = sink.send(batch(events), signal);
  sink.flush?.();
  expect((await sending).outcome).toBe('delivered');
  await sink.close();
}

const names = (location: string, ending: string) =>
  readdirSync(join(location, 'lake'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join('lake', name))
    .toSorted();

/** An archive of these pages and a cut of them, which no entry names yet. */
async function waiting(pages = heldPages(2)) {
  const location = join(tempDir(), 'archive');
  const state: State = { mark: null };
  const writer = await aWriter({ store: openDirectory(location), state });
  await archived(writer, pages);
  await cut(location, pages);
  const [name = ''] = names(location, '.cut');
  const [object = ''] = names(location, '.parquet');
  const at = (one: string) => join(location, one);
  return { location, state, writer, cutPath: at(name), objectPath: at(object), object };
}

const cutsIn = async (location: string) =>
  (await readArchive(location)).entries.filter((entry) => entry.t === 'lake_cut');

async function verdict(location: string) {
  const trusted = [aSigner().verifier];
  return await verifyArchive(new ArchiveReader(openDirectory(location)), { trusted });
}

/** Replaces a table by one with other columns and the same uids, and lists that one in the cut. */
async function forge(cutPath: string, objectPath: string): Promise<void> {
  const other = join(tempDir(), 'archive');
  const writer = await aWriter({ store: openDirectory(other) });
  await archived(writer, heldPages(2));
  await cut(other, heldPages(2), aSigningKey('archive.test', 9), { message: 'forged' });
  await writer.close();
  const [table = ''] = names(other, '.parquet');
  const bytes = readFileSync(join(other, table));
  writeFileSync(objectPath, bytes);
  const [facts = '', made = '', ...rest] = readFileSync(cutPath, 'latin1').split('\n');
  const listed = JSON.parse(made);
  Object.assign(listed.objects[0], { bytes: bytes.length, sha256: hash('sha256', bytes) });
  writeFileSync(cutPath, [facts, JSON.stringify(listed), ...rest].join('\n'), 'latin1');
}

describe('a cut of the lake', () => {
  test('is entered as its process has signed it', async () => {
    const { location, writer } = await waiting();
    await writer.close();

    expect(await cutsIn(location)).toMatchObject([{ events: 6, by: aSigner().verifier.vkey }]);
    expect((await verdict(location)).remarks.join()).not.toContain('older version');
  });

  test('whose object and list were both changed before the entry is not entered', async () => {
    const { location, writer, cutPath, objectPath, object } = await waiting();
    await forge(cutPath, objectPath);
    await writer.close();

    const { remarks } = await verdict(location);

    expect(await cutsIn(location)).toEqual([]);
    expect(remarks.join('\n')).toContain(`not entered yet, and not proven: ${object}`);
  });

  test('whose object alone was changed is entered with the hash of the original object', async () => {
    const { location, writer, objectPath, object } = await waiting();
    writeFileSync(objectPath, 'PAR1 something else');
    await writer.close();

    const { breaks } = await verdict(location);

    expect(breaks).toMatchObject([
      { object, what: expect.stringContaining('differs from its entry') },
    ]);
  });

  test('that is not signed is not entered', async () => {
    const location = join(tempDir(), 'archive');
    const writer = await aWriter({ store: openDirectory(location) });
    await archived(writer, heldPages(1));
    await cut(location, heldPages(1), null);
    await writer.close();

    expect(await cutsIn(location)).toEqual([]);
  });

  test('of another name, log or key is not entered', async () => {
    const { location, writer, cutPath } = await waiting();
    await archived(writer, heldPages(1, 6));
    const later = cutPath.replace(/\d(\.cut)$/, '7$1');
    copyFileSync(cutPath, later);
    const elsewhere = join(tempDir(), 'archive');
    const stranger = await aWriter({
      ...{ store: openDirectory(elsewhere), signer: aSigner('other.test') },
    });
    await archived(stranger, heldPages(2));
    await cut(elsewhere, heldPages(2), aSigningKey('other.test'));
    const [name = ''] = names(elsewhere, '.cut');
    const last = cutPath.replace(/\d(\.cut)$/, '8$1');
    mkdirSync(dirname(last), { recursive: true });
    copyFileSync(join(elsewhere, name), last);
    await stranger.close();
    await writer.close();

    expect(await cutsIn(location)).toHaveLength(1);
  });

  test('of another archive of the same key is not entered', async () => {
    const [here, elsewhere] = [await waiting(), await waiting()];
    copyFileSync(elsewhere.cutPath, here.cutPath);
    await Promise.all([here.writer.close(), elsewhere.writer.close()]);

    expect([await cutsIn(here.location), await cutsIn(elsewhere.location)]).toMatchObject([
      [],
      [{ events: 6 }],
    ]);
  });

  test('that the key before a rotation has signed is entered, until one of the present key was', async () => {
    const { location, state, writer } = await waiting();
    await writer.close();
    const pages = heldPages(4);
    const second = await aWriter({ store: openDirectory(location), state });
    await archived(second, pages.slice(2));
    await second.close();
    const third = await aWriter({ store: openDirectory(location), state });
    await cut(location, pages.slice(2, 3));
    // Ended before the cut was entered.
    await third.flush();
    const next = aSigner('archive.test', 2);
    await rotateKey(
      {
        ...{ store: openDirectory(location), clock: systemClock(), signer: aSigner() },
        ...{ spool: 'spool-1', epoch: 1, staleMs: 0, mark: state.mark },
        remember: async (mark) => {
          state.mark = mark;
        },
      },
      next,
    );
    const fourth = await aWriter({ store: openDirectory(location), state, signer: next });
    await archived(fourth, heldPages(1, 12));
    await cut(location, [...pages.slice(3), ...heldPages(1, 12)], aSigningKey('archive.test', 2));
    await archived(fourth, heldPages(1, 15));
    await cut(location, heldPages(1, 15));
    await archived(fourth, heldPages(1, 18));
    await fourth.close();

    const { entries } = await readArchive(location, next);
    const [old, fresh] = [aSigner().verifier.vkey, next.verifier.vkey];
    expect(entries.flatMap((entry) => (entry.t === 'lake_cut' ? [entry.by] : []))).toEqual([
      ...[old, old, fresh],
    ]);
  });

  test('is entered unsigned in an archive of an older version, until one was signed', async () => {
    const location = join(tempDir(), 'archive');
    const state: State = { mark: null };
    const { vkey: key, name: origin } = aSigner().verifier;
    const manifest = encodeManifest({
      ...{ origin, key, salt: '5a'.repeat(32), created_at: '2026-01-01T00:00:00.000Z' },
    });
    mkdirSync(location);
    writeFileSync(join(location, 'archive.json'), manifest);
    const begun = { size: 0, root: emptyRoot.toString('hex'), at: time, heads: noHeads(key) };
    state.mark = { archive: hash('sha256', manifest), location, ...begun } as unknown as Json;
    const store = openDirectory(location);
    const writer = await aWriter({ store, state });
    const pages = heldPages(4);
    await archived(writer, pages);
    await cut(location, pages.slice(0, 1), null);
    await archived(writer, heldPages(1, 12));
    await cut(location, pages.slice(1, 2));
    await archived(writer, heldPages(1, 15));
    await cut(location, pages.slice(2, 3), null);
    await writer.close();

    const cuts = await cutsIn(location);
    const { remarks, breaks } = await verdict(location);
    expect(cuts.map(({ by }) => by)).toEqual([undefined, key]);
    expect(breaks).toEqual([]);
    expect(remarks.join('\n')).toContain('1 cuts of the lake were entered by an older version');
  });
});

test('an object that was planted at the location of the next one is replaced', async () => {
  const [first, second] = [await waiting(), join(tempDir(), 'archive')];
  await first.writer.close();
  const writer = await aWriter({ store: openDirectory(second) });
  await archived(writer, heldPages(2));
  mkdirSync(dirname(join(second, first.object)), { recursive: true });
  writeFileSync(join(second, first.object), 'something else');

  await cut(second, heldPages(2));
  await writer.close();
  rmSync(first.location, { recursive: true });

  expect((await verdict(second)).breaks).toEqual([]);
  expect(await cutsIn(second)).toHaveLength(1);
});
