// What is learnt of a receiver: whether it answers our FIN, and how much it may be given before it has to.

import { describe, expect, test } from 'vitest';
import { Habit } from '../../../connectors/sinks/syslog/habit.ts';
import { silent } from '../../support/silent-log.ts';

const stallMs = 30_000;

function habit(confirm: 'auto' | 'close' | 'window' = 'auto') {
  const warnings: string[] = [];
  const log = { ...silent, warn: (text: string) => warnings.push(text) };
  return { habit: new Habit({ confirm, windowMs: 2_000, stallMs }, log), warnings };
}

describe('with confirm: auto', () => {
  test('a receiver must confirm until it has been silent for long, which is reported once', () => {
    const { habit: receiver, warnings } = habit();
    const before = [receiver.settlesBy, receiver.notice];
    const patient = receiver.answerMsMax;

    const fates = [receiver.unanswered(), receiver.unanswered()];

    expect(before).toEqual(['close', null]);
    expect(patient).toBeGreaterThan(stallMs);
    expect(fates).toEqual(['delivered', 'delivered']);
    expect(receiver.settlesBy).toBe('window');
    expect(receiver.notice?.what).toContain('does not close');
    expect(warnings).toHaveLength(1);
  });

  test('one that has answered once hangs when it does not answer', () => {
    const { habit: receiver, warnings } = habit();
    receiver.answered(5, 100);

    const fates = Array.from({ length: 20 }, () => receiver.unanswered());

    expect(new Set(fates)).toEqual(new Set(['retry']));
    expect(receiver.settlesBy).toBe('close');
    expect(warnings).toEqual([]);
  });

  test('one that resets each connection at our FIN is one that never answers', () => {
    const { habit: receiver } = habit();

    receiver.broke(10);
    receiver.broke(20_000); // a failure, and no habit
    receiver.broke(10);
    receiver.broke(10);
    const early = receiver.settlesBy;
    receiver.broke(10);

    expect([early, receiver.settlesBy]).toEqual(['close', 'window']);
  });

  test('one that counted as silent is tried again each hour, and believed', () => {
    const { habit: receiver } = habit();
    const before = receiver.ageMsMax;
    receiver.unanswered();

    const silent = receiver.ageMsMax;
    receiver.answered(5, 100);

    expect([before, silent]).toEqual([Number.POSITIVE_INFINITY, 3_600_000]);
    expect([receiver.settlesBy, receiver.notice]).toEqual(['close', null]);
  });
});

test('with confirm: close a receiver that does not answer is never believed', () => {
  const { habit: receiver } = habit('close');

  receiver.broke(1);
  receiver.broke(1);
  receiver.broke(1);

  expect(receiver.unanswered()).toBe('retry');
  expect(receiver.settlesBy).toBe('close');
});

test('a connection may carry more where answers come fast, less where they come late', () => {
  const { habit: receiver } = habit();
  const first = receiver.bytesMax;

  for (let i = 0; i < 30; i++) receiver.answered(5, receiver.bytesMax);
  const most = receiver.bytesMax;
  receiver.answered(5, 1_000);
  const same = receiver.bytesMax;
  for (let i = 0; i < 30; i++) receiver.answered(stallMs / 2, receiver.bytesMax);

  expect(most).toBeGreaterThan(first * 100);
  expect(same).toBe(most);
  expect(receiver.bytesMax).toBeLessThan(first);
});

test('after a fast answer a connection may carry more, but no more than can be read in time', () => {
  const { habit: receiver } = habit();
  const first = receiver.bytesMax;
  const fastMs = stallMs / 8 - 1;

  receiver.answered(fastMs, first);
  const times = receiver.bytesMax / first;

  expect(times).toBe(4); // a few connections at the start, and not one for each doubling
  expect(times * fastMs).toBeLessThan(stallMs);
});
