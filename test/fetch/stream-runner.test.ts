// The loop of one stream, by a clock that stands still: how long it waits after each kind of poll, that it never polls
// twice at a time, and that nothing makes it a hot loop.

import { expect, test } from 'vitest';
import type { Failure } from '../../src/contracts/answer.ts';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Schedule } from '../../src/contracts/index.ts';
import type { Json } from '../../src/contracts/json.ts';
import { Alarms } from '../../src/fetch/alarms.ts';
import { StreamRunner } from '../../src/fetch/stream-runner.ts';
import { Turns } from '../../src/fetch/turns.ts';
import type { PollResult } from '../../src/poll/outcome.ts';
import { timetable } from '../../src/poll/schedule.ts';
import { aCollection, firewallStream, quickly, standingSandbox } from '../list/reading.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest } from '../support/temp.ts';

const cause = new ExportError('upstream_unreachable', 'testing: scripted', { next: 'nothing' });
const done: PollResult = { outcome: 'done', fresh: 1, more: false };
const haltedFor = (ms: number): Failure => ({
  ...{ outcome: 'refused', isDefinite: true, cause },
  wait: { ms },
});
const days30Ms = 30 * 24 * 3_600_000;

type Poll = (turn: number, signal: AbortSignal) => PollResult | Promise<PollResult>;

/** A runner on a manual clock, whose n-th poll ends as `answer` says. */
function runnerWith(
  answer: Poll,
  more: {
    schedule?: Schedule;
    jitterMs?: number;
    turns?: Turns;
    clock?: ManualClock;
    /** Called when a poll has ended. */
    noted?: () => void;
  } = {},
) {
  const clock = more.clock ?? manualClock();
  const lines: unknown[] = [];
  const write = (_event: string, _text: string, fields?: object) => lines.push(fields);
  const polledAt: number[] = [];
  const notes: Json[] = [];
  const reached: number[] = [];
  const runner = new StreamRunner({
    name: 'audit',
    source: 'audit',
    poll: async (signal) => {
      polledAt.push(clock.monotonic());
      return answer(polledAt.length, signal);
    },
    timetable: timetable(more.schedule ?? { everyMs: 30_000 }, clock),
    turns: more.turns ?? new Turns(4),
    clock,
    alarms: new Alarms(clock),
    log: { ...silent, warn: write, error: write },
    random: () => 1,
    jitterMs: more.jitterMs ?? 0,
    note: (facts) => {
      notes.push(facts);
      more.noted?.();
    },
    reached: (at) => reached.push(at),
  });
  const stop = new AbortController();
  const start = () => {
    const { promise: failed, reject } = Promise.withResolvers<never>();
    runner.start(reject);
    const stopped = new Promise<void>((resolve) => {
      stop.signal.addEventListener('abort', () => runner.stop(stop.signal.reason).then(resolve));
    });
    afterThisTest(async () => {
      stop.abort(new Error('the test is over'));
      await stopped;
    });
    return Promise.race([failed, stopped]);
  };
  return { runner, clock, polledAt, notes, reached, lines, stop, start };
}

test('StreamRunner polls at its interval, counted from the beginning of a poll, after its jitter', async () => {
  const { clock, polledAt, start } = runnerWith(() => done, { jitterMs: 400 });
  void start();

  await clock.advance(100_000);

  expect(polledAt).toEqual([400, 30_400, 60_400, 90_400]);
});

test('A54: StreamRunner polls once at a time and skips the times that a long poll missed', async () => {
  let inside = 0;
  let most = 0;
  const { clock, runner, polledAt, start } = runnerWith(async (turn) => {
    inside += 1;
    most = Math.max(most, inside);
    if (turn === 1) await clock.sleep(95_000);
    inside -= 1;
    return done;
  });
  void start();

  await clock.advance(120_000);

  expect(most).toBe(1);
  expect(polledAt).toEqual([0, 95_100]);
  expect(runner.state.skipped).toBe(3);
});

test('StreamRunner waits as long as upstream says, thirty days if need be', async () => {
  const { clock, polledAt, start } = runnerWith((turn) =>
    turn === 1 ? { outcome: 'retry', wait: { ms: days30Ms }, cause } : done,
  );
  void start();
  await clock.advance(0);

  const waits = clock.nextInMs;
  await clock.advance(days30Ms - 1);
  const before = polledAt.length;
  await clock.advance(1);

  expect(waits).toBe(days30Ms);
  expect([before, polledAt.length]).toEqual([1, 2]);
});

