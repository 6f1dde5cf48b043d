// A sink's position on its way to disk, with a disk that the test controls: no unsettled event is written, no settled
// one is forgotten when a write fails, and closing ends also if the disk never recovers.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Acknowledgement, DeadLetter, Spool } from '../../src/contracts/spool.ts';
import { Position } from '../../src/send/position.ts';
import { anEvent } from '../support/an-event.ts';
import { manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';

const full = new ExportError('disk_full', 'testing: no room', { next: 'nothing' });

/** A position over a disk whose n-th write goes as `write` says. */
function positionOn(write: (turn: number) => Promise<void> | void, at = 0) {
  const clock = manualClock();
  const lines: unknown[] = [];
  const log = {
    ...silent,
    warn: (event: string, _: string, fields?: object) => void lines.push({ event, ...fields }),
  };
  const tried: Acknowledgement[] = [];
  const written: Acknowledgement[] = [];
  const noted: number[] = [];
  const spool = {
    reached: (_sink: string, position: number) => void noted.push(position),
    acknowledge: async (_sink: string, step: Acknowledgement) => {
      tried.push(step);
      await write(tried.length);
      written.push(step);
    },
  } as Pick<Spool, 'reached' | 'acknowledge'> as Spool;
  const position = new Position('s', at, { spool, clock, log });
  return { position, clock, tried, written, noted, lines };
}

function deadLetter(n: number): DeadLetter {
  const { uid, context, raw } = anEvent({ offset: n });
  return { uid, offset: n, reason: `reason ${n}`, context, record: raw };
}

test('Position moves at once and shares a write among steps taken together', async () => {
  const { position, written } = positionOn(() => undefined);

  position.advance(3);
  position.advance(7);
  const at = position.at;
  await position.saved();

  expect(at).toBe(7);
  expect(written).toEqual([{ position: 7 }]);
});

test('Position reports a write that fails, with the next step, and tries again', async () => {
  const { position, clock, written, lines } = positionOn((turn) => {
    if (turn === 1) throw full;
  });

  position.advance(3);
  await clock.advance(1_000);
  await position.saved();

  expect(lines).toEqual([
    { event: 'position_save_failed', error: 'testing: no room', next: 'nothing' },
  ]);
  expect(written).toEqual([{ position: 3 }]);
});

test('Position notes each step before the next is taken, but none past a dead letter that is not saved', async () => {
  const gate = Promise.withResolvers<void>();
  const { position, noted } = positionOn((turn) => (turn === 2 ? gate.promise : undefined));

  position.advance(1);
  const atOnce = [...noted];
  await position.saved();
  position.advance(2, { deadLetters: [deadLetter(1)] });
  position.advance(3);
  const whileUnsaved = noted.at(-1);
  gate.resolve();
  await position.saved();

  expect(atOnce).toEqual([1]);
  expect(whileUnsaved).toBe(1);
  expect(noted.at(-1)).toBe(3);
});

test('Position writes once more for events settled while a write was under way', async () => {
  const gate = Promise.withResolvers<void>();
  const { position, clock, written } = positionOn((turn) =>
    turn === 1 ? gate.promise : undefined,
  );
  position.advance(1);
  await clock.settle();

  position.advance(2);
  position.advance(3);
  gate.resolve();
  await position.saved();

  expect(written).toEqual([{ position: 1 }, { position: 3 }]);
});

test('Position never goes back', async () => {
  const { position, written } = positionOn(() => undefined, 5);

  position.advance(2);
  await position.saved();

  expect(position.at).toBe(5);
  expect(written).toEqual([{ position: 5 }]);
});

test('Position retries a failing disk each second, with all dead letters, the last mark and the newest offset', async () => {
  const { position, clock, tried, written } = positionOn((turn) => {
    if (turn <= 2) throw full;
  });
  position.advance(1, { deadLetters: [deadLetter(0)], mark: { bytes: 10 } });
  await clock.settle();

  position.advance(2, { deadLetters: [deadLetter(1)] });
  await clock.advance(1_000);
  position.advance(3, { mark: { bytes: 30 } });
  const before = written.length;
  await clock.advance(1_000);
  await position.saved();

  expect(before).toBe(0);
  expect(tried).toHaveLength(3);
  expect(written).toEqual([
    { position: 3, mark: { bytes: 30 }, deadLetters: [deadLetter(0), deadLetter(1)] },
  ]);
});

test('Position is saved only after the settled events are written', async () => {
  const { position, clock } = positionOn((turn) => {
    if (turn === 1) throw full;
  });
  let saved = false;
  position.advance(1);
  const saving = position.saved().then(() => {
    saved = true;
  });

  await clock.advance(999);
  const early = saved;
  await clock.advance(1);
  await saving;

  expect([early, saved]).toEqual([false, true]);
});

test('Position gives up on a disk that never recovers when it is abandoned, after one more try', async () => {
  const { position, clock, tried } = positionOn(() => {
    throw full;
  });
  position.advance(1);
  await clock.advance(3_000);
  const before = tried.length;

  position.abandon();
  await position.saved();

  expect(tried.length).toBe(before + 1);
  expect(clock.sleepers).toBe(0);
});

test('Position that is abandoned still writes as far as the disk permits', async () => {
  const { position, written } = positionOn(() => undefined);

  position.abandon();
  position.advance(4);
  await position.saved();

  expect(written).toEqual([{ position: 4 }]);
});

test('Position writes each dead letter once and never an offset that was not settled, whatever fails when', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.boolean(), { maxLength: 10 }),
      fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 10 }),
      async (failures, pauses) => {
        const { position, clock, written } = positionOn((turn) => {
          if (failures[turn - 1] === true) throw full;
        });
        const settled: number[] = [0];
        for (const [n, pause] of pauses.entries()) {
          position.advance(n + 1, { deadLetters: [deadLetter(n)], mark: n });
          settled.push(n + 1);
          await clock.advance(pause * 500);
          expect(settled).toContain(written.at(-1)?.position ?? 0);
        }
        await clock.advance(20_000);
        await position.saved();

        const letters = written.flatMap(({ deadLetters = [] }) => deadLetters);
        expect(letters.map(({ offset }) => offset)).toEqual(pauses.map((_, n) => n));
        expect(written.at(-1)).toMatchObject({ position: pauses.length, mark: pauses.length - 1 });
        // No dead letter is written before the offset that passes it.
        for (const { position: at, deadLetters = [] } of written) {
          expect(deadLetters.every(({ offset }) => offset < at)).toBe(true);
        }
      },
    ),
    { numRuns: 100 },
  );
});
