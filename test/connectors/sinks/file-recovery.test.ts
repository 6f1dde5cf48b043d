// What the file sink makes of what a crash leaves behind, and of what others do to its file: each event stands once,
// and nothing of anyone else's is cut.

import {
  appendFileSync,
  existsSync,
  mkdtempSync,
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
import { testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';
import { FakeEngine, name, uids, uidsIn, written } from './file-engine.ts';

describe('file cuts away', () => {
  test('a batch that was written and not accounted for, the first one too', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2, { keep: false });
    await engine.restart();
    await engine.send(3);
    await engine.send(4, { keep: false });
    await engine.restart();

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(4));
  });

  test('a torn line', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(2);
    await engine.restart();
    appendFileSync(engine.path, '{"metadata":{"uid":"to');

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });

  test('a new file whose first batch was not accounted for, and keeps the finished one', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    await engine.send(2);
    await engine.send(3, { keep: false });
    await engine.restart();
    await engine.open();
    expect(statSync(engine.path).size).toBe(0);

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });
});

describe('file respects what is not its own:', () => {
  test('it writes behind a file that was there before, and ends its last line', async () => {
    const dir = tempDir();
    writeFileSync(join(dir, name), '{"metadata":{"uid":"old"}}\n{"metadata":{"uid":"torn"}}');
    const engine = new FakeEngine(dir);

    await engine.send(2, { keep: false });
    await engine.restart();
    await engine.send(2);
    await engine.restart();
    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual(['old', 'torn', ...uids(3)]);
  });

  test('a new state directory leaves an old one’s events alone', async () => {
    const dir = tempDir();
    const old = new FakeEngine(dir, {}, { spoolId: 'old' });
    await old.send(2);
    await old.send(3, { keep: false });
    await old.restart();
    const engine = new FakeEngine(dir, {}, { spoolId: 'new' });

    await engine.send(1);

    expect(uidsIn(written(dir))).toEqual([...uids(5), ...uids(1)]);
  });

  test('an older state brought back cuts nothing, and says so', async () => {
    const dir = tempDir();
    const tools = testTools();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } }, { tools });
    await engine.send(1);
    const { mark, position } = engine;
    for (let i = 0; i < 3; i++) await engine.send(1);
    await engine.restart();
    Object.assign(engine, { mark, position });

    await engine.send(1);

    expect([...uidsIn(written(dir))].sort()).toEqual([...uids(4), ...uids(1, 1)].sort());
    expect(tools.logged).toContainEqual(expect.objectContaining({ level: 'warn' }));
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
      expect(found).toEqual(what === 'written to' ? uids(6) : uids(4, 2));
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

test('file holds each event once, whatever crashes come between', async () => {
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
      for (const step of steps) {
        if (step.kind === 'send') await engine.send(step.count);
        if (step.kind === 'crash') await crash(engine, step);
        if (step.kind === 'restart') await engine.restart();
      }
      await engine.send(1);
      await engine.restart();

      expect(uidsIn(written(dir))).toEqual(uids(engine.position));
      rmSync(dir, { recursive: true });
    }),
    { numRuns: 60 },
  );
}, 60_000);

async function crash(engine: FakeEngine, { count, share }: { count: number; share: number }) {
  await engine.open();
  const before = existsSync(engine.path) ? statSync(engine.path) : null;
  await engine.send(count, { keep: false });
  await engine.restart();
  const after = statSync(engine.path);
  const base = before?.ino === after.ino ? before.size : 0;
  truncateSync(engine.path, base + Math.floor((after.size - base) * share));
}
