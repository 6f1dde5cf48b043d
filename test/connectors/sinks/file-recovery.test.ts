// What the file sink makes of what a crash leaves behind, and of what others do to its file: each event stands once,
// and nothing of anyone else's is cut.

import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type OpeningWishes, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';
import { FakeEngine, name, uids, uidsIn, written } from './file-engine.ts';

describe('file counts', () => {
  test('a batch that was written whole though its answer was lost, the first one too', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2, { keep: false });
    await engine.restart();
    await engine.send(3);
    await engine.send(4, { keep: false });
    await engine.restart();

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(10));
  });

  test('a new file whose only batch was written whole, and the finished one', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    await engine.send(2);
    await engine.send(3, { keep: false });
    await engine.restart();

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(6));
  });
});

test('file does not finish a new file in place of a compressed one whose inode it has', async () => {
  const dir = tempDir();
  const engine = new FakeEngine(dir, { rotate: { bytes: '1B' }, compress: 'gzip' });
  await engine.send(2);
  await engine.send(3, { keep: false });
  await engine.restart();
  // The process was killed after it created the second file, and before it noted the file.
  const note = join(dir, `.${name}.sluice`);
  const lines = readFileSync(note, 'utf8').trim().split('\n');
  const [kind, spool, epoch, first, since, , base] = JSON.parse(lines[0] ?? '');
  truncateSync(engine.path);
  const inode = statSync(engine.path).ino;
  const noted = [kind, spool, epoch, first, since, inode, base];
  const end = lines.findIndex((line) => line.startsWith('["finished"'));
  writeFileSync(note, `${[JSON.stringify(noted), ...lines.slice(1, end + 1)].join('\n')}\n`);

  await engine.send(3);
  await engine.restart();

  expect(uidsIn(written(dir))).toEqual(uids(5));
});

describe('file cuts away', () => {
  test('a torn line', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2);
    await engine.restart();
    appendFileSync(engine.path, '{"metadata":{"uid":"to');

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });

  test('the written part of an unfinished batch, in a new file too', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    await engine.send(2);
    await engine.send(3, { keep: false });
    await engine.restart();
    truncateSync(engine.path, statSync(engine.path).size - 20);
    await engine.open();
    expect(statSync(engine.path).size).toBe(0);

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });
});

describe('file holds each event once, and cuts none, where the state', () => {
  const configs: readonly {
    readonly format?: NonNullable<OpeningWishes['format']>;
    readonly [key: string]: unknown;
  }[] = [
    {},
    { rotate: { bytes: '1B' } },
    { rotate: { bytes: '4KiB' }, compress: 'gzip' },
    { rotate: { every: '1ms' } },
    { format: { type: 'json', schema: 'original' } },
  ];
  const sorted = (lines: readonly string[]) => [...lines].sort();
  const engineFor = (dir: string, { format, ...config }: (typeof configs)[number]) =>
    new FakeEngine(dir, config, format === undefined ? {} : { format });
  const linesIn = (dir: string) => written(dir).split('\n').slice(0, -1);

  test.each(configs)('was put back from a copy, more than once, with %j', async (config) => {
    const dir = tempDir();
    const engine = engineFor(dir, config);
    await engine.send(3);
    const copy = engine.copy();
    await engine.send(2);
    await engine.send(1);
    await engine.restart();
    const before = linesIn(dir);

    await engine.restore(copy);
    await engine.send(1);
    const aheadFirst = engine.ahead;
    await engine.restart();
    await engine.catchUp();
    await engine.send(2);
    await engine.restore(copy);
    await engine.catchUp(3);
    await engine.send(1);
    await engine.restart();

    expect(aheadFirst).toBe(true);
    expect(linesIn(dir).slice(0, before.length)).toEqual(before);
    expect(linesIn(dir).length).toBe(engine.records);
    if (!('format' in config)) expect(sorted(uidsIn(written(dir)))).toEqual(sorted(uids(9)));
  });

  test.each(configs)('is lost, with %j', async (config) => {
    const dir = tempDir();
    const engine = engineFor(dir, config);
    await engine.send(3);
    await engine.send(2);

    await engine.restore();
    await engine.catchUp();
    await engine.send(1);
    await engine.restart();

    expect(linesIn(dir).length).toBe(6);
  });

  test('is older and its process is killed again and again before it has caught up', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '3KiB' } });
    const copy = engine.copy();
    for (let i = 0; i < 5; i += 1) await engine.send(2);

    await engine.restore(copy);
    for (let i = 0; i < 8; i += 1) {
      await engine.send(3, { keep: false });
      await engine.restart();
      await engine.send(1);
    }
    await engine.catchUp();
    await engine.restart();

    expect(sorted(uidsIn(written(dir)))).toEqual(sorted(uids(engine.records)));
  });

  test('is lost, and an older one had begun two files at one event in one millisecond', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    const copy = engine.copy();
    await engine.send(1);
    await engine.restore(copy);
    await engine.send(3);
    await engine.restart();
    const note = join(dir, `.${name}.sluice`);
    const lines = readFileSync(note, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    const [first, second] = lines.filter(([kind]) => kind === 'segment');
    second[4] = first[4];
    writeFileSync(note, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

    await engine.restore();
    await engine.catchUp();
    await engine.restart();

    expect(sorted(uidsIn(written(dir)))).toEqual(sorted(uids(engine.records)));
  });

  test('and the note are lost: nothing is cut, a repeat has the same uid', async () => {
    const dir = tempDir();
    const tools = testTools();
    const engine = new FakeEngine(dir, {}, { tools });
    await engine.send(2);

    await engine.restore();
    rmSync(join(dir, `.${name}.sluice`));
    await engine.catchUp();

    expect(sorted(uidsIn(written(dir)))).toEqual(sorted([...uids(2), ...uids(2)]));
    const said = tools.logged.find(({ fields }) => fields.code === 'state_older');
    expect(said?.level).toBe('warn');
  });

  test('and all files are gone except the note: all is written again', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    await engine.send(2);
    await engine.send(2);
    await engine.restore();
    for (const entry of readdirSync(dir)) if (!entry.startsWith('.')) rmSync(join(dir, entry));

    await engine.catchUp();

    expect(sorted(uidsIn(written(dir)))).toEqual(sorted(uids(4)));
  });
});

