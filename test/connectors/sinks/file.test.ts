// The file sink on a real file system: lines, rotation, compression, and its reports to the engine. Crashes and changes
// by other programs are in file-recovery.test.ts.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fileSink } from '../../../connectors/sinks/file.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { startSinkProcess } from '../../support/sink-process.ts';
import { tempDir } from '../../support/temp.ts';
import { canMountTmpfs } from '../../support/tmpfs.ts';
import { FakeEngine, name, uids, uidsIn, written } from './file-engine.ts';

const never = new AbortController().signal;

// A disk that is full has to be one of its own: a small one, mounted where only a child process sees it.
const canMount = canMountTmpfs('file on a full disk');

describe('file writes', () => {
  test('each event as a line', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);

    const delivery = await engine.send(3);

    expect(delivery).toMatchObject({ outcome: 'delivered' });
    const { format } = await engine.open();
    expect(readFileSync(engine.path, 'utf8')).toBe(
      someEvents(3)
        .map((event) => `${format.encode(event)}\n`)
        .join(''),
    );
  });

  test('into directories that it makes, for the group to read', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(join(dir, 'a', 'b'));

    await engine.send(1);

    expect(statSync(engine.path).mode & 0o777).toBe(0o640);
    expect(statSync(join(dir, 'a', 'b')).mode & 0o777).toBe(0o750);
  });

  test('on where it was after a restart', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir);
    await engine.send(3);
    await engine.restart();

    await engine.send(2);

    expect(uidsIn(written(dir))).toEqual(uids(5));
    expect(readdirSync(dir).sort()).toEqual([`.${name}.sluice`, name]);
  });

  test('without flushing, if requested', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { fsync: false });

    await engine.send(3);

    expect(uidsIn(written(dir))).toEqual(uids(3));
  });
});

describe('file rotates', () => {
  test('before a file would grow beyond its bytes, by the offset of its first event', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '5KiB' } });

    for (let i = 0; i < 6; i++) await engine.send(2);

    const finished = readdirSync(dir).filter((entry) => /^events\.\d{16}\.ndjson$/.test(entry));
    expect(finished.length).toBeGreaterThan(1);
    for (const entry of finished) {
      const text = readFileSync(join(dir, entry), 'utf8');
      expect(text.length).toBeLessThanOrEqual(5 * 1024);
      expect(uidsIn(text)[0]).toBe(uids(1, Number(entry.split('.')[1]))[0]);
    }
    expect(uidsIn(written(dir))).toEqual(uids(12));
  });

  test('a file that is old enough when events come, over a restart too', async () => {
    const dir = tempDir();
    const clock = manualClock();
    const engine = new FakeEngine(dir, { rotate: { every: '1h' } }, { tools: testTools(clock) });
    await engine.send(1);
    await clock.advance(3_599_999);
    await engine.send(1);
    await engine.restart();
    await clock.advance(1);

    await engine.send(1);

    expect(uidsIn(readFileSync(join(dir, 'events.0000000000000000.ndjson'), 'utf8'))).toEqual(
      uids(2),
    );
    expect(uidsIn(readFileSync(engine.path, 'utf8'))).toEqual(uids(1, 2));
  });

  test.for([
    ['ten years', 87_600],
    ['an hour', 1],
  ] as const)('by age, although the clock that began it was ahead by %s', async ([, hours]) => {
    const dir = tempDir();
    const clock = manualClock();
    const engine = new FakeEngine(dir, { rotate: { every: '1h' } }, { tools: testTools(clock) });
    clock.jump(hours * 3_600_000);
    await engine.send(1);
    clock.jump(-hours * 3_600_000);

    await engine.send(1);

    expect(uidsIn(readFileSync(engine.path, 'utf8'))).toEqual(uids(1, 1));
  });

  test('never over a file of that name', async () => {
    const dir = tempDir();
    const taken = join(dir, 'events.0000000000000000.ndjson');
    writeFileSync(taken, 'an older spool’s events\n');
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' } });

    await engine.send(1);
    await engine.send(1);

    expect(readFileSync(taken, 'utf8')).toBe('an older spool’s events\n');
    const beside = readFileSync(join(dir, 'events.0000000000000000-2.ndjson'), 'utf8');
    expect(uidsIn(beside)).toEqual(uids(1));
  });

  test('a path without an extension', async () => {
    const dir = tempDir();
    const config = { path: join(dir, 'events'), rotate: { bytes: '1B' } };
    const { sink, batch } = await openSink(fileSink, config);

    await sink.send(batch(someEvents(1)), never);
    await sink.send(batch(someEvents(1, 1)), never);

    expect(readdirSync(dir).sort()).toEqual([
      '.events.sluice',
      'events',
      'events.0000000000000000',
    ]);
  });
});

