// One stream, one log: where a stream continues from is in its first entry, a log that has only a part of a stream is
// found by its cursors, and a process that does not see the archive of its state writes nothing.

import { hash } from 'node:crypto';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { movedMark } from '../../src/archive/heads.ts';
import { parseVkey } from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { AnswerFacts } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { memoryStore } from '../support/archive/memory-store.ts';
import { type NaivePage, naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, readArchive, type State } from './a-writer.ts';

const hex = (cursor: string | null) => (cursor === null ? null : hash('sha256', cursor));

/** A page that was requested with a cursor and leads to the next one. */
function asked(cursor: string | null, next: string | null, more: object = {}): NaivePage {
  const answer = { status: 200, path: '/events', asked: hex(cursor), next: hex(next), ...more };
  return { stream: 'audit', entry: { answer } };
}

const begins = ({ entry, ...page }: NaivePage): NaivePage => ({
  ...page,
  entry: { continues: 'beginning', ...entry },
});

async function verified(pages: readonly NaivePage[]) {
  const archive = naiveArchive([{ pages }]);
  const trusted = archive.vkeys.map(parseVkey);
  return await verifyArchive(new ArchiveReader(memoryStore(archive.files)), { trusted });
}

describe('a stream that was read to its end, and then from a position that no response has led to', () => {
  const toEnd = [begins(asked(null, 'a')), asked('a', 'b'), asked('b', null)];

  test('is a break with its position', async () => {
    const { breaks, gaps } = await verified([...toEnd, asked('x', 'y')]);

    expect(breaks).toMatchObject([{ index: 5, stream: 'audit', seq: 3 }]);
    expect(breaks[0]?.what).toContain('no answer before has led to');
    expect(gaps).toEqual([]);
  });

  test('is an open gap in an archive whose streams do not record where they continue from', async () => {
    const pages = [asked(null, 'a'), asked('a', null), asked('x', 'y')];
    const archive = naiveArchive([{ pages }]);
    const dir = tempDir();
    writeNaive(archive, dir);
    const { breaks, gaps } = await verified(pages);
    const { exitCode } = await runHere(['archive', 'verify', dir, '--key', archive.vkeys[0] ?? '']);

    expect(breaks).toEqual([]);
    expect(gaps).toMatchObject([{ seq: 2, isOpen: true }]);
    expect(exitCode).toBe(3);
  });

  const reset: NaivePage = {
    stream: 'audit',
    entry: { kind: 'condition', conditions: ['source.checkpoint_reset'] },
  };
  test.each<readonly [string, readonly NaivePage[]]>([
    ['the same place again', [asked('b', null)]],
    ['an earlier place', [asked('a', 'b'), asked('b', 'c'), asked('c', null)]],
    ['the start', [asked(null, 'a')]],
    ['another place after a reset', [reset, asked('x', 'y'), asked('y', null)]],
    ['a place that sluice keeps for late records', [asked('x', 'y', { rewind: true })]],
    ['a refused place', [asked('x', null, { status: 410 })]],
  ])('is whole where that is explained: %s', async (_, more) => {
    expect(await verified([...toEnd, ...more])).toMatchObject({ breaks: [], gaps: [] });
  });

  test('is an open gap in a log that was added to a state with events', async () => {
    const [first = begins(asked(null, 'a')), ...others] = toEnd;
    const late = { ...first, entry: { ...first.entry, place: [1, 500] } };
    const { breaks, gaps } = await verified([late, ...others, asked('x', 'y')]);

    expect(breaks).toEqual([]);
    expect(gaps).toMatchObject([{ seq: 3, isOpen: true }]);
  });

  test('explains one request by a reset, and not the next', async () => {
    const { breaks } = await verified([...toEnd, reset, asked('x', 'y'), asked('z', null)]);

    expect(breaks).toMatchObject([{ seq: 5 }]);
  });

  test('reports nothing if the log starts within the list: the position may be an earlier one', async () => {
    const pages = [begins(asked('m', 'n')), asked('n', null), asked('k', 'l')];

    expect(await verified(pages)).toMatchObject({ breaks: [], gaps: [] });
  });

  test('says nothing of lists that are read by counted rows', async () => {
    const pages = [begins(asked(null, null)), asked('2', null), asked('4', null)];

    expect(await verified(pages)).toMatchObject({ breaks: [], gaps: [] });
  });

  test('is judged list by list of many parents', async () => {
    const of = (parent: string, page: NaivePage) => ({
      ...page,
      entry: { parent, ...page.entry },
    });
    const [first = begins(asked(null, 'a')), ...others] = toEnd;
    const pages = [
      of('t1', first),
      of('t2', asked(null, null)),
      ...others.map((one) => of('t1', one)),
    ];
    const { breaks } = await verified([
      ...pages,
      of('t2', asked('b', null)),
      of('t1', asked('x', null)),
    ]);

    expect(breaks).toMatchObject([{ seq: 5 }]);
  });
});