test('StreamRunner waits ever longer without a wait from upstream, and restarts its waits after a success', async () => {
  const { clock, polledAt, start } = runnerWith((turn) =>
    turn === 5 ? done : { outcome: 'retry', cause },
  );
  void start();

  for (let i = 0; i < 6; i += 1) await clock.advanceToNext();

  const waits = polledAt.slice(1).map((at, i) => at - (polledAt[i] ?? 0));
  expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 30_000]);
});

test('StreamRunner waits ever longer where upstream says again and again that no wait is needed', async () => {
  const { clock, start } = runnerWith(() => ({ outcome: 'retry', wait: { ms: 0 }, cause }));
  void start();
  await clock.advance(0);

  const waits: (number | null)[] = [];
  for (let i = 0; i < 4; i += 1) waits.push(await clock.advanceToNext());

  expect(waits).toEqual([2_000, 4_000, 8_000, 16_000]);
});

test('StreamRunner polls a halted stream again after its long wait', async () => {
  const { clock, runner, polledAt, start } = runnerWith((turn) =>
    turn === 1 ? haltedFor(3_600_000) : done,
  );
  void start();
  await clock.advance(0);

  const halted = runner.state;
  await clock.advance(3_600_000);

  expect(halted).toMatchObject({ state: 'halted', error: cause, caughtUpAt: null });
  expect(polledAt).toEqual([0, 3_600_000]);
  expect(runner.state).toMatchObject({ state: 'waiting', error: null, records: 1 });
});

test('StreamRunner restarts its waits if a failed poll has stored a page', async () => {
  const { clock, polledAt, start } = runnerWith((turn) => ({
    ...{ outcome: 'retry', cause, advanced: turn % 3 === 0 },
  }));
  void start();

  for (let i = 0; i < 8; i += 1) await clock.advanceToNext();

  const waits = polledAt.slice(1).map((at, i) => at - (polledAt[i] ?? 0));
  expect(waits).toEqual([2_000, 4_000, 2_000, 4_000, 8_000, 2_000, 4_000]);
});

