// Dead letters that a process stores again after a kill: its position waited for other events of the batch.

import { expect, test } from 'vitest';
import { Store } from '../../src/hold/store.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

const { context } = aPage({ ids: [] });
const refused = (offset: number, uid: string) => ({
  ...{ uid, offset, reason: 'no', context },
  record: Buffer.from('{}'),
});

/** A process that stores dead letters of the sink `a`, until it is killed. */
function stored(dir: string, position: number, letters: readonly ReturnType<typeof refused>[]) {
  using store = new Store({ dir, sync: 'none', keepMs: 0 });
  store.transaction(() => store.acknowledge('a', { position, deadLetters: letters }, 1));
  return store.deadLetters.list('a').map(({ offset, uid }) => `${offset} ${uid}`);
}

test('an event that is refused again after a kill is one dead letter', () => {
  const dir = tempDir();

  const before = stored(dir, 1, [refused(3, 'x'), refused(5, 'y')]);
  const after = stored(dir, 6, [refused(3, 'x'), refused(4, 'z'), refused(5, 'y')]);

  expect(before).toEqual(['3 x', '5 y']);
  expect(after).toEqual(['3 x', '5 y', '4 z']);
});

test('an event that is stored and refused once more is another dead letter', () => {
  const dir = tempDir();
  stored(dir, 1, [refused(3, 'x')]);

  expect(stored(dir, 9, [refused(8, 'x'), refused(3, 'other')])).toEqual(['3 x', '8 x', '3 other']);
});
