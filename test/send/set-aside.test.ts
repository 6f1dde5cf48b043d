// One destination of a sink refuses all of its events while others accept: its events are set aside durably and in order,
// hold no other, and are delivered in order once it accepts; one bad event among them becomes a dead letter.

import { expect, test } from 'vitest';
import type { Event } from '../../src/contracts/event.ts';
import type { Delivery } from '../../src/contracts/sink.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { Lanes } from '../../src/send/lanes.ts';
import { anAppend } from '../support/a-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { idOf, scripted, senderOn } from './a-sender.ts';

/** Each event by itself, as `_bulk` does: the first character of its id is its index. */
function perEvent(refuses: (event: Event) => false | 'receiver' | 'destination') {
  return ({ events }: { readonly events: readonly Event[] }): Delivery => {
    const refused = events.flatMap((event) => {
      const by = refuses(event);
      return by === false ? [] : [{ uid: event.uid, reason: `no to ${idOf(event)}`, by }];
    });
    return refused.length === 0
      ? { outcome: 'delivered' }
      : { outcome: 'partly', refused, again: [] };
  };
}

const indexOf = (event: Event) => idOf(event).charAt(0);

function opened(dir = tempDir()) {
  return openSpool({
    ...{ dir, sync: 'normal', keepMs: 0, sinks: ['s'], bytesMax: 1e9, eager: true },
    reserveBytesMax: 2 ** 20,
  });
}

function running(sender: ReturnType<typeof senderOn>) {
  const stop = new AbortController();
  const kill = new AbortController();
  const ended = sender.run({ stop: stop.signal, kill: kill.signal });
  ended.catch(() => undefined);
  return async () => {
    stop.abort(new Error('enough'));
    await ended;
  };
}

test.each([1, 4])(
  'a destination at fault delays only its own events, also over a restart (in flight: %i)',
  async (inFlightMax) => {
    const dir = tempDir();
    let spool = await opened(dir);
    let [isClosed, mayOpen] = [true, false];
    // It opens when a probe sends the first event: the probe after it would send the next one.
    const { sink, taken } = scripted(
      perEvent((event) => {
        if (mayOpen && idOf(event) === 'b0') isClosed = false;
        return isClosed && indexOf(event) === 'b' && 'destination';
      }),
    );
    const withIndex = { ...sink, destinationOf: indexOf };
    await spool.append(anAppend({ ids: ['a0', 'b0', 'a1', 'b1', 'b2'] }));
    const first = senderOn(spool, withIndex, { inFlightMax });
    const end = running(first);
    await waitUntil(() => first.state.position === 5, { what: 'the others to be delivered' });
    await spool.append(anAppend({ ids: ['b3', 'a2'] }));
    await waitUntil(() => first.state.position === 7, { what: 'later ones to follow' });
    const { setAside, deadLetters, error } = first.state;
    const bytes = spool.gauge.bytes;
    await end();
    await spool.close();

    spool = await opened(dir);
    const { position } = await spool.progress('s');
    const second = senderOn(spool, withIndex, { inFlightMax, position });
    const endSecond = running(second);
    await waitUntil(() => second.state.setAside.length === 1, { what: 'the events set aside' });
    await spool.append(anAppend({ ids: ['b4', 'a3'] }));
    await waitUntil(() => second.state.position === 9, { what: 'a2 to be passed' });
    mayOpen = true;
    await waitUntil(() => second.state.setAside.length === 0, { what: 'all to be delivered' });
    await endSecond();
    const left = await spool.aside?.destinations('s');
    await spool.close();

    expect(setAside).toMatchObject([{ destination: 'b', events: 4 }]);
    expect([deadLetters, error, position]).toEqual([0, null, 7]);
    expect(bytes).toBeGreaterThan(4 * 500);
    expect(taken.filter((id) => id.startsWith('a'))).toEqual(['a0', 'a1', 'a2', 'a3']);
    expect(taken.filter((id) => id.startsWith('b'))).toEqual(['b0', 'b1', 'b2', 'b3', 'b4']);
    expect(left).toEqual([]);
    expect(second.state.deadLetters).toBe(0);
  },
);

test('a bad event that was set aside becomes a dead letter once its destination accepts another', async () => {
  const spool = await opened();
  const { sink, taken } = scripted(perEvent((event) => idOf(event) === 'b0' && 'receiver'));
  await spool.append(anAppend({ ids: ['a0', 'b0', 'a1'] }));
  const sender = senderOn(spool, { ...sink, destinationOf: indexOf });
  const end = running(sender);
  await waitUntil(() => sender.state.setAside.length === 1 && sender.state.position === 3, {
    what: 'b0 to be set aside',
  });
  const { deadLetters } = sender.state;

  await spool.append(anAppend({ ids: ['b1', 'b2'] }));
  await waitUntil(() => sender.state.setAside.length === 0, { what: 'b to accept' });
  await end();
  await spool.close();

  expect(deadLetters).toBe(0);
  expect(taken.toSorted()).toEqual(['a0', 'a1', 'b1', 'b2']);
  expect(sender.state.deadLetters).toBe(1);
});

test('a destination at fault at the head is found by a probe of another one', async () => {
  const spool = await opened();
  let [isClosed, mayOpen] = [true, false];
  // One answer for the whole request, as an HTTP Event Collector gives it.
  const { sink, taken, batches } = scripted(({ events }) => {
    if (mayOpen && events.some((event) => idOf(event) === 'b0')) isClosed = false;
    return isClosed && events.some((event) => indexOf(event) === 'b')
      ? {
          ...{ outcome: 'refused', scope: 'batch', by: 'destination' },
          cause: Object.assign(new Error('index b'), { code: 'record_refused' }) as never,
        }
      : { outcome: 'delivered' };
  });
  await spool.append(anAppend({ ids: ['b0', 'b1', 'b2'] }));
  await spool.append(anAppend({ stream: 'other', source: 'other', ids: ['a0', 'a1'] }));
  const sender = senderOn(spool, { ...sink, destinationOf: indexOf });
  const end = running(sender);
  await waitUntil(() => sender.state.position === 5, {
    what: () => `the others to be delivered: ${JSON.stringify(sender.state)}`,
  });
  const probed = batches.length;
  await waitUntil(() => batches.length >= probed + 4, { what: 'several probes' });
  // A fault of the destination blames no event, so a probe sends no later one, which could overtake.
  const probes = batches.slice(probed, probed + 4).map(({ events }) => events.map(idOf));
  mayOpen = true;
  await waitUntil(() => sender.state.setAside.length === 0, { what: 'b to accept' });
  await end();
  await spool.close();

  expect(probes).toEqual([['b0'], ['b0'], ['b0'], ['b0']]);
  expect(taken.toSorted()).toEqual(['a0', 'a1', 'b0', 'b1', 'b2']);
  expect(taken.filter((id) => id.startsWith('b'))).toEqual(['b0', 'b1', 'b2']);
  expect(sender.state.deadLetters).toBe(0);
});

const [destinationOf, committed] = [() => 'a', async () => null];

test.each([
  ['has no destinations', {}, false],
  ['has destinations', { destinationOf }, true],
  ['commits one position with the events of all destinations', { destinationOf, committed }, false],
  ['has a position for each', { destinationOf, committed, hasPositions: true }, true],
])('events can be set aside if and only if the sink allows it: it %s', (_, sink, canSetAside) => {
  expect(new Lanes({ sink } as never).canSetAside).toBe(canSetAside);
});