/** Held pages, each requested with a cursor that leads to the next one. */
function answered(pages: readonly HeldPage[], cursors: readonly (string | null)[]) {
  return pages.map((page, i) => {
    const answer: AnswerFacts = {
      ...{ status: 200, path: '/events' },
      ...{ asked: cursors[i] ?? null, next: cursors[i + 1] ?? null },
    };
    return { ...page, context: { ...page.context, answer } };
  });
}

async function verdict(location: string) {
  const trusted = [aSigner().verifier];
  return await verifyArchive(new ArchiveReader(openDirectory(location)), { trusted });
}

test('an archive that was given only a part of a stream is broken where the part is missing', async () => {
  const location = join(tempDir(), 'archive');
  const pages = answered(heldPages(8), [null, 'a', 'b', null, 'c', 'd', 'e', null]);
  const tail = pages.map((page, i) =>
    i === 3 ? (answered([page], ['b', null])[0] ?? page) : page,
  );
  const writer = await aWriter({ store: openDirectory(location) });
  await archived(writer, tail.slice(0, 4));
  // Another process has archived the fifth and sixth elsewhere.
  await archived(writer, tail.slice(6));
  await writer.close();

  const { breaks } = await verdict(location);

  expect(breaks).toMatchObject([{ stream: 'audit', seq: 4 }]);
});

describe('the first entry of a stream', () => {
  const pagesIn = async (location: string) =>
    (await readArchive(location)).entries.filter((entry) => entry.t === 'page');

  test('says that it begins here, and later ones say nothing', async () => {
    const location = join(tempDir(), 'archive');
    const writer = await aWriter({ store: openDirectory(location) });
    await archived(writer, heldPages(2));
    await archived(writer, [...heldPages(1, 6), ...heldPages(1, 9, 'logs')]);
    await writer.close();

    const entries = await pagesIn(location);

    expect(entries.map(({ stream, continues }) => [stream, continues])).toEqual([
      ['audit', 'beginning'],
      ['audit', undefined],
      ['audit', undefined],
      ['logs', 'beginning'],
    ]);
  });

  test('names the log that has the pages before, after the archive was moved to another location', async () => {
    const [old, moved] = [join(tempDir(), 'old'), join(tempDir(), 'new')];
    const state: State = { mark: null };
    const first = await aWriter({ store: openDirectory(old), state, configured: './old' });
    await archived(first, [...heldPages(2), ...heldPages(1, 6, 'logs')]);
    await first.close();
    const before = await pagesIn(old);
    const sha256 = hash('sha256', readFileSync(join(old, 'archive.json')));

    const second = await aWriter({ store: openDirectory(moved), state, configured: './new' });
    await archived(second, heldPages(1, 9));
    await second.close();
    const third = await aWriter({ store: openDirectory(moved), state, configured: './new' });
    await archived(third, [...heldPages(1, 12, 'logs'), ...heldPages(1, 15, 'tickets')]);
    await third.close();

    const [audit, logs, tickets] = await pagesIn(moved);
    const { remarks, breaks } = await verdict(moved);
    const of = { archive: sha256, origin: 'archive.test' };
    expect(audit?.continues).toMatchObject({ ...of, seq: 2 });
    expect(logs?.continues).toMatchObject({ ...of, seq: 1 });
    expect(tickets?.continues).toBe('beginning');
    expect(before).toHaveLength(3);
    expect(breaks).toEqual([]);
    expect(remarks.join('\n')).toContain(
      'audit continues at its page 2 from the archive archive.test',
    );
  });
});

