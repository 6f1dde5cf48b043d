// How far a sink's position is believed: as far as this state assigned the numbers, and no further.

import { expect, test } from 'vitest';
import { reachOf } from '../../src/contracts/numbering.ts';
import { epochsFrom, nextEpoch } from '../../src/hold/epochs.ts';

const spool = 's';
/** Copied at 300 in epoch 7 and put back: 8 was begun by the state that is lost, 11 by this one. */
const numbering = {
  spool,
  epochs: [
    { id: 5, until: 100 },
    { id: 7, until: 300 },
    { id: 11, until: null },
  ],
};

test.each([
  { epoch: 11, next: 700, position: 700, ahead: false },
  { epoch: 7, next: 250, position: 250, ahead: false },
  { epoch: 7, next: 300, position: 300, ahead: false },
  { epoch: 7, next: 450, position: 300, ahead: true },
  { epoch: 8, next: 600, position: 300, ahead: true },
  { epoch: 8, next: 280, position: 280, ahead: false },
  { epoch: 6, next: 150, position: 100, ahead: true },
  { epoch: 3, next: 10, position: 0, ahead: true },
  { epoch: 12, next: 350, position: 0, ahead: true },
])('reachOf believes $next of epoch $epoch up to $position', ({ epoch, next, ...reach }) => {
  expect(reachOf({ spool, epoch, next }, numbering)).toEqual(reach);
});

test('reachOf believes nothing that another spool numbered', () => {
  const reach = reachOf({ spool: 'other', epoch: 7, next: 250 }, numbering);

  expect(reach).toEqual({ position: 0, ahead: true });
});

test('nextEpoch ends the last at the stored end, leaves out empty ones, and never goes back in time', () => {
  const first = nextEpoch(epochsFrom(null), 0, 5);
  const second = nextEpoch(first, 100, 7);
  const third = nextEpoch(second, 100, 7);
  const fourth = nextEpoch(third, 300, 2);

  expect(second).toEqual([
    { id: 5, until: 100 },
    { id: 7, until: null },
  ]);
  expect(third).toEqual([
    { id: 5, until: 100 },
    { id: 8, until: null },
  ]);
  expect(fourth).toEqual([
    { id: 5, until: 100 },
    { id: 8, until: 300 },
    { id: 9, until: null },
  ]);
});

test('nextEpoch gives the numbers of before there were epochs one of their own', () => {
  expect(nextEpoch(epochsFrom(null), 40, 7)).toEqual([
    { id: 0, until: 40 },
    { id: 7, until: null },
  ]);
});