describe('file compresses', () => {
  test('finished files only, and leaves nothing else behind', async () => {
    const dir = tempDir();
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' }, compress: 'gzip' });

    for (let i = 0; i < 3; i++) await engine.send(2);
    await engine.restart();

    expect(readdirSync(dir).sort()).toEqual([
      `.${name}.sluice`,
      'events.0000000000000000.ndjson.gz',
      'events.0000000000000002.ndjson.gz',
      name,
    ]);
    expect(statSync(join(dir, 'events.0000000000000000.ndjson.gz')).mode & 0o777).toBe(0o640);
    expect(uidsIn(written(dir))).toEqual(uids(6));
  });

  test('nothing on a full disk, and leaves no unfinished file', async () => {
    const dir = tempDir();
    symlinkSync('/dev/full', join(dir, 'events.0000000000000000.ndjson.gz.part'));
    const engine = new FakeEngine(dir, { rotate: { bytes: '1B' }, compress: 'gzip' });
    await engine.send(2);
    await engine.send(1);

    await engine.restart();

    expect(readdirSync(dir).filter((one) => one.startsWith('events.0'))).toEqual([
      'events.0000000000000000.ndjson',
    ]);
  });

  test('a compression that a stopped process had not finished', async () => {
    const dir = tempDir();
    const plain = new FakeEngine(dir, { rotate: { bytes: '1B' } });
    for (let i = 0; i < 3; i++) await plain.send(1);
    await plain.restart();
    writeFileSync(join(dir, 'events.0000000000000000.ndjson.gz.part'), 'half of it');
    writeFileSync(
      join(dir, 'events.0000000000000001.ndjson.gz'),
      'whole, yet its original is still there',
    );
    const engine = new FakeEngine(dir, { compress: 'gzip' });
    await engine.restore(plain.copy());
    engine.records = plain.records;

    await engine.send(1);
    await engine.restart();

    expect(readdirSync(dir).filter((entry) => entry.startsWith('events.0'))).toEqual([
      'events.0000000000000000.ndjson.gz',
      'events.0000000000000001.ndjson.gz',
    ]);
    expect(uidsIn(written(dir))).toEqual(uids(4));
  });

  test('no file that only looks like one of its own', async () => {
    const dir = tempDir();
    const others = [
      'events.1.ndjson',
      'events.0000000000000000.json',
      'xevents.0000000000000000.ndjson',
    ];
    for (const other of others) writeFileSync(join(dir, other), 'x\n');
    const engine = new FakeEngine(dir, { compress: 'gzip' });

    await engine.send(1);
    await engine.restart();

    expect(readdirSync(dir).sort()).toEqual([`.${name}.sluice`, name, ...others].sort());
  });
});