describe('the first entry of a stream does not say `beginning`', () => {
  const continuesIn = async (location: string) =>
    (await readArchive(location)).entries.flatMap((entry) =>
      entry.t === 'page' && entry.seq === 0 ? [[entry.stream, entry.continues]] : [],
    );
  const newLog = () => join(tempDir(), 'archive');

  test('where it was requested with a cursor, and the state does not know from which log', async () => {
    const location = newLog();
    const writer = await aWriter({ store: openDirectory(location) });
    const [first] = answered(heldPages(1, 0, 'logs'), ['m', 'n']);
    await archived(writer, [...(first === undefined ? [] : [first]), ...heldPages(1, 3)]);
    await writer.close();

    expect(await continuesIn(location)).toEqual([
      ['logs', 'unknown'],
      ['audit', 'beginning'],
    ]);
    const { remarks, gaps } = await verdict(location);
    expect(remarks.join('\n')).toContain('where logs continue from is not known');
    expect(gaps).toEqual([]);
  });

  test('in a log that was added to a state with events, also after a restart', async () => {
    const location = newLog();
    for (const [at, stream] of [
      [300, 'audit'],
      [303, 'logs'],
    ] as const) {
      // Nothing is kept between the two.
      const writer = await aWriter({ store: openDirectory(location) });
      await archived(writer, heldPages(1, at, stream));
      await writer.close();
    }

    expect(await continuesIn(location)).toEqual([
      ['audit', 'unknown'],
      ['logs', 'unknown'],
    ]);
  });

  test('after two moves, where only the first log has its pages', async () => {
    const [first, second, third] = [newLog(), newLog(), newLog()];
    const state: State = { mark: null };
    for (const [location, pages] of [
      [first, [...heldPages(1), ...heldPages(1, 3, 'logs')]],
      [second, heldPages(1, 6)],
      [third, [...heldPages(1, 9), ...heldPages(1, 12, 'logs')]],
    ] as const) {
      const configured = location;
      const writer = await aWriter({ store: openDirectory(location), state, configured });
      await archived(writer, pages);
      await writer.close();
    }
    const shaOf = (location: string) =>
      hash('sha256', readFileSync(join(location, 'archive.json')), 'hex');

    expect(await continuesIn(third)).toMatchObject([
      ['audit', { archive: shaOf(second), seq: 1 }],
      ['logs', { archive: shaOf(first), seq: 1 }],
    ]);
  });

  test('after it was moved from one shard to another, and names the log there', async () => {
    const logs = [newLog(), newLog()];
    const marks: Json[] = [];
    for (const [i, location] of logs.entries()) {
      const state: State = { mark: null };
      const writer = await aWriter({ store: openDirectory(location), state });
      await archived(writer, [...heldPages(1, 0, `own-${i}`), ...heldPages(1, 3, 'both')]);
      await writer.close();
      if (state.mark !== null) marks.push(state.mark);
    }
    const location = newLog();
    const state: State = { mark: movedMark(marks) };
    // The first process enters one of them, and leaves the rest to the next.
    for (const pages of [
      heldPages(1, 0, 'own-1'),
      [...heldPages(1, 3, 'own-0'), ...heldPages(1, 6, 'both'), ...heldPages(1, 9, 'fresh')],
    ]) {
      const writer = await aWriter({ store: openDirectory(location), state });
      await archived(writer, pages);
      await writer.close();
    }
    const [one, two] = logs.map((log) => hash('sha256', readFileSync(join(log, 'archive.json'))));

    expect(await continuesIn(location)).toMatchObject([
      ['own-1', { archive: two, seq: 1 }],
      ['own-0', { archive: one, seq: 1 }],
      // Either log may have been the last.
      ['both', 'unknown'],
      ['fresh', 'beginning'],
    ]);
  });
});

describe('a process that does not see the archive which its state has written', () => {
  async function left() {
    const state: State = { mark: null };
    const first = join(tempDir(), 'archive');
    const writer = await aWriter({ store: openDirectory(first), state, configured: './archive' });
    await archived(writer, heldPages(2));
    await writer.close();
    return { state, first };
  }

  test('is refused where its location leads to another directory', async () => {
    const { state, first } = await left();
    const second = join(tempDir(), 'archive');

    const opening = aWriter({ store: openDirectory(second), state, configured: './archive' });

    await expect(opening).rejects.toMatchObject({
      code: 'sink_refused',
      message: expect.stringContaining(`this state has written it in ${first}`),
      next: expect.stringContaining('the same directory'),
    });
    expect(await openDirectory(second).facts('archive.json')).toBeNull();
  });

  test('is refused where that has another archive, of the same key', async () => {
    const { state } = await left();
    const second = join(tempDir(), 'archive');
    const other = await aWriter({ store: openDirectory(second), spool: 'spool-2' });
    await archived(other, heldPages(1));
    await other.close();

    const opening = aWriter({ store: openDirectory(second), state, configured: './archive' });

    await expect(opening).rejects.toMatchObject({ code: 'sink_refused' });
  });

  test('resumes after the whole archive was moved, at its new location', async () => {
    const { state, first } = await left();
    const second = join(tempDir(), 'archive');
    renameSync(first, second);
    const writer = await aWriter({ store: openDirectory(second), state, configured: './archive' });
    await archived(writer, heldPages(1, 6));
    await writer.close();

    expect((await readArchive(second)).uids).toHaveLength(9);
  });
});
