// The result of a verification for valid archives, and its other questions: keys and their rotation, older checkpoints,
// spans of time, gaps. Tampered archives have a file of their own.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseVkey } from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { type VerifyOptions, verifyArchive } from '../../src/archive/verify/verify.ts';
import { memoryStore } from '../support/archive/memory-store.ts';
import { type NaiveArchive, naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

async function verified(
  archive: NaiveArchive,
  options: Partial<VerifyOptions> = {},
  files: ReadonlyMap<string, Buffer> = archive.files,
) {
  const trusted = archive.vkeys.slice(0, 1).map(parseVkey);
  return await verifyArchive(new ArchiveReader(memoryStore(files)), { trusted, ...options });
}

const commits = (...counts: readonly number[]) =>
  counts.map((count) => ({
    pages: Array.from({ length: count }, (_, i) => ({ stream: `logs/${i % 3}`, records: i % 4 })),
  }));

describe('a whole archive', () => {
  test.each([1, 252, 253, 254, 255, 600])('of some %i pages', async (count) => {
    const archive = naiveArchive(commits(2, count, 1));

    const report = await verified(archive);

    expect(report).toMatchObject({ breaks: [], size: archive.entries.length, checkpoints: 2 });
    expect(report.pages).toBe(count + 3);
    expect(report.records).toBe(archive.uids.flat().length);
    expect(report.signedBy.map(({ vkey }) => vkey)).toEqual(archive.vkeys);
  });

  test('is read beside a writer that signs a newer checkpoint meanwhile', async () => {
    const newer = naiveArchive(commits(3, 4));
    const size = newer.entries.length;
    const files = new Map(newer.files);
    files.set('checkpoint', newer.notes[0] ?? Buffer.alloc(0));
    const progress = () => files.set('checkpoint', newer.notes[1] ?? Buffer.alloc(0));

    const beside = await verified(newer, { progress }, files);
    files.set('checkpoint', newer.notes[0] ?? Buffer.alloc(0));
    const putBack = await verified(newer, {}, files);

    expect(beside).toMatchObject({ breaks: [], pages: 3 });
    expect(putBack.breaks.map(({ what }) => what).join()).toContain(`one of ${size} entries`);
  });

  test('is read beside a writer: wider tiles, and entries that are not signed yet', async () => {
    const older = naiveArchive(commits(3));
    const checkpoint = older.files.get('checkpoint') ?? Buffer.alloc(0);
    const files = new Map(older.files);
    for (const [name, width] of [
      ['tile/entries/000.p/5', 6],
      ['tile/0/000.p/5', 6],
    ] as const) {
      const more = name.includes('entries') ? Buffer.from('\0\x02{}') : Buffer.alloc(32);
      files.set(name.replace('5', `${width}`), Buffer.concat([files.get(name) ?? more, more]));
      files.delete(name);
    }

    const report = await verified(older, {}, files);

    expect(checkpoint.length).toBeGreaterThan(0);
    expect(report.breaks).toEqual([]);
    expect(report.remarks.join()).toContain('beyond the checkpoint');
  });
});

test('an answer of which nothing is an event may be anything', async () => {
  const entry = { kind: 'answer', items: '', kept: 0 };
  const pages = [
    { stream: 'audit', body: '<html>502</html>', texts: [], entry: { ...entry, records: 0 } },
    { stream: 'audit', body: '', texts: [], entry: { ...entry, records: 0 } },
    { stream: 'audit', body: '{"data":[1,2]}', texts: [], entry: { ...entry, records: 2 } },
  ];

  expect(await verified(naiveArchive([{ pages }]))).toMatchObject({ breaks: [], records: 0 });
});

describe('keys', () => {
  const rotated = naiveArchive([
    ...commits(2, 3).slice(0, 2),
    { pages: [{ stream: 'logs/0' }], rotates: true },
    { pages: [{ stream: 'logs/1' }] },
    { pages: [], rotates: true },
    { pages: [{ stream: 'logs/1' }] },
  ]);

  test.each([0, 1, 2])('the %i. key of three leads to the newest checkpoint', async (i) => {
    const trusted = rotated.vkeys.slice(i, i + 1).map(parseVkey);

    expect(await verified(rotated, { trusted })).toMatchObject({ breaks: [], checkpoints: 5 });
  });

  test('ends at, before and behind a rotation', async () => {
    for (let count = 1; count <= 6; count += 1) {
      const part = naiveArchive(
        Array.from({ length: count }, (_, i) => ({
          pages: [{ stream: 'audit' }],
          rotates: i === 2 || i === 4,
        })),
      );
      const from = Date.parse('2026-01-31T08:00:00Z') + (count - 1) * 60_000;
      expect(await verified(part)).toMatchObject({ breaks: [], pages: count });
      expect(await verified(part, { from })).toMatchObject({ breaks: [], pages: 1 });
      expect(await verified(part, { to: from })).toMatchObject({ breaks: [], pages: count - 1 });
    }
  });

  test('one that was replaced signs no more', async () => {
    const text = rotated.notes[5]?.toString('utf8').split('\n\n')[0];
    const other = naiveArchive(commits(1));
    const [line] = other.notes[0]?.toString('utf8').split('\n').slice(-2) ?? [];
    const files = new Map(rotated.files);
    files.set('checkpoint', Buffer.from(`${text}\n\n${line}\n`));

    const { breaks } = await verified(rotated, {}, files);

    expect(breaks).toMatchObject([
      { object: 'checkpoint', what: 'no known key has signed the note' },
      { object: expect.stringContaining('checkpoints/') },
    ]);
  });

  test('another one proves nothing', async () => {
    const trusted = naiveArchive(commits(1)).vkeys.map(parseVkey);

    const { breaks } = await verified(rotated, { trusted });

    expect(breaks).toMatchObject([{ object: 'checkpoint', index: null }]);
  });
});

describe('--since', () => {
  const archive = naiveArchive(commits(2, 300, 3));

  test.each([0, 1, 2])('takes checkpoint %i of the same log', async (i) => {
    const since = archive.notes[i] ?? Buffer.alloc(0);

    expect(await verified(archive, { since })).toMatchObject({ breaks: [] });
  });

  test('finds an older state that was put back whole', async () => {
    const older = naiveArchive(commits(2, 300));
    const [, , since = Buffer.alloc(0)] = archive.notes;

    const report = await verified(older, { since, trusted: older.vkeys.map(parseVkey) });

    expect(report.breaks.map(({ what }) => what).join()).toContain('its end is missing');
  });

  test('finds a log that was rewritten with the same key', async () => {
    const { notes } = archive;
    const text = notes[1]?.toString('utf8') ?? '';
    const root = text.split('\n')[2] ?? '';
    const other = Buffer.from(text.replace(root, notes[0]?.toString('utf8').split('\n')[2] ?? ''));

    const { breaks } = await verified(archive, { since: other });

    expect(breaks.map(({ what }) => what).join()).toContain('rewritten');
    expect(breaks.map(({ what }) => what).join()).toContain('the given checkpoint: the signature');
  });
});

/** A page with a condition. */
const reported = (condition: string) => ({
  stream: 'audit',
  records: 1,
  texts: [JSON.stringify({ condition, message: `told of ${condition}` })],
  entry: { kind: 'condition', conditions: [condition] },
});

describe('gaps', () => {
  const answer = { stream: 'audit', entry: { answer: { status: 200, path: '/a', asked: null } } };

  test.each([
    ['source.gap', [reported('source.gap'), answer], true],
    ['source.silent', [reported('source.silent')], true],
    ['source.silent', [reported('source.silent'), reported('source.heard')], false],
    ['source.scope_lost', [reported('source.scope_lost')], true],
    ['source.scope_lost', [reported('source.scope_lost'), answer], false],
  ])('%s is reported, open or ended', async (condition, pages, isOpen) => {
    const { gaps, breaks } = await verified(naiveArchive([{ pages }]));

    expect(breaks).toEqual([]);
    expect(gaps).toMatchObject([{ stream: 'audit', seq: 0, what: `told of ${condition}`, isOpen }]);
  });
});

describe('cursors', () => {
  const hex = (cursor: string | null) => (cursor === null ? null : cursor.repeat(64).slice(0, 64));
  const asked = (cursor: string | null, next: string | null | undefined, status = 200) => {
    const answer = { status, path: '/events', asked: hex(cursor) };
    const leads = next === undefined ? {} : { next: hex(next) };
    return { stream: 'audit', entry: { answer: { ...answer, ...leads } } };
  };
  const reset = { stream: 'audit', entry: { conditions: ['source.checkpoint_reset'] } };

  test.each([
    [
      'on, and again at the end',
      [asked(null, 'a'), asked('a', null), asked('a', 'b'), asked('b', null)],
    ],
    ['again after a failure', [asked(null, 'a'), asked('a', undefined, 502), asked('a', 'b')]],
    [
      'from an earlier place',
      [asked(null, 'a'), asked('a', 'b'), asked('b', 'c'), asked('a', 'b')],
    ],
    ['from the start', [asked(null, 'a'), asked('a', 'b'), asked(null, 'a')]],
    ['from elsewhere after a reset', [asked(null, 'a'), reset, asked('f', 'e')]],
    ['by what says nothing of the next', [asked('1', undefined), asked('2', undefined)]],
  ])('read %s report no gap', async (_, pages) => {
    expect(await verified(naiveArchive([{ pages }]))).toMatchObject({ breaks: [], gaps: [] });
  });

  test('that no response has led to report one', async () => {
    const pages = [asked(null, 'a'), asked('a', 'b'), asked('c', 'd'), asked('d', null)];

    const { gaps } = await verified(naiveArchive([{ pages }]));

    expect(gaps).toMatchObject([{ seq: 2, isOpen: true }]);
    expect(gaps[0]?.what).toContain('no earlier response returned');
  });
});

describe('sluice archive verify', () => {
  const inDirectory = (archive: NaiveArchive) => {
    const dir = tempDir();
    writeNaive(archive, dir);
    return { dir, key: ['--key', archive.vkeys[0] ?? ''] };
  };

  test('a whole archive is 0, and its report names the proven facts', async () => {
    const { dir, key } = inDirectory(naiveArchive(commits(3)));

    const { stdout, exitCode } = await runHere(['archive', 'verify', dir, ...key]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('whole: nothing is missing, altered or out of order');
    expect(stdout).toContain('--since');
    expect(stdout).toMatch(/logs\/0 +1 +0 /);
  });

  test('a broken one is 1, and every break has its position', async () => {
    const archive = naiveArchive(commits(3));
    const { dir, key } = inDirectory(archive);
    const segment = [...archive.files.keys()].find((name) => /^segments/.test(name)) ?? '';
    const bytes = readFileSync(join(dir, segment));
    bytes[20] = (bytes[20] ?? 0) ^ 4;
    writeFileSync(join(dir, segment), bytes);

    const { stdout, exitCode } = await runHere(['archive', 'verify', dir, ...key, '--json']);

    expect(exitCode).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      verdict: 'broken',
      breaks: [{ index: 2, stream: 'logs/0', seq: 0, object: segment }],
    });
  });

  test('a break common to many pages is reported once, and in JSON for each', async () => {
    const archive = naiveArchive(commits(30));
    const { dir, key } = inDirectory(archive);
    const segment = [...archive.files.keys()].find((name) => /^segments/.test(name)) ?? '';
    rmSync(join(dir, segment));
    const html = join(dir, 'report.html');

    const { stdout } = await runHere(['archive', 'verify', dir, ...key, '--html', html]);
    const json = await runHere(['archive', 'verify', dir, ...key, '--json']);

    const reported = `entries 2 to 31 (30 breaks in 3 streams), ${segment}: the segment is missing`;
    expect(stdout.split('\n').filter((line) => line.includes(segment))).toEqual([`  ${reported}`]);
    expect(readFileSync(html, 'utf8')).toContain(`<details><summary>${reported}</summary>`);
    expect(JSON.parse(json.stdout).breaks).toHaveLength(30);
  });

  test('a location without an archive is 2, and an invalid key is a usage error', async () => {
    const dir = tempDir();
    const { key } = inDirectory(naiveArchive(commits(1)));

    const nothing = await runHere(['archive', 'verify', dir, ...key]);
    const json = await runHere(['archive', 'verify', dir, ...key, '--json']);
    const wrong = await runHere(['archive', 'verify', dir, '--key', 'a+01234567+AAAA']);

    expect(nothing).toMatchObject({ exitCode: 2, stdout: '' });
    expect(json).toMatchObject({ exitCode: 2, stdout: 'null\n' });
    expect(nothing.stderr).toContain('there is no archive');
    expect(wrong).toMatchObject({ exitCode: 64, stdout: '' });
  });

  test('open gaps are 3; the page shows them, and hostile text as text', async () => {
    const stream = '<script>alert(1)</script>"\u202e';
    const page = { stream, entry: { conditions: ['source.gap'] } };
    const { dir, key } = inDirectory(naiveArchive([{ pages: [page] }]));
    const html = join(dir, 'report.html');

    const { exitCode } = await runHere(['archive', 'verify', dir, ...key, '--html', html]);

    const text = readFileSync(html, 'utf8');
    expect(exitCode).toBe(3);
    expect(text).toContain('&#60;script&#62;alert(1)&#60;/script&#62;&#34;\\u202e');
    expect(text).toContain('<i class="gap" title="2026-01-31: 1 pages');
    expect(text).not.toContain('<script');
  });

  test('of very many gaps 200 are shown, open ones first, and all in JSON', async () => {
    const ended = Array.from({ length: 300 }, () => [
      reported('source.silent'),
      reported('source.heard'),
    ]);
    const pages = [{ ...reported('source.gap'), stream: 'open' }, ...ended.flat()];
    const { dir, key } = inDirectory(naiveArchive([{ pages }]));
    const html = join(dir, 'report.html');

    const text = await runHere(['archive', 'verify', dir, ...key, '--html', html]);
    const json = await runHere(['archive', 'verify', dir, ...key, '--json']);

    const gaps = text.stdout.split('\n').filter((line) => line.includes(': told of '));
    expect(JSON.parse(json.stdout).gaps).toHaveLength(301);
    expect(gaps).toHaveLength(200);
    expect(gaps.at(-1)).toContain('open 0');
    for (const shown of [text.stdout, readFileSync(html, 'utf8')]) {
      expect(shown).toContain('101 others, which --json has as well');
    }
  });

  test('accepts a checkpoint as a note, or within the event that another sink received', async () => {
    const archive = naiveArchive(commits(2, 3));
    const { dir, key } = inDirectory(archive);
    const note = archive.notes[0]?.toString('utf8') ?? '';
    const event = { class_uid: 6002, unmapped: { details: { size: 3, note } } };
    const newer = naiveArchive(commits(9));
    for (const [text, exitCode] of [
      [note, 0],
      [JSON.stringify(event), 0],
      [newer.notes[0]?.toString('utf8') ?? '', 1],
      ['{"a":1}', 64],
      ['nothing', 64],
    ] as const) {
      writeFileSync(join(dir, 'since'), text);
      const args = ['archive', 'verify', dir, ...key, '--since', join(dir, 'since')];
      expect([text, (await runHere(args)).exitCode]).toEqual([text, exitCode]);
    }
  });

  test('--metrics writes the verdict for a collector', async () => {
    const archive = naiveArchive(commits(3), 'a"b\\c');
    const { dir, key } = inDirectory(archive);
    const file = join(dir, 'archive.prom');

    await runHere(['archive', 'verify', dir, ...key, '--metrics', file]);

    const text = readFileSync(file, 'utf8');
    expect(text).toContain('sluice_archive_broken{origin="a\\"b\\\\c"} 0\n');
    expect(text).toContain(
      `sluice_archive_entries{origin="a\\"b\\\\c"} ${archive.entries.length}\n`,
    );
    expect(text).toMatch(/^sluice_archive_verified_timestamp_seconds\{.*\} \d{10}/m);
  });

  test('takes a file of keys', async () => {
    const archive = naiveArchive(commits(1));
    const { dir } = inDirectory(archive);
    const file = join(dir, 'keys');
    writeFileSync(file, `${archive.vkeys.join('\n')}\n`);

    expect(await runHere(['archive', 'verify', dir, '--key', file])).toMatchObject({ exitCode: 0 });
  });
});