describe('file reports to the engine', () => {
  test.skipIf(!canMount)('to wait while the disk is full, and leaves no half line', async () => {
    const dir = tempDir();
    const mount = `mount -t tmpfs -o size=64k tmpfs ${dir}; exec "$@"`;
    const wrapper = ['unshare', '-rm', 'sh', '-c', mount, 'sh'];
    const sink = await startSinkProcess('file', { path: join(dir, name) }, wrapper);
    const small = join('/proc', String(sink.pid), 'root', dir);
    await sink.ask({ ask: 'send', count: 2, first: 0 });
    const before = readFileSync(join(small, name), 'utf8');

    const tooMuch = await sink.ask({ ask: 'send', count: 200, first: 2 });
    const stillTooMuch = await sink.ask({ ask: 'send', count: 200, first: 2 });
    const enough = await sink.ask({ ask: 'send', count: 3, first: 2 });

    const full = { outcome: 'retry', code: 'disk_full', message: expect.stringMatching(/ENOSPC/) };
    expect(tooMuch).toMatchObject(full);
    expect(stillTooMuch).toMatchObject(full);
    expect(enough).toEqual({ outcome: 'delivered' });
    const after = readFileSync(join(small, name), 'utf8');
    expect(after.startsWith(before)).toBe(true);
    expect(uidsIn(after)).toEqual(uids(5));
  });

  test('that a device is no file', async () => {
    const { sink, batch } = await openSink(fileSink, { path: '/dev/null' });

    const delivery = await sink.send(batch(someEvents(1)), never);

    expect(delivery).toMatchObject({
      outcome: 'refused',
      scope: 'sink',
      cause: { message: expect.stringContaining('not a regular file') },
    });
  });

  test('that a path which is a directory, or lies below a file, cannot be written', async () => {
    const dir = tempDir();
    writeFileSync(join(dir, 'plain'), '');
    for (const path of [dir, join(dir, 'plain', 'events.ndjson')]) {
      const { sink, batch } = await openSink(fileSink, { path });

      const delivery = await sink.send(batch(someEvents(1)), never);

      expect(delivery).toMatchObject({
        outcome: 'refused',
        scope: 'sink',
        cause: { code: 'sink_refused', message: expect.stringContaining(path) },
      });
    }
  });

  test('nothing for a send that is aborted before it begins', async () => {
    const dir = tempDir();
    const { sink, batch } = await openSink(fileSink, { path: join(dir, name) });

    await expect(sink.send(batch(someEvents(1)), AbortSignal.abort())).rejects.toThrow();

    expect(existsSync(join(dir, name))).toBe(false);
  });
});

describe('file probe', () => {
  const probe = (path: string) =>
    fileSink.probe(parseSettings(fileSink, { path }), testTools(), never);

  test('finds a path writable whose directories do not exist yet, and creates none', async () => {
    const dir = tempDir();

    await probe(join(dir, 'a', 'b', name));

    expect(readdirSync(dir)).toEqual([]);
  });

  test('throws where the path is not a file', async () => {
    await expect(probe(tempDir())).rejects.toMatchObject({
      message: expect.stringMatching(/can be written: it is a directory \(EISDIR\)$/),
      next: 'Set path to a file in it, such as events.ndjson.',
    });
    await expect(probe('/dev/null')).rejects.toThrow(/not a regular file/);
  });

  test('and where a directory of the path is a file', async () => {
    const file = join(tempDir(), name);
    writeFileSync(file, '');

    await expect(probe(join(file, name))).rejects.toMatchObject({
      message: expect.stringMatching(/a directory of the path is a file \(ENOTDIR\)$/),
      next: 'Change path, or move that file away.',
    });
  });

  test.skipIf(process.platform !== 'linux')('throws if no file can be created', async () => {
    await expect(probe('/proc/a/b')).rejects.toThrow(/looking whether \/proc\/a\/b can be written/);
  });

  test.skipIf(process.getuid?.() === 0)(
    'throws where the directory may not be written',
    async () => {
      const dir = join(tempDir(), 'closed');
      mkdirSync(dir);
      chmodSync(dir, 0o500);

      await expect(probe(join(dir, name))).rejects.toThrow(/EACCES/);
    },
  );
});
