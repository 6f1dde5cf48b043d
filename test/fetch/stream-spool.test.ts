// One stream's spool: what is added to an entry before it is stored, and who waits for room of a pair. The parts are tested
// by themselves: pairs in test/hold and test/succession, parents in test/parents, responses in answers.test.ts.

import { expect, test } from 'vitest';
import type { ListStream } from '../../src/contracts/source.ts';
import type { Append, FetchSpool, PairStore } from '../../src/contracts/spool.ts';
import { StreamSpool } from '../../src/fetch/stream-spool.ts';
import { pairingsOf, sideIn } from '../../src/succession/pairing.ts';
import { aPage } from '../support/a-page.ts';
import { madeUpList } from '../support/made-up-list.ts';

const succeeds = { source: 'old', fields: {}, ignore: [], overlapMs: 0, patienceMs: 0 };
const pairings = pairingsOf([
  { name: 'old', streams: [aStream('old')] },
  { name: 'new', streams: [aStream('new')], succeeds },
]);

function aStream(source: string): ListStream {
  const list = madeUpList(() => Promise.reject(new Error('not polled')));
  return { ...list, name: source, source };
}

/** The spool of a stream, with what is called; `isCutOver`: the successor delivers. */
function spoolOf(source: string, isCutOver: boolean) {
  const called: string[] = [];
  const stored: Append[] = [];
  const pairs = {
    isCutOver: () => isCutOver,
    room: async () => void called.push('room of the pair'),
  } as unknown as PairStore;
  const spool = { pairs, room: async () => void called.push('room') } as unknown as FetchSpool;
  const responses = {
    stream: aStream(source),
    append: async (entry: Append) => stored.push(entry),
    rewinds: () => undefined,
  };
  const parents = [{ stream: 'children', id: 'p', as: 'noticed' }] as const;
  const feed = { withParents: (entry: Append) => ({ ...entry, parents }) };
  const sideOf = (name: string) => sideIn(pairings, name);
  return { spool: new StreamSpool(responses, { spool, feed, sideOf }), called, stored };
}

test.each([
  ['old', false, ['room']],
  ['old', true, ['room of the pair', 'room']],
  ['new', false, ['room of the pair', 'room']],
  ['new', true, ['room']],
  ['other', false, ['room']],
])(
  'a page of the source "%s" waits for its pair only if it is not delivered (cut over: %s)',
  async (source, isCutOver, expected) => {
    const { spool, called } = spoolOf(source, isCutOver);

    await spool.room(new AbortController().signal);

    expect(called).toEqual(expected);
  },
);

test('an entry is stored with the compared parts of its records, and with the parents found in it', async () => {
  const { spool, stored } = spoolOf('old', false);
  const page = aPage({ ids: ['1'] });

  await spool.append({ stream: 'old', pages: [page] });

  const [{ pages: [first] = [], parents } = {}] = stored;
  expect(first?.pair).toMatchObject({ pair: 'new', side: 'old' });
  expect(parents).toEqual([{ stream: 'children', id: 'p', as: 'noticed' }]);
});
