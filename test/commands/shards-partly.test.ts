// Commands that change several shards, of which the last one does not answer: they print what was done before, and end with 1.

import { beforeEach, expect, test, vi } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import { runHere } from '../support/cli.ts';

const removed = { name: 'gone', kept: true, missing_since: '', dead_letters: 0, pending: 5 };
const uids = ['a', 'b', 'c'].map((letter) => letter.repeat(64));
const letters = uids.map((uid, id) => ({ id, uid, sink: 'siem', at: 0 }));

/** What the state of each shard has; the last one does not answer. */
const shards = vi.hoisted(() => [] as object[]);

vi.mock('../../src/commands/shared/parts.ts', () => ({
  partsAtWork: () => shards.map((stored, at) => aPart(stored, at < shards.length - 1)),
}));

function aPart(stored: object, answers: boolean) {
  const answer = <T>(answered: T): T => {
    if (answers) return answered;
    throw new ExportError('state_locked', 'no process responds', { next: 'Repeat it.' });
  };
  const operator = {
    status: async () => stored,
    deadLetters: {
      async *move(_: string, named: readonly object[]) {
        yield answer({ named, moved: { siem: named.length }, stuck: {} });
      },
      add: async () => answer(2),
    },
    sinks: { remove: async () => answer(removed.pending) },
  };
  const state = { dir: '/nothing/here', kafka: null };
  return { config: { state, sinks: { siem: { settings: { type: 'http' } } } }, operator };
}

beforeEach(() => {
  shards.length = 0;
});

test.each([
  [['retry'], 'siem: 2 put back, to be sent again\n'],
  [['drop', '--yes'], `dropped 0 of siem: ${uids[0]}\ndropped 1 of siem: ${uids[1]}\n`],
  [['add', '--sink', 'siem', '--yes'], 'siem: 4 moved to the dead letters\n'],
])('dead-letters %s', async (words, stdout) => {
  for (const letter of letters) {
    shards.push({ sinks: ['siem'], deadLetters: [letter], missing: '' });
  }

  const ended = await runHere(['dead-letters', ...words, '-c', 'none.yaml']);

  expect(ended).toEqual({ exitCode: 1, stdout, stderr: expect.stringContaining('no process') });
});

test('sinks remove', async () => {
  for (let shard = 0; shard < 3; shard += 1) shards.push({ sinks: [removed], missing: '' });

  const ended = await runHere(['sinks', 'remove', 'gone', '--yes', '-c', 'none.yaml']);

  const stdout = 'gone: 10 events given up in 2 of 3 shards\n';
  expect(ended).toEqual({ exitCode: 1, stdout, stderr: expect.stringContaining('no process') });
});
