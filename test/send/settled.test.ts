// Events that a sink has settled while its position waits for others of their batch. A process that starts again does not
// send them again: a dead letter is not delivered too, nor one that an operator has put back or dropped meanwhile.

import { expect, test } from 'vitest';
import type { Event } from '../../src/contracts/event.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { changeState, lookInto, type Store } from '../../src/hold/store.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import {
  type Answerer,
  delivered,
  drained,
  idOf,
  numbers,
  scripted,
  senderOn,
} from './a-sender.ts';

const opened = (dir: string) =>
  openSpool({
    ...{ dir, sync: 'normal', keepMs: 0, sinks: ['s'], bytesMax: 1e9, eager: true },
    reserveBytesMax: 2 ** 20,
  });

/** Refuses event 1 and throttles event 2: the position stays before all of them. */
const waiting: Answerer = ({ events }) => ({
  outcome: 'partly',
  refused: events.filter(isId('1')).map(({ uid }) => ({ uid, reason: 'no', by: 'sink' })),
  again: events.filter(isId('2')).map(({ uid }) => uid),
});

function isId(id: string) {
  return (event: Event) => idOf(event) === id;
}

/** A process whose sink has refused event 1 and waits for event 2, until it ends. */
async function untilItWaits(dir: string): Promise<void> {
  const spool = await opened(dir);
  await spool.append(anAppend({ ids: numbers(4) }));
  const sender = senderOn(spool, scripted(waiting).sink);
  const [stop, kill] = [new AbortController(), new AbortController()];
  const ended = sender.run({ stop: stop.signal, kill: kill.signal });
  await waitUntil(() => lettersIn(dir) === 1, { what: 'the dead letter to be stored' });
  for (const end of [stop, kill]) end.abort(new Error('the process ends'));
  await ended;
  await spool.close();
}

/** The next process, whose receiver accepts everything. */
async function delivers(dir: string): Promise<readonly string[]> {
  const spool = await opened(dir);
  const { sink, taken } = scripted(() => delivered);
  const { position } = await spool.progress('s');
  await drained(spool, senderOn(spool, sink, { position }));
  await spool.close();
  return taken;
}

function lettersIn(dir: string): number {
  return lookInto(dir, 0, ({ deadLetters }) => deadLetters.list('s').length);
}

function changed(dir: string, change: (store: Store) => void): void {
  changeState({ dir, sync: 'none', keepMs: 0 }, (store) => store.transaction(() => change(store)));
}

test('a dead letter is not delivered too', async () => {
  const dir = tempDir();
  await untilItWaits(dir);

  expect(await delivers(dir)).toEqual(['0', '2', '3']);
  expect(lettersIn(dir)).toBe(1);
});

test('a dead letter that was put back is delivered once, from its new offset', async () => {
  const dir = tempDir();
  await untilItWaits(dir);
  changed(dir, (store) => {
    for (const letter of store.deadLetters.list('s')) store.putBack(letter, 1);
  });

  expect(await delivers(dir)).toEqual(['0', '2', '3', '1']);
  expect(lettersIn(dir)).toBe(0);
});

test('a dead letter that was dropped is delivered never', async () => {
  const dir = tempDir();
  await untilItWaits(dir);
  changed(dir, (store) => store.dropDeadLetters(store.deadLetters.list('s'), 1));

  expect(await delivers(dir)).toEqual(['0', '2', '3']);
});

test('another event at the offset of a dead letter is delivered', async () => {
  const dir = tempDir();
  await untilItWaits(dir);
  changed(dir, (store) => {
    const { context } = store.deadLetters.list('s')[0] ?? {};
    if (context === undefined) return;
    const foreign = { uid: 'ab'.repeat(32), offset: 3, reason: 'no', context };
    store.deadLetters.add('s', { ...foreign, record: Buffer.from('{}') }, 1);
  });

  expect(await delivers(dir)).toEqual(['0', '2', '3']);
});

test('another sink gets the event that one has refused', async () => {
  const dir = tempDir();
  await untilItWaits(dir);
  const spool = await opened(dir);

  const own = await spool.settledFrom('s', 0);
  const other = await spool.settledFrom('other', 0);
  const passed = await spool.settledFrom('s', 2);
  await spool.close();

  expect(own.map(({ offset }) => offset)).toEqual([1]);
  expect([other, passed]).toEqual([[], []]);
});

test('an event that is set aside while its position waits is sent once', async () => {
  const dir = tempDir();
  let spool = await opened(dir);
  await spool.append(anAppend({ ids: ['a0', 'b0', 'a1'] }));
  // b0 has a destination at fault, and a1 is throttled.
  const partly: Answerer = ({ events }) => ({
    outcome: 'partly',
    refused: events
      .filter(isId('b0'))
      .map(({ uid }) => ({ uid, reason: 'closed', by: 'destination' })),
    again: events.filter(isId('a1')).map(({ uid }) => uid),
  });
  const destinationOf = (event: Event) => idOf(event).charAt(0);
  const first = senderOn(spool, { ...scripted(partly).sink, destinationOf });
  const [stop, kill] = [new AbortController(), new AbortController()];
  const ended = first.run({ stop: stop.signal, kill: kill.signal });
  await waitUntil(() => first.state.setAside.length === 1, { what: 'b0 to be set aside' });
  for (const end of [stop, kill]) end.abort(new Error('the process ends'));
  await ended;
  await spool.close();

  spool = await opened(dir);
  const { sink, taken } = scripted(() => delivered);
  await drained(spool, senderOn(spool, { ...sink, destinationOf }));
  await spool.close();

  expect(taken.toSorted()).toEqual(['a0', 'a1', 'b0']);
});
