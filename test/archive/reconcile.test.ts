// `sluice archive reconcile`: what the archive has and the list has not, and the reverse, by proven uids only.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import { TooManyUids, UidTable } from '../../src/archive/uid-table.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, uidsOfPages } from './a-writer.ts';

const archive = naiveArchive([
  { pages: Array.from({ length: 40 }, (_, i) => ({ stream: 'logs/a', records: i % 7 })) },
  { pages: [{ stream: 'audit', records: 9, kept: [1, 3, 6] }], rotates: true },
]);
const uids = archive.uids.flat();
const key = archive.vkeys[1] ?? '';
const stranger = createHash('sha256').update('stranger').digest('hex');

function anArchive(at = tempDir()): string {
  writeNaive(archive, at);
  return at;
}

function aList(lines: readonly string[], end = '\n'): string {
  const file = join(tempDir(), 'uids.txt');
  writeFileSync(file, lines.map((line) => `${line}${end}`).join(''));
  return file;
}

const compared = (location: string, list: string, ...more: readonly string[]) =>
  runHere(['archive', 'reconcile', location, '--key', key, '--uids', list, ...more]);

describe('reconcile', () => {
  test('is equal where both have the same uids, in any order, repeated, with CR LF', async () => {
    const list = aList(['\ufeff', ...uids.toReversed(), '', uids[0] ?? ''], '\r\n');

    const { exitCode, stdout } = await compared(anArchive(), list);

    expect(exitCode).toBe(0);
    expect(stdout).toContain(`equal: ${uids.length} uids in both`);
    expect(stdout).toContain('repeated in the list: 1');
  });

  test('names each uid that one side lacks, exit code 1', async () => {
    const [first, second, ...others] = uids;
    const list = aList([...others, stranger]);

    const { exitCode, stdout } = await compared(anArchive(), list);

    const lines = stdout.split('\n').filter((line) => /^missing (here|there) [0-9a-f]/.test(line));
    expect(exitCode).toBe(1);
    expect(lines).toEqual([
      `missing here ${stranger}`,
      `missing there ${first}`,
      `missing there ${second}`,
    ]);
  });

  test('compares one stream, or a span of the time of reading', async () => {
    const location = anArchive();
    const own = aList(uids.slice(-3));
    const others = aList(uids.slice(0, -3));
    const at = '2026-01-31T08:01:00Z';

    expect((await compared(location, own, '--stream', 'audit')).exitCode).toBe(0);
    expect((await compared(location, own, '--from', at)).exitCode).toBe(0);
    expect((await compared(location, others, '--to', at)).exitCode).toBe(0);
    expect((await compared(location, others, '--from', at)).exitCode).toBe(1);
    expect((await compared(location, own, '--stream', 'audi')).exitCode).toBe(64);
  });

  test('reads standard input, and all shards of a location', async () => {
    const root = tempDir();
    const other = naiveArchive([{ pages: [{ stream: 'other', records: 5 }] }]);
    anArchive(join(root, '0'));
    writeNaive(other, join(root, '1'));
    const stdin = [...uids, ...other.uids.flat()].join('\n');
    const keys = ['--key', key, '--key', other.vkeys[0] ?? ''];

    const both = await runSluice(['archive', 'reconcile', root, ...keys, '--uids', '-'], { stdin });

    expect(both).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test.each([
    ['a header', ['uid', ...uids], 'line 1: ', '"uid"'],
    ['upper case', [...uids, stranger.toUpperCase()], `line ${uids.length + 1}: `, '"'],
    ['quotation marks', [`"${stranger}"`], 'line 1: ', '"'],
    ['a short line', [stranger.slice(1)], 'line 1: ', stranger.slice(1)],
    ['a long line', ['x'.repeat(100_000)], 'line 1: ', '"xxx'],
    ['control characters', ['\u001b[31mred'], 'line 1: ', 'red'],
  ])('refuses a list with %s, with its line, exit code 2', async (_, lines, at, found) => {
    const { exitCode, stdout, stderr } = await compared(anArchive(), aList(lines));

    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(at);
    expect(stderr).toContain(found);
    expect(stderr).not.toContain('\u001b');
    expect(stderr.length).toBeLessThan(1_000);
  });

  test('refuses a list that is not there', async () => {
    expect((await compared(anArchive(), join(tempDir(), 'none'))).exitCode).toBe(64);
  });
});

describe('an archive that is not as its key signed it', () => {
  const list = aList(uids);

  test.each([
    ['another key', (at: string) => at, 'no known key has signed'],
    ['an entry', change(nameOf('tile/entries/')), 'is not that of the signed tree'],
    ['a tile', change(nameOf('tile/0/')), 'do not lead to the signed root'],
    ['the checkpoint', change('checkpoint'), ''],
    ['the uids behind a body', change(nameOf('segments/')), 'the uids after the body'],
  ])('is not compared: %s, exit code 2', async (what, changed, says) => {
    const location = changed(anArchive());
    const vkey = what === 'another key' ? (naiveArchive([]).vkeys[0] ?? '') : key;

    const { exitCode, stdout, stderr } = await runHere([
      ...['archive', 'reconcile', location, '--key', vkey, '--uids', list],
    ]);

    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(says);
    expect(stderr).toContain('Nothing was compared.');
  });

  test('is not compared where there is none', async () => {
    expect((await compared(tempDir(), list)).exitCode).toBe(2);
  });
});

/** The last file whose name starts so. */
function nameOf(start: string): string {
  return [...archive.files.keys()].filter((name) => name.startsWith(start)).at(-1) ?? '';
}

/** Changes the last bit of a file but its line end. */
function change(name: string) {
  return (location: string) => {
    const file = join(location, name);
    const bytes = readFileSync(file);
    const at = bytes.length - 20;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    return location;
  };
}

describe('removed events', () => {
  const dayMs = 86_400_000;
  const own = ['--key', aSigner().verifier.vkey];

  test('that were erased are no difference, whether the list has them or not', async () => {
    const location = join(tempDir(), 'archive');
    const store = openDirectory(location);
    const pages = heldPages(4);
    const writer = await aWriter({ store });
    await archived(writer, pages.slice(0, 3));
    const all = uidsOfPages(pages);
    const at = pages[0]?.context.fetchedAt ?? 0;
    const [gone = ''] = all;
    const request = { uid: gone, reason: 'r', asked_at: timeText(Date.now()) };
    const span = { from: timeText(at), to: timeText(at + 1) };
    await store.put(requestPath(gone), [encodeRequest({ ...request, ...span })]);
    await archived(writer, pages.slice(3));
    await writer.close();
    const run = (lines: readonly string[]) =>
      runHere(['archive', 'reconcile', location, ...own, '--uids', aList(lines)]);

    const still = await run(all);
    const without = await run(all.slice(1));

    expect(still).toMatchObject({ exitCode: 0 });
    expect(still.stdout).toContain('erased from the archive: 1, of which 1 are in the list');
    expect(without).toMatchObject({ exitCode: 0 });
    expect(without.stdout).toContain('erased from the archive: 1, of which 0 are in the list');
  });

  test('that were pruned are counted apart', async () => {
    const location = join(tempDir(), 'archive');
    const store = openDirectory(location);
    let at = Date.now() - 40 * dayMs;
    const writer = await aWriter({ store, now: () => at });
    const [old, fresh, last] = [40, 20, 0].map((days, i) =>
      heldPages(2, i * 6).map((page) => {
        const fetchedAt = Date.now() - days * dayMs;
        return { ...page, context: { ...page.context, fetchedAt } };
      }),
    );
    await archived(writer, old ?? []);
    at = Date.now() - 20 * dayMs;
    await archived(writer, fresh ?? []);
    await store.put(prunePath, [encodeWish(Date.now() - 30 * dayMs, Date.now())]);
    at = Date.now();
    await archived(writer, last ?? []);
    await writer.close();
    const left = uidsOfPages([...(fresh ?? []), ...(last ?? [])]);
    const run = (lines: readonly string[]) =>
      runHere(['archive', 'reconcile', location, ...own, '--uids', aList(lines)]);

    const equal = await run(left);
    const more = await run([...left, ...uidsOfPages(old ?? [])]);

    expect(equal).toMatchObject({ exitCode: 0 });
    expect(equal.stdout).toContain('pruned: 6; ');
    expect(more).toMatchObject({ exitCode: 1 });
    expect(more.stdout).toContain('in the list and not in the archive: 6');
  });
});

describe('the table', () => {
  test('has the entries of a Map, over several chunks and growths', () => {
    const table = new UidTable();
    const known = new Map<string, number>();
    for (let i = 0; i < 150_000; i += 1) {
      const uid = createHash('sha256')
        .update(`${i % 140_000}`)
        .digest();
      const flag = 1 + (i % 2);
      const name = uid.toString('hex');
      if (table.mark(uid, 0, flag) !== (known.get(name) ?? 0)) expect(name).toBe('as before');
      known.set(name, (known.get(name) ?? 0) | flag);
    }

    expect([...table.entries()].join()).toBe([...known].join());
  });

  test('refuses more than it holds', () => {
    const table = new UidTable(2);
    const uid = Buffer.alloc(32);

    for (const i of [1, 2, 1, 2]) table.mark(uid.fill(i), 0, 1);

    expect(() => table.mark(uid.fill(3), 0, 1)).toThrow(TooManyUids);
  });
});
