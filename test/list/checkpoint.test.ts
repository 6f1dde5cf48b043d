// What is read back of a list's checkpoint. The corpus beside this file was committed by the code that knew version 1 alone:
// by its tests and its simulation, in the middle of each strategy, the last lines by the release 0.1.0.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/contracts/json.ts';
import {
  freshCheckpoint,
  joinedChange,
  parseListCheckpoint,
  readCheckpoint,
  withBlocksMoved,
} from '../../src/list/checkpoint.ts';
import { asVersion1 } from '../support/older-checkpoint.ts';

const corpus = readFileSync(new URL('checkpoints-1.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as JsonObject);

/** What fields meant that release 0.1.0 did not know. */
const added = {
  ignore: [],
  olderUpTo: Number.MAX_SAFE_INTEGER,
  drift: null,
  suspected: null,
};

const read = (held: JsonObject) => readCheckpoint('src', held, String(held.fingerprint));

test('a change keeps the concerns that it leaves as they are, so that many streams share them', () => {
  const fresh = freshCheckpoint({
    ...{ fingerprint: 'f', epoch: 'e', order: 'unknown', since: null },
    ...{ ignore: [], olderUpTo: 0 },
  });

  const next = joinedChange(fresh, { server: { ...fresh.server }, end: { again: 2 } });

  expect(next.server).toBe(fresh.server);
  expect(next.end).toEqual({ ...fresh.end, again: 2 });
});

describe('a checkpoint of version 1', () => {
  test('stands in the corpus in the middle of each strategy', () => {
    const kinds = corpus.map(({ swept, round, openWalk, countAnew, resume, atEnd, order }) =>
      [
        order,
        ...(round === null ? [] : [swept === true ? 'a round' : 'the first round']),
        ...(openWalk === null ? [] : ['a walk from the start']),
        ...(countAnew === true ? ['counting anew'] : []),
        ...(resume !== null && atEnd === false ? ['a walk to the end'] : []),
      ].join(', '),
    );

    for (const kind of [
      'unknown, the first round',
      'unknown, the first round, a walk from the start',
      'newest_first, a walk from the start',
      'mixed, a round',
      'oldest_first, a round, counting anew',
      'oldest_first, a walk to the end',
    ]) {
      expect(kinds).toContain(kind);
    }
  });

  test.each(corpus.map((held, line) => [line + 1, held] as const))(
    'keeps every value: line %i',
    (_line, held) => {
      expect(asVersion1(read(held))).toMatchObject({ ...added, ...held });
    },
  );

  test('with a damaged field halts its stream', () => {
    const damaged = { ...corpus[0], resume: { by: 'page', page: 3 } };

    expect(() => read(damaged)).toThrow('cannot be read');
    expect(parseListCheckpoint(damaged)).toBeNull();
  });
});

test('a changed paging leaves only the memory of the records', () => {
  const before = read(corpus.find(({ round, nameless }) => round !== null && nameless) ?? {});
  const print = (paging: string) => JSON.stringify(['http://a', '/b', [], paging, []]);

  const held = { ...before, fingerprint: print('offset') };
  const after = readCheckpoint('src', held, print('cursor'));

  const { fingerprint, epoch, memory, wanted: requested, told: reported } = after;
  const { order } = before.growth;
  const fresh = freshCheckpoint({ fingerprint, epoch, order, since: 0, ignore: [], olderUpTo: 0 });
  expect({ epoch, memory, wanted: requested, told: reported }).toEqual({
    epoch: before.epoch,
    memory: before.memory,
    wanted: before.wanted,
    told: before.told,
  });
  const growth = { order: 'unknown', learnedAt: null };
  expect(after).toEqual({ ...fresh, growth, memory, wanted: requested, told: reported });
});

test('blocks with changed numbers are renumbered, and nothing else changes', () => {
  const walking = read(corpus.find(({ openWalk }) => openWalk !== null) ?? {});
  const memory = { ...walking.memory, olderUpTo: 3 };
  const block = walking.start.openWalk?.block ?? 0;

  const moved = withBlocksMoved({ ...walking, memory }, 40);

  expect(moved).toEqual({
    ...walking,
    start: { openWalk: { ...walking.start.openWalk, block: block + 40 } },
    memory: { ...memory, olderUpTo: 43 },
  });
  // All blocks, whatever their numbers.
  const all = { memory: { ...memory, olderUpTo: Number.MAX_SAFE_INTEGER } };
  expect(withBlocksMoved({ ...walking, ...all }, 40)).toMatchObject(all);
  expect(withBlocksMoved({ kind: 'of another' }, 40)).toEqual({ kind: 'of another' });
});