test('StreamRunner waits at most half a minute if its polls end on a full disk', async () => {
  const full = new ExportError('disk_full', 'testing: scripted', { next: 'nothing' });
  const { clock, polledAt, start } = runnerWith(() => ({ outcome: 'retry', cause: full }));
  void start();

  for (let i = 0; i < 7; i += 1) await clock.advanceToNext();

  const waits = polledAt.slice(1).map((at, i) => at - (polledAt[i] ?? 0));
  expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test.for([
  { outcome: 'refused', mostMs: 3_600_000 },
  { outcome: 'denied', mostMs: 900_000 },
] as const)(
  'StreamRunner halts a stream only once it has been $outcome for long, and waits no longer than that',
  async ({ outcome, mostMs }) => {
    const { clock, polledAt, runner, start } = runnerWith(() => ({ outcome, cause }));
    void start();
    await clock.advance(0);

    const states: [number, string][] = [];
    for (let i = 0; i < 16; i += 1) {
      states.push([clock.monotonic() / 1_000, runner.state.state]);
      await clock.advanceToNext();
    }

    expect(states.slice(0, 4)).toEqual([
      [0, 'retrying'],
      [2, 'retrying'],
      [4, 'retrying'],
      [8, 'halted'],
    ]);
    const waits = polledAt.slice(1).map((at, i) => [at - (polledAt[i] ?? 0), polledAt[i] ?? 0]);
    expect(waits.every(([wait = 0, lasted = 0]) => wait <= Math.max(2_000, lasted))).toBe(true);
    expect(waits.at(-1)?.[0]).toBe(mostMs);
  },
);

test('StreamRunner cuts a wait short at its operator’s request, but not one that upstream requested', async () => {
  const cut: string[] = [];
  const results: PollResult[] = [
    done,
    { outcome: 'retry', cause },
    { ...haltedFor(60_000), wait: { ms: 60_000, cut: () => cut.push('cut') } },
    { outcome: 'retry', wait: { ms: 60_000 }, cause },
  ];
  const { clock, polledAt, runner, start } = runnerWith((turn) => results[turn - 1] ?? done);
  void start();
  await clock.advance(0);

  for (let n = 0; n < 5; n += 1) {
    await clock.advance(10);
    runner.retryNow();
    await clock.settle();
  }

  expect(polledAt).toEqual([0, 10, 20, 30]);
  expect(cut).toEqual(['cut']);
});

test('StreamRunner polls again at once if its operator requests it in the middle of a poll', async () => {
  const { clock, polledAt, runner, start } = runnerWith(async (turn) => {
    if (turn <= 2) runner.retryNow();
    return turn === 1 ? done : { outcome: 'retry', wait: { ms: 60_000 }, cause };
  });
  void start();

  await clock.advance(10);

  // The second time upstream has requested the wait.
  expect(polledAt).toEqual([0, 0]);
});

test('StreamRunner polls as soon as a rejected setting is corrected', async () => {
  const repaired = Promise.withResolvers<void>();
  const wait = { ms: 60_000, repaired: () => repaired.promise };
  const { clock, polledAt, start } = runnerWith((turn) =>
    turn === 1 ? { ...haltedFor(60_000), wait } : done,
  );
  void start();
  await clock.advance(700);

  repaired.resolve();
  await clock.settle();

  expect(polledAt).toEqual([0, 700]);
});

test('StreamRunner breaks a poll off for work that wants nothing under way, and polls after it', async () => {
  let underWay = 0;
  const { clock, polledAt, runner, start } = runnerWith(async (turn, signal) => {
    if (turn > 1) return done;
    underWay += 1;
    await clock.sleep(50_000, signal).finally(() => (underWay -= 1));
    return done;
  });
  void start();
  await clock.advance(100);

  const seen: number[] = [];
  const work = async () => seen.push(underWay);
  const answers = await Promise.all([runner.whileStill(work), runner.whileStill(work)]);
  await clock.settle();
  await clock.advance(100);
  answers.push(await runner.whileStill(work));
  await clock.advance(0);

  expect([seen, answers]).toEqual([
    [0, 0, 0],
    [1, 2, 3],
  ]);
  expect(polledAt).toEqual([0, 100, 200]);
});

test('StreamRunner continues at once while there is more to read, unless a poll brings nothing', async () => {
  const more = (fresh: number): PollResult => ({ outcome: 'done', fresh, more: true });
  const { clock, polledAt, start } = runnerWith((turn) => more(turn <= 3 ? 5 : 0));
  void start();

  for (let i = 0; i < 7; i += 1) await clock.advanceToNext();

  const waits = polledAt.slice(1).map((at, i) => at - (polledAt[i] ?? 0));
  expect(waits.slice(0, 6)).toEqual([0, 0, 0, 2_000, 4_000, 8_000]);
});

test('StreamRunner takes a fault of ours for a failure of this stream alone', async () => {
  const { clock, runner, polledAt, start } = runnerWith((turn) => {
    if (turn === 1) throw new TypeError('x is not a function');
    return done;
  });
  void start();
  await clock.advance(0);

  const failed = runner.state;
  await clock.advance(2_000);

  expect(failed).toMatchObject({ state: 'retrying', error: { code: 'broken_invariant' } });
  expect(polledAt).toEqual([0, 2_000]);
  expect(runner.state.error).toBeNull();
});

test('StreamRunner ends promptly when stopped while it sleeps, polls or waits for its turn', async () => {
  const asleep = runnerWith(() => done);
  const polling = runnerWith(
    (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  const turns = new Turns(1);
  await turns.take(new AbortController().signal);
  const queued = runnerWith(() => done, { turns });

  for (const { clock, stop, start, runner } of [asleep, polling, queued]) {
    const running = start();
    await clock.advance(10);
    stop.abort(new Error('stopping'));
    await expect(running).resolves.toBeUndefined();
    expect(runner.state.error).toBeNull();
  }
});

test('StreamRunner gives its turn back after any poll', async () => {
  const turns = new Turns(1);
  const { clock, start } = runnerWith(
    (turn) => {
      if (turn === 1) throw new Error('fault');
      return turn === 2 ? haltedFor(5_000) : done;
    },
    { turns },
  );
  void start();
  for (let i = 0; i < 4; i += 1) await clock.advanceToNext();

  (await turns.take(new AbortController().signal))();
});

test('StreamRunner reads once up to the tail, over failures that pass', async () => {
  const results: PollResult[] = [
    { outcome: 'done', fresh: 5, more: true },
    { outcome: 'retry', wait: { ms: 7_000 }, cause },
    { outcome: 'done', fresh: 2, more: false },
  ];
  const { clock, runner, polledAt } = runnerWith((turn) => results[turn - 1] ?? done);

  const ending = runner.runOnce(new AbortController().signal);
  await clock.advance(7_000);

  expect(await ending).toBeNull();
  expect(polledAt).toEqual([0, 0, 7_000]);
  expect(runner.state).toMatchObject({ records: 7, polls: 3, error: null });
});

test('StreamRunner looks a second time when requested, without keeping its turn meanwhile', async () => {
  const turns = new Turns(1);
  const { clock, polledAt, start } = runnerWith(
    (turn) => (turn === 1 ? { ...done, againMs: 45_000 } : done),
    { turns },
  );
  void start();
  await clock.advance(0);

  (await turns.take(new AbortController().signal))();
  await clock.advance(80_000);

  expect(polledAt).toEqual([0, 45_000, 75_000]);
});

test('StreamRunner looks a second time also where it reads once', async () => {
  const { clock, runner, polledAt } = runnerWith((turn) =>
    turn === 1 ? { ...done, againMs: 45_000 } : done,
  );

  const ending = runner.runOnce(new AbortController().signal);
  await clock.advance(45_000);

  expect(await ending).toBeNull();
  expect(polledAt).toEqual([0, 45_000]);
});

test('StreamRunner ends once-reading with the error that halted it, and rejects when its time is over', async () => {
  const halted = runnerWith(() => haltedFor(1_000));
  const failing = runnerWith(() => ({ outcome: 'retry', cause }));
  const limit = new AbortController();
  const late = failing.runner.runOnce(limit.signal);
  await failing.clock.advance(0);

  const ended = await halted.runner.runOnce(limit.signal);
  limit.abort(new Error('time is over'));

  expect(ended).toBe(cause);
  await expect(late).rejects.toThrow('time is over');
  expect(failing.runner.state.error).toBe(cause);
});

test('StreamRunner stores the status facts after each poll', async () => {
  const { clock, notes, start } = runnerWith((turn) =>
    turn === 1 ? done : { outcome: 'retry', cause },
  );
  void start();

  await clock.advance(30_000);

  expect(notes).toMatchObject([
    { source: 'audit', state: 'waiting', records: 1, error: null },
    { state: 'retrying', polls: 2, error: { code: 'upstream_unreachable', next: 'nothing' } },
  ]);
});

test('StreamRunner reports the time of its next poll, whatever the result of the poll before', async () => {
  const results: PollResult[] = [
    done,
    { outcome: 'retry', wait: { ms: 7_000 }, cause },
    haltedFor(3_600_000),
    { ...done, againMs: 45_000 },
  ];
  const seen: (number | null)[] = [];
  const { clock, runner, stop, start } = runnerWith(
    (turn) => {
      seen.push(runner.state.nextPollAt);
      return results[turn - 1] ?? done;
    },
    { jitterMs: 400 },
  );
  const began = clock.now();
  const untilNext = () => (runner.state.nextPollAt ?? 0) - clock.now();
  const running = start();

  const waits = [untilNext()];
  for (let n = 0; n < results.length; n += 1) {
    await clock.advanceToNext();
    waits.push(untilNext());
  }
  stop.abort(new Error('stopping'));
  await running;

  expect(waits).toEqual([400, 30_000, 7_000, 3_600_000, 45_000]);
  expect(clock.now() - began).toBe(400 + 30_000 + 7_000 + 3_600_000);
  expect(seen).toEqual([null, null, null, null]);
  expect(runner.state.nextPollAt).toBeNull();
});

test('StreamRunner keeps the moment that is past while it waits for its turn', async () => {
  const turns = new Turns(1);
  const release = await turns.take(new AbortController().signal);
  const { clock, runner, start } = runnerWith(() => done, { turns, jitterMs: 400 });
  const due = clock.now() + 400;
  void start();

  await clock.advance(5_000);
  const waiting = runner.state.nextPollAt;
  release();
  await clock.settle();

  expect(waiting).toBe(due);
  expect(runner.state).toMatchObject({ polls: 1, nextPollAt: due + 30_000 });
});

test('StreamRunner logs how long it waits after a failure, whatever the origin of the wait', async () => {
  const results: PollResult[] = [
    { outcome: 'retry', cause },
    { outcome: 'retry', wait: { ms: 70_000 }, cause },
    haltedFor(3_600_000),
  ];
  const { clock, lines, start } = runnerWith((turn) => results[turn - 1] ?? done);
  void start();

  for (let n = 0; n < 3; n += 1) await clock.advanceToNext();

  expect(lines).toMatchObject([
    { code: 'upstream_unreachable', next: 'nothing', wait_ms: 2_000 },
    { wait_ms: 70_000 },
    { wait_ms: 3_600_000 },
  ]);
});

test.for([
  { second: 'whole', waits: [30_000, 1_800_000], reported: ['updated'] },
  { second: 500, waits: [30_000, 2_000], reported: [] },
  { second: 403, waits: [30_000, 2_000], reported: [] },
] as const)(
  'StreamRunner frees its turn while a change of a collection waits to be confirmed, and the second look may end anyhow: $second',
  async ({ second, waits, reported }) => {
    const { sandbox, clock } = await standingSandbox();
    const reading = { ...quickly, confirmAfterMs: 30_000 };
    const collection = await aCollection(clock, firewallStream(sandbox, 'objects'), { reading });
    await collection.poll();
    await collection.changes();
    sandbox.control.changeFirewall('c-1', { kind: 'object', op: 'change' });
    const turns = new Turns(1);
    const polls: Promise<PollResult>[] = [];
    const { runner, start } = runnerWith(
      () => {
        const polled = collection.poll();
        polls.push(polled);
        return polled;
      },
      { schedule: { everyMs: 1_800_000 }, turns, clock },
    );
    const polledTo = async (count: number) => {
      while (runner.state.polls < count) {
        await polls[count - 1];
        await clock.settle();
      }
      return (runner.state.nextPollAt ?? 0) - clock.now();
    };
    void start();

    await clock.advance(0);
    const first = await polledTo(1);
    // The turn is to be had, and given back before the second look.
    (await turns.take(new AbortController().signal))();
    if (second !== 'whole') sandbox.control.setFaults({ rules: [{ path: '/**', fault: second }] });
    await clock.advance(first);
    const after = await polledTo(2);
    (await turns.take(new AbortController().signal))();

    expect([first, after]).toEqual(waits);
    expect((await collection.changes()).map(({ change }) => change)).toEqual(reported);
  },
);

test('StreamRunner says that all is held up to when a poll began that read to the end without a doubt', async () => {
  const doubt = new ExportError('paging_suspected', 'a part', { next: 'Look.' });
  const answers: PollResult[] = [
    { outcome: 'done', fresh: 1, more: true },
    { outcome: 'done', fresh: 1, more: false, doubt },
    { outcome: 'retry', cause: doubt },
    { outcome: 'done', fresh: 0, more: false },
  ];
  const { clock, reached, start } = runnerWith((n) => answers[n - 1] ?? done);
  const begunAt: number[] = [];
  void start();

  await clock.advance(29_000);
  begunAt.push(...reached);
  await clock.advance(91_000);

  expect(begunAt).toEqual([]);
  expect(reached.length).toBeGreaterThan(0);
  expect(reached.every((at) => at <= clock.now())).toBe(true);
});

test('StreamRunner does work, or stops, that is requested between a poll and its wait', async () => {
  const done1: string[] = [];
  const stopped: string[] = [];
  const worked = runnerWith(() => done, {
    noted: () =>
      void (done1.length === 0 && worked.runner.whileStill(async () => done1.push('work'))),
  });
  const ended = runnerWith(() => done, {
    noted: () => void ended.runner.stop(new Error('stopping')).then(() => stopped.push('stopped')),
  });
  void worked.start();
  worked.runner.retryNow();
  await worked.clock.advance(100);
  ended.runner.start(() => undefined);
  await ended.clock.advance(100);

  expect(done1).toEqual(['work']);
  expect(stopped).toEqual(['stopped']);
  expect(ended.polledAt).toEqual([0]);
});

test('StreamRunner ends the search for a corrected setting with the wait', async () => {
  const searches: AbortSignal[] = [];
  const wait = {
    ms: 5_000,
    repaired: (signal: AbortSignal) => {
      searches.push(signal);
      return new Promise<void>(() => undefined);
    },
  };
  const { clock, polledAt, start } = runnerWith((turn) =>
    turn === 1 ? { ...haltedFor(5_000), wait } : done,
  );
  void start();
  await clock.advance(1_000);

  const during = searches.map(({ aborted }) => aborted);
  await clock.advance(4_000);

  expect(during).toEqual([false]);
  expect(searches.map(({ aborted }) => aborted)).toEqual([true]);
  expect(polledAt).toEqual([0, 5_000]);
});

test('StreamRunner polls soon after news of upstream, also if it arrives during a poll, and not sooner than 5 s', async () => {
  const { clock, polledAt, runner, start } = runnerWith((turn) => {
    if (turn === 1) runner.nudge();
    return done;
  });
  void start();
  await clock.advance(6_000);
  runner.nudge();
  await clock.advance(6_000);
  await clock.advance(8_000);
  runner.nudge();
  await clock.advance(100);

  expect(polledAt).toEqual([0, 5_000, 10_000, 20_000]);
});

test('StreamRunner does not poll if it is stopped before it has begun', async () => {
  const { clock, polledAt, runner } = runnerWith(() => done);

  await runner.stop(new Error('stopping'));
  runner.start(() => undefined);
  await clock.advance(60_000);

  expect(polledAt).toEqual([]);
});