describe('file leaves other programs’ files alone:', () => {
  test('it writes behind a file that was there before, and ends its last line', async () => {
    const dir = tempDir();
    writeFileSync(join(dir, name), '{"metadata":{"uid":"old"}}\n{"metadata":{"uid":"torn"}}');
    const engine = new FakeEngine(dir);

    await engine.send(2, { keep: false });
    await engine.restart();
    await engine.send(2);
    await engine.restart();
    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(['old', 'torn', ...uids(5)]);
  });

  test.each([
    ['moved away', (path: string) => renameSync(path, join(path, '..', 'moved.ndjson'))],
    ['deleted', (path: string) => rmSync(path)],
    ['emptied', (path: string) => truncateSync(path, 0)],
    [
      'replaced',
      (path: string) => {
        rmSync(path);
        writeFileSync(path, '{"metadata":{"uid":"x"}}\n');
      },
    ],
    ['written to', (path: string) => appendFileSync(path, '{"metadata":{"uid":"x"}}')],
  ])(
    'a file that is %s while it is open: later events are all there once',
    async (what, happens) => {
      const dir = tempDir();
      const engine = new FakeEngine(dir);
      await engine.send(2);
      happens(engine.path);

      await engine.send(2, { keep: false });
      await engine.restart();
      await engine.send(3);
      await engine.restart();
      await engine.send(1);

      const found = uidsIn(written(dir)).filter((uid) => uid !== 'x');
      expect(found).toEqual(what === 'written to' ? uids(8) : uids(6, 2));
      if (what === 'moved away') {
        expect(uidsIn(readFileSync(join(dir, 'moved.ndjson'), 'utf8'))).toEqual(uids(2));
      }
    },
  );

  test.each([
    ['moved away', (path: string) => renameSync(path, join(path, '..', 'moved.ndjson'))],
    [
      'replaced by a longer one',
      (path: string) => {
        renameSync(path, join(path, '..', 'moved.ndjson'));
        writeFileSync(path, '{"metadata":{"uid":"x"}}\n'.repeat(200));
      },
    ],
  ])('a file that is %s while it is closed is not cut', async (_what, happens) => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2);
    await engine.restart();
    happens(engine.path);
    const before = existsSync(engine.path) ? readFileSync(engine.path, 'utf8') : '';

    await engine.send(1);

    const after = readFileSync(engine.path, 'utf8');
    expect(after.startsWith(before)).toBe(true);
    expect(uidsIn(after.slice(before.length))).toEqual(uids(1, 2));
  });

  test('a mark or a note that is nonsense cuts nothing', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2);
    await engine.restart();
    engine.mark = { bytes: 'all' };
    writeFileSync(join(dir, `.${name}.sluice`), '{');

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });
});

test('file holds each event once, whatever crashes, old states and lost ones come between', async () => {
  const root = tempDir();
  const aStep = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('send' as const),
        count: fc.integer({ min: 1, max: 4 }),
      }),
    },
    {
      weight: 2,
      // The process dies during a send: `share` of what that send wrote reached the disk.
      arbitrary: fc.record({
        kind: fc.constant('crash' as const),
        count: fc.integer({ min: 1, max: 4 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'copy' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'restore' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'lose' as const }) },
  );
  const aRun = fc.record({
    rotate: fc.constantFrom('1B', '2KiB', '6KiB', '1MiB'),
    compress: fc.constantFrom('none', 'gzip'),
    steps: fc.array(aStep, { maxLength: 14 }),
  });

  await fc.assert(
    fc.asyncProperty(aRun, async ({ rotate, compress, steps }) => {
      const dir = mkdtempSync(join(root, 'run-'));
      const engine = new FakeEngine(dir, { rotate: { bytes: rotate }, compress, fsync: false });
      let copy = engine.copy();
      for (const step of steps) {
        if (step.kind === 'copy') copy = engine.copy();
        if (step.kind === 'restore') await engine.restore(copy);
        if (step.kind === 'lose') await engine.restore();
        if (step.kind === 'send') await engine.send(step.count);
        if (step.kind === 'crash') await crash(engine, step);
        if (step.kind === 'restart') await engine.restart();
      }
      await engine.catchUp();
      await engine.send(1);
      await engine.restart();

      expect([...uidsIn(written(dir))].sort()).toEqual([...uids(engine.records)].sort());
      rmSync(dir, { recursive: true });
    }),
    { numRuns: 60 },
  );
});

async function crash(engine: FakeEngine, { count, share }: { count: number; share: number }) {
  await engine.open();
  const before = existsSync(engine.path) ? statSync(engine.path) : null;
  await engine.send(count, { keep: false });
  await engine.restart();
  const after = statSync(engine.path);
  const base = before?.ino === after.ino ? before.size : 0;
  truncateSync(engine.path, base + Math.floor((after.size - base) * share));
}
