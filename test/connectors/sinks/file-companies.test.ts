// A file for each company: each event is in the file of its company once, in order, whatever happens to the process, to the
// state or to one of the files, and a bounded number of files is open.

import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fileSink } from '../../../connectors/sinks/file.ts';
import type { Event } from '../../../src/contracts/event.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { openSink, someEvents, testTools } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';
import { anyActs, perform } from './engine-acts.ts';
import { FakeEngine, uids, uidsIn } from './file-engine.ts';

const never = new AbortController().signal;
const settings = (path: string) => ({ type: 'file', path, compress: 'none' as const, fsync: true });

/** Everything in the files of a company, finished ones first. */
function writtenOf(dir: string, company: string): readonly string[] {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  const own = names.filter((one) => one.startsWith(`${company}.`)).sort();
  const active = `${company}.ndjson`;
  const finished = own.filter((one) => one !== active);
  return [...finished, ...own.filter((one) => one === active)].flatMap((one) => {
    const bytes = readFileSync(join(dir, one));
    return uidsIn((one.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString());
  });
}

/** The uids of the records of each company, for the engine's records. */
const uidsOfCompany = (company: number, companies: number, records: number) =>
  uids(records).filter((_, record) => record % companies === company);

function ofCompanies(events: readonly Event[], companies: readonly (string | null)[]) {
  return events.map((event, at) => {
    const { company: _, ...context } = event.context;
    const company = companies[at % companies.length] ?? null;
    return { ...event, context: company === null ? context : { ...context, company } };
  });
}

describe('a file for each company has each event once where', () => {
  const companies = 3;
  const configs = [
    {},
    { rotate: { bytes: '1B' } },
    { rotate: { bytes: '4KiB' }, compress: 'gzip' },
  ];
  const engineFor = (dir: string, config: object) =>
    new FakeEngine(dir, { path: join(dir, '{company}.ndjson'), ...config }, { companies });
  const expectOnce = (dir: string, records: number, { inOrder = true } = {}) => {
    for (let company = 0; company < companies; company += 1) {
      const found = writtenOf(dir, `c-${company}`);
      const expected = uidsOfCompany(company, companies, records);
      expect(inOrder ? found : found.toSorted()).toEqual(inOrder ? expected : expected.toSorted());
    }
  };

  test.each(configs)('the process ends before its position is noted, with %j', async (config) => {
    const dir = tempDir();
    const engine = engineFor(dir, config);
    await engine.send(7);
    await engine.send(8, { keep: false });
    await engine.restart();
    await engine.send(3);
    await engine.send(9);
    await engine.restart();

    expectOnce(dir, 19);
  });

  test('one file has a part of the last batch, and another one nothing', async () => {
    const dir = tempDir();
    const engine = engineFor(dir, {});
    await engine.send(6);
    const before = statSync(join(dir, 'c-2.ndjson')).size;
    await engine.send(9, { keep: false });
    await engine.restart();
    const torn = join(dir, 'c-1.ndjson');
    truncateSync(torn, statSync(torn).size - 20);
    truncateSync(join(dir, 'c-2.ndjson'), before);
    await engine.send(4);
    await engine.send(5);
    await engine.restart();

    expectOnce(dir, 15);
  });

  test.each(configs)('the state is restored from a copy, with %j', async (config) => {
    const dir = tempDir();
    const engine = engineFor(dir, config);
    await engine.send(6);
    const copy = engine.copy();
    await engine.send(5);
    await engine.restore(copy);
    await engine.catchUp(2);
    await engine.send(4);
    await engine.restart();

    expectOnce(dir, 15, { inOrder: false });
  });

  test.each(configs)('the state is lost, with %j', async (config) => {
    const dir = tempDir();
    const engine = engineFor(dir, config);
    await engine.send(5);
    await engine.restore();
    await engine.catchUp(2);
    await engine.send(4);
    await engine.restart();

    expectOnce(dir, 9, { inOrder: false });
  });
});

describe('a file sink with a company in its path', () => {
  test('has each event once, whatever happens to the process and its state', async () => {
    await fc.assert(
      fc.asyncProperty(anyActs, async (acts) => {
        const dir = tempDir();
        const config = { path: join(dir, '{company}.ndjson'), fsync: false };
        const engine = new FakeEngine(dir, config, { companies: 3 });

        await perform(engine, acts);

        for (let company = 0; company < 3; company += 1) {
          const expected = uidsOfCompany(company, 3, engine.records);
          expect(writtenOf(dir, `c-${company}`).toSorted()).toEqual(expected.toSorted());
        }
      }),
      { numRuns: 60 },
    );
  });

  test.each(['symbolic', 'hard'])('a %s link makes two companies share one file', async (kind) => {
    const dir = tempDir();
    const [first, second] = [join(dir, 'c-1'), join(dir, 'c-2')];
    mkdirSync(first);
    if (kind === 'symbolic') symlinkSync(first, second);
    else {
      mkdirSync(second);
      writeFileSync(join(first, 'a.ndjson'), '');
      linkSync(join(first, 'a.ndjson'), join(second, 'a.ndjson'));
    }
    // Processes that share a state all get the lock.
    const tools = { ...testTools(), lockFile: () => ({ release: () => undefined }) };
    const config = { path: join(dir, '{company}', 'a.ndjson') };
    const { sink, batch } = await openSink(fileSink, config, { tools });
    const events = ofCompanies(someEvents(20), ['c-1', 'c-2']);

    const refused = await sink.send(batch(events), never);
    if (kind === 'hard') rmSync(join(second, 'a.ndjson'));
    else rmSync(second);
    const repaired = await sink.send(batch(events), never);
    await sink.close();

    const same = expect.stringContaining('it is the same file as');
    const own = { reason: same, by: 'only_destination' };
    expect(refused).toMatchObject({ outcome: 'partly', refused: Array(10).fill(own) });
    expect(repaired).toEqual({ outcome: 'delivered' });
    for (const [at, directory] of [first, second].entries()) {
      const found = uidsIn(readFileSync(join(directory, 'a.ndjson'), 'utf8'));
      expect(found).toEqual(uidsOfCompany(at, 2, 20));
    }
  });

  test('writes again only what is missing after one of the files failed', async () => {
    const dir = tempDir();
    const path = join(dir, '{company}.ndjson');
    const { sink, batch, tools } = await openSink(fileSink, { path });
    const blocked = join(dir, 'c-1.ndjson');
    mkdirSync(blocked);
    const events = ofCompanies(someEvents(9), ['c-0', 'c-1', 'c-2']);

    const refused = await sink.send(batch(events), never);
    rmdirSync(blocked);
    const repaired = await sink.send(batch(events), never);
    await sink.close();

    const own = {
      reason: `writing to ${blocked}: it is a directory (EISDIR)`,
      by: 'only_destination',
    };
    expect(tools.logged.map(({ event }) => event)).not.toContain('file_lines_unknown');
    expect(refused).toMatchObject({ outcome: 'partly', refused: Array(3).fill(own) });
    expect(repaired).toEqual({ outcome: 'delivered' });
    for (const [at, company] of ['c-0', 'c-1', 'c-2'].entries()) {
      expect(writtenOf(dir, company)).toEqual(uidsOfCompany(at, 3, 9));
    }
  });

  test('keeps a bounded number of 300 files open, and each in order', async () => {
    const dir = tempDir();
    const companies = Array.from({ length: 300 }, (_, i) => `c-${i}`);
    const { sink, batch } = await openSink(fileSink, {
      path: join(dir, '{company}/events.ndjson'),
    });
    const openFiles = () => readdirSync('/proc/self/fd').length;
    const before = openFiles();
    let most = 0;
    for (let at = 0; at < 3; at += 1) {
      const events = ofCompanies(someEvents(600, at * 600), companies);
      const answer = sink.send(batch(events), never);
      const watch = setInterval(() => {
        most = Math.max(most, openFiles());
      }, 1);
      expect(await answer).toEqual({ outcome: 'delivered' });
      clearInterval(watch);
      most = Math.max(most, openFiles());
    }
    await sink.close();

    expect(most - before).toBeLessThan(64 * 2 + 20);
    expect(openFiles()).toBeLessThanOrEqual(before + 1);
    const all = uids(1_800);
    for (const [company, name] of companies.entries()) {
      expect(uidsIn(readFileSync(join(dir, name, 'events.ndjson'), 'utf8'))).toEqual(
        all.filter((_, at) => at % 300 === company),
      );
    }
  });

  test('has the lock of a file only while it is open, and closes the one unused for longest', async () => {
    const dir = tempDir();
    const held = new Set<string>();
    const lockFile = (path: string) => {
      held.add(basename(path));
      return { release: () => held.delete(basename(path)) };
    };
    const { sink, batch } = await openSink(
      fileSink,
      { path: join(dir, '{company}.ndjson') },
      { tools: { ...testTools(), lockFile } },
    );
    const names = Array.from({ length: 64 }, (_, i) => `c-${i}`);
    const send = async (first: number, ...companies: readonly string[]) => {
      const events = ofCompanies(someEvents(companies.length, first), companies);
      expect(await sink.send(batch(events), never)).toEqual({ outcome: 'delivered' });
    };
    await send(0, ...names);
    await send(64, 'c-0');
    await send(65, 'c-64');

    const files = [...held].filter((one) => one.startsWith('c-'));
    expect(files.toSorted()).toEqual(
      [...names, 'c-64']
        .filter((one) => one !== 'c-1')
        .map((one) => `${one}.ndjson`)
        .toSorted(),
    );
    await sink.close();
    expect(held.size).toBe(0);
  });

  test('finishes a file by its age, although it was closed meanwhile', async () => {
    const dir = tempDir();
    const companies = Array.from({ length: 100 }, (_, i) => `c-${i}`);
    const clock = manualClock(Date.UTC(2026, 2, 4));
    const { sink, batch } = await openSink(
      fileSink,
      { path: join(dir, '{company}.ndjson'), rotate: { every: '60s' } },
      { tools: testTools(clock) },
    );
    for (const first of [0, 100, 200]) {
      await sink.send(batch(ofCompanies(someEvents(100, first), companies)), never);
      clock.jump(40_000);
    }
    await sink.close();

    expect(uidsIn(readFileSync(join(dir, 'c-0.ndjson'), 'utf8'))).toEqual(uids(1, 200));
    expect(writtenOf(dir, 'c-0')).toEqual([0, 100, 200].flatMap((first) => uids(1, first)));
  });

  test('leaves a file that another process moved while it was not open', async () => {
    const dir = tempDir();
    const companies = Array.from({ length: 100 }, (_, i) => `c-${i}`);
    const { sink, batch } = await openSink(fileSink, { path: join(dir, '{company}.ndjson') });
    await sink.send(batch(ofCompanies(someEvents(100), companies)), never);
    renameSync(join(dir, 'c-0.ndjson'), join(dir, 'moved'));
    await sink.send(batch(ofCompanies(someEvents(100, 100), companies)), never);
    await sink.close();

    expect(uidsIn(readFileSync(join(dir, 'moved'), 'utf8'))).toEqual(uids(1));
    expect(writtenOf(dir, 'c-0')).toEqual(uids(1, 100));
    expect(writtenOf(dir, 'c-1')).toEqual([...uids(1, 1), ...uids(1, 101)]);
  });

  test('never leaves its directory, and no two companies share a file', async () => {
    const dir = tempDir();
    const inside = join(dir, 'inside');
    const companies = ['../../x', 'a/b', 'A', 'a', 'none', null, '..', '\u0000', 'x'.repeat(300)];
    const { sink, batch } = await openSink(fileSink, { path: join(inside, '{company}.ndjson') });
    await sink.send(batch(ofCompanies(someEvents(companies.length), companies)), never);
    await sink.close();

    const names = readdirSync(inside).filter((one) => one.endsWith('.ndjson'));
    expect(readdirSync(dir)).toEqual([basename(inside)]);
    expect(new Set(names.map((one) => one.toLowerCase())).size).toBe(companies.length);
    for (const one of names)
      expect(readFileSync(join(inside, one), 'utf8').split('\n').length).toBe(2);
    expect(names).toContain('none.ndjson');
  });

  test.each([
    ['{source}{company}.ndjson', /path: write one of - _ \./],
    [`${'x'.repeat(120)}-{source}.{company}.ndjson`, /may have 2\d\d bytes/],
    ['out/{company}/{source}.ndjson', null],
  ])('in %s: check gives the flaw, if any', (path, flaw) => {
    const found = fileSink.flaw?.(settings(path)) ?? null;

    if (flaw === null) expect(found).toBeNull();
    else expect(found).toMatch(flaw);
  });
});
