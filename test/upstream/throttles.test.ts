import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { Json } from '../../src/contracts/index.ts';
import type { Lane } from '../../src/upstream/fair-queue.ts';
import { openThrottles, type PathCeiling } from '../../src/upstream/throttles.ts';
import { manualClock } from '../support/manual-clock.ts';
import { never } from '../tools/serving.ts';

const key = { credential: 'c', base: 'https://api.example' };
const template = '/companies/{company_id}/logs';

function lane(tenant: string, path = `/companies/${tenant}/logs`): Lane {
  return { tenant, path, template };
}

function open(ceilings: readonly PathCeiling[] = [], permit = { isGiven: () => true }) {
  const clock = manualClock();
  const throttles = openThrottles({ clock, random: () => 0.5, permit });
  return { clock, throttles, gate: throttles.gate(key, { ceilings }) };
}

describe('gate', () => {
  test('a request with nothing in its way goes at once', async () => {
    const { gate, clock } = open();

    await gate.acquire(lane('a'), never());

    expect(clock.sleepers).toBe(0);
  });

  test('thousands of other paths push out no budget that upstream reported', async () => {
    const { gate } = open();
    gate.observe(lane('a'), { refused: false, limit: 9, remaining: 4 });

    for (let i = 0; i < 5_000; i += 1) {
      const other = lane(`other-${i}`);
      await gate.acquire(other, never());
      gate.observe(other, { refused: false });
    }

    expect(gate.state()).toEqual([{ path: lane('a').path, waitMs: 0, limit: 9, remaining: 4 }]);
  });

  test('without a permit nothing goes; given again, those that wait go at their pace', async () => {
    const permit = { isGiven: () => false };
    const { gate, clock } = open([{ requests: 1, perMs: 1_000 }], permit);
    let gone = 0;
    const acquired = ['a', 'b'].map(async (path) => {
      await gate.acquire(lane(path), never());
      gone += 1;
    });

    await clock.advance(60_000);
    const before = gone;
    permit.isGiven = () => true;
    await clock.advance(200);
    const after = gone;
    await clock.advance(1_000);
    await Promise.all(acquired);

    expect({ before, after }).toEqual({ before: 0, after: 1 });
  });

  test('A34: a refusal parks its own path only', async () => {
    const { gate } = open();

    gate.observe(lane('a'), { refused: true, retryAfterMs: 60_000 });

    expect(gate.delay(lane('a'))).toBeGreaterThanOrEqual(60_000);
    expect(gate.delay(lane('b'))).toBe(0);
    await gate.acquire(lane('b'), never());
  });

  test('A34: a second path refused within the minute slows the template, a second template the credential', () => {
    const { gate } = open();
    const other = { tenant: '', path: '/audit/events', template: '/audit/events' };

    gate.observe(lane('a'), { refused: true });
    const afterOne = gate.delay(lane('c'));
    gate.observe(lane('b'), { refused: true });
    const afterTwo = gate.delay(lane('c'));
    const elsewhere = gate.delay({ ...other, path: '/sites', template: '/sites' });
    gate.observe(other, { refused: true });
    const afterThree = gate.delay({ ...other, path: '/sites', template: '/sites' });

    expect({ afterOne, elsewhere }).toEqual({ afterOne: 0, elsewhere: 0 });
    expect(afterTwo).toBeGreaterThanOrEqual(1_000);
    expect(afterThree).toBeGreaterThanOrEqual(1_000);
  });

  test('refusals of one company slow its own paths and no other company', async () => {
    const { gate, clock } = open();
    const of = (tenant: string, list: string) => ({
      ...{ tenant, path: `/companies/${tenant}/${list}` },
      template: `/companies/{company_id}/${list}`,
    });

    for (const list of ['logs', 'hosts', 'tickets']) {
      gate.observe(of('bad', list), { refused: true, retryAfterMs: 600_000 });
    }
    const own = gate.delay(of('bad', 'other'));
    const others = ['logs', 'hosts', 'other'].map((list) => gate.delay(of('good', list)));
    gate.observe(of('good', 'hosts'), { refused: true });
    const wider = gate.delay(of('third', 'logs'));
    await clock.advance(600_000);

    expect(own).toBeGreaterThanOrEqual(1_000);
    expect(others).toEqual([0, 0, 0]);
    expect(wider).toBeGreaterThanOrEqual(1_000);
    expect(gate.delay(of('bad', 'other'))).toBe(0);
  });

  test('a Retry-After of thirty days on two paths does not park the others for days', () => {
    const { gate } = open();
    const days = 30 * 86_400_000;

    gate.observe(lane('a'), { refused: true, retryAfterMs: days });
    gate.observe(lane('b'), { refused: true, retryAfterMs: days });

    expect(gate.delay(lane('a'))).toBeGreaterThanOrEqual(days);
    expect(gate.delay(lane('c'))).toBeLessThanOrEqual(2_000);
  });

  test('refusals more than a minute apart stay each their path’s own', async () => {
    const { gate, clock } = open();

    gate.observe(lane('a'), { refused: true });
    await clock.advance(60_000);
    gate.observe(lane('b'), { refused: true });

    expect(gate.delay(lane('c'))).toBe(0);
  });

  test('waiters are served by tenant in turn, each path in order', async () => {
    const { gate, clock } = open([{ path: template, requests: 1, perMs: 1_000 }]);
    const served: string[] = [];
    const wait = (tenant: string, name: string) =>
      void gate.acquire(lane(tenant, `/companies/${tenant}/logs`), never()).then(() => {
        served.push(name);
      });
    await gate.acquire(lane('big'), never());

    for (const number of [1, 2, 3, 4]) wait('big', `big ${number}`);
    wait('small', 'small 1');
    wait('tiny', 'tiny 1');
    await clock.advance(6_000);

    expect(served).toEqual(['big 1', 'small 1', 'tiny 1', 'big 2', 'big 3', 'big 4']);
  });

  test('a parked path does not delay the tenant’s other paths', async () => {
    const { gate, clock } = open([{ path: template, requests: 1, perMs: 1_000 }]);
    const served: string[] = [];
    await gate.acquire(lane('z'), never());
    gate.observe(lane('a', '/companies/a/parked'), { refused: true, retryAfterMs: 86_400_000 });

    void gate.acquire(lane('a', '/companies/a/parked'), never()).then(() => served.push('parked'));
    void gate.acquire(lane('a', '/companies/a/free'), never()).then(() => served.push('free'));
    await clock.advance(1_000);

    expect(served).toEqual(['free']);
  });

  test('the ceiling of a template holds over all its paths', async () => {
    const { gate, clock } = open([{ path: template, requests: 5, perMs: 10_000 }]);
    const times: number[] = [];

    for (let number = 0; number < 40; number++) {
      void gate
        .acquire(lane(`t${number % 7}`, `/p/${number}`), never())
        .then(() => times.push(clock.monotonic()));
    }
    await clock.advance(100_000);

    expect(times).toHaveLength(40);
    for (const start of times) {
      expect(
        times.filter((time) => time >= start && time < start + 10_000).length,
      ).toBeLessThanOrEqual(5);
    }
  });

  test('a ceiling without path holds for the credential', async () => {
    const { gate } = open([{ requests: 2, perMs: 1_000 }]);

    await gate.acquire({ tenant: '', path: '/a', template: '/a' }, never());
    await gate.acquire({ tenant: '', path: '/b', template: '/b' }, never());

    expect(gate.delay({ tenant: '', path: '/c', template: '/c' })).toBe(1_000);
  });

  test('two upstreams with one credential share one gate and both their ceilings', async () => {
    const { throttles, gate } = open();

    const other = throttles.gate(key, { ceilings: [{ path: '/x', requests: 1, perMs: 500 }] });
    const stranger = throttles.gate({ ...key, base: 'https://eu.example' }, { ceilings: [] });
    await gate.acquire({ tenant: '', path: '/x', template: '/x' }, never());

    expect(other.delay({ tenant: '', path: '/x', template: '/x' })).toBe(500);
    expect(stranger.delay({ tenant: '', path: '/x', template: '/x' })).toBe(0);
  });

  test('requests before a restart count for every ceiling, from the time they were sent', async () => {
    const ceilings = [
      { path: template, requests: 3, perMs: 60_000 },
      { requests: 4, perMs: 10_000 },
    ];
    const first = open(ceilings);
    for (const tenant of ['a', 'b', 'c']) {
      await first.gate.acquire(lane(tenant), never());
      await first.clock.advance(1_000);
    }
    const held = JSON.parse(JSON.stringify(first.throttles.used()));
    expect(first.throttles.used()).toBeNull();

    const second = open(ceilings);
    await second.clock.advance(first.clock.now() - second.clock.now() + 5_000);
    second.throttles.resume(held);

    // The first went 8 s ago: another may go a minute after it, and one at once on another path.
    expect(second.gate.delay(lane('d'))).toBe(52_000);
    expect(second.gate.delay({ tenant: 'd', path: '/other', template: '/other' })).toBe(0);
    await second.clock.advance(52_000);
    expect(second.gate.delay(lane('d'))).toBe(0);
  });

  test('changed settings have their own ceilings, and the requests already sent and waits of before', async () => {
    const { clock, gate, throttles } = open([{ path: template, requests: 3, perMs: 60_000 }]);
    for (const tenant of ['a', 'b', 'c']) await gate.acquire(lane(tenant), never());
    gate.observe(lane('x'), { refused: true, retryAfterMs: 600_000 });

    const lower = throttles.renewed().gate(key, {
      ceilings: [{ path: template, requests: 2, perMs: 60_000 }],
    });
    await clock.advance(1_000);
    const wait = lower.acquire(lane('d'), AbortSignal.timeout(60_000));
    const delays = { lower: lower.delay(lane('d')), old: gate.delay(lane('d')) };
    const waits = lower.delay(lane('x'));
    await clock.advance(59_000);
    await wait;
    // Of a request that was sent before.
    gate.observe(lane('y'), { refused: true, retryAfterMs: 50_000 });

    expect(delays).toEqual({ lower: 59_000, old: 59_000 });
    expect(waits).toBeGreaterThanOrEqual(599_000);
    expect(lower.delay(lane('y'))).toBeGreaterThanOrEqual(50_000);
    const sent = Object.values((throttles.used() as { readonly gates: object }).gates);
    expect(sent).toEqual([{ [template]: [[0, 1]] }]);
  });

  test('settings that are refused change nothing, and those of a replaced gate count in the new one', async () => {
    const { gate, throttles } = open([{ requests: 2, perMs: 60_000 }]);
    throttles.renewed().gate(key, { ceilings: [{ requests: 1, perMs: 60_000 }] });
    await gate.acquire(lane('a'), never());
    const untilNow = gate.delay(lane('a'));

    const next = throttles.renewed().gate(key, { ceilings: [{ requests: 3, perMs: 60_000 }] });
    await next.acquire(lane('b'), never());
    await gate.acquire(lane('c'), never());

    expect(untilNow).toBe(0);
    expect(next.delay(lane('d'))).toBe(60_000);
    expect(gate.delay(lane('d'))).toBe(60_000);
  });

  test('usage of ceilings without a request yet stays in the notes', async () => {
    const ceilings = [
      { path: '/daily', requests: 1, perMs: 86_400_000 },
      { path: template, requests: 9, perMs: 1_000 },
    ];
    const daily = { tenant: '', path: '/daily', template: '/daily' };
    const other = { credential: 'other', base: key.base };
    const first = open(ceilings);
    await first.gate.acquire(daily, never());
    await first.throttles.gate(other, { ceilings }).acquire(daily, never());
    const second = open(ceilings);
    second.throttles.resume(first.throttles.used());
    await second.gate.acquire(lane('a'), never());

    const third = open(ceilings);
    third.throttles.resume(second.throttles.used());

    expect(third.gate.delay(daily)).toBe(86_400_000);
    expect(third.throttles.gate(other, { ceilings }).delay(daily)).toBe(86_400_000);
  });

  test('adopted usage leaves a wait that upstream has requested', async () => {
    const { gate, throttles } = open([{ path: template, requests: 2, perMs: 1_000 }]);
    gate.take(lane('a'));
    gate.observe({ ...lane('a'), path: template }, { refused: true, retryAfterMs: 60_000 });

    throttles.resume(throttles.used());

    expect(gate.delay(lane('b'))).toBeGreaterThanOrEqual(60_000);
  });

  test('a wait that upstream requested outlasts two restarts, until its time and at its path only', async () => {
    const first = open();
    first.gate.observe(lane('a'), { refused: true, retryAfterMs: 60_000 });
    expect(first.gate.isNoteDue(0.1)).toBe(true);
    const held = first.throttles.used(0.1);
    expect(first.throttles.used(0.1)).toBeNull();

    const second = open();
    await second.clock.advance(first.clock.now() - second.clock.now() + 20_000);
    second.throttles.resume(held);
    second.gate.observe(lane('b'), { refused: true, retryAfterMs: 5_000 });
    const third = open();
    await third.clock.advance(second.clock.now() - third.clock.now());
    third.throttles.resume(second.throttles.used());
    // An upstream that shares the credential, with a ceiling of its own.
    third.throttles.gate(key, { ceilings: [{ path: template, requests: 1, perMs: 1_000 }] });

    for (const { gate } of [second, third]) {
      expect(gate.delay(lane('a'))).toBeGreaterThanOrEqual(40_000);
      expect(gate.delay(lane('a'))).toBeLessThan(46_000);
      expect(gate.delay(lane('c'))).toBe(0);
    }
    await third.clock.advance(46_000);
    expect(third.gate.delay(lane('a'))).toBe(0);
  });

  test('a restart ends a wait of more than a day, a reload does not', () => {
    const { gate, throttles } = open();
    gate.observe(lane('a'), { refused: true, retryAfterMs: 366 * 86_400_000 });
    gate.observe(lane('c'), { refused: true, retryAfterMs: 86_400_000 });
    const restarted = open();
    restarted.throttles.resume(throttles.used());
    const reloaded = throttles.renewed().gate(key, { ceilings: [] });
    void reloaded.acquire(lane('b'), never());

    expect(restarted.gate.delay({ ...lane('a'), template: '/companies/a/logs' })).toBe(0);
    expect(restarted.gate.delay(lane('c'))).toBeGreaterThanOrEqual(86_400_000);
    expect(reloaded.delay(lane('a'))).toBeGreaterThan(365 * 86_400_000);
  });

  test('of a process whose clock was ahead requests count as if sent now, and nonsense not at all', () => {
    const ceilings = [{ requests: 1, perMs: 60_000 }];
    const first = open(ceilings);
    first.gate.take(lane('a'));
    const held = first.throttles.used() as { readonly at: number };
    const [second, third] = [open(ceilings), open(ceilings)];

    second.throttles.resume({ ...held, at: held.at + 3_600_000 });
    third.throttles.resume({ gates: 'none' });

    expect(second.gate.delay(lane('a'))).toBe(60_000);
    expect(third.gate.delay(lane('a'))).toBe(0);
  });

  test('a note is due after a tenth of a ceiling, and the next process leaves that much free', async () => {
    const ceilings = [{ path: template, requests: 30, perMs: 60_000 }];
    const first = open(ceilings);
    const noted = [];
    for (let request = 0; request < 9; request += 1) {
      await first.gate.acquire(lane('a'), never());
      await first.clock.advance(1);
      noted.push((first.throttles.used(0.1) as { readonly noted: number }).noted);
    }
    // The first request, then each fourth: three may be missing.
    expect(noted).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 3]);

    const second = open(ceilings);
    second.throttles.resume(first.throttles.used(0));
    const third = open(ceilings);
    await first.gate.acquire(lane('a'), never());
    third.throttles.resume(first.throttles.used(0.1));
    const free = ({ gate }: typeof first) => {
      let count = 0;
      for (; gate.delay(lane('a')) === 0; count += 1) gate.take(lane('a'));
      return count;
    };
    // After an orderly end all is noted.
    expect(free(second)).toBe(30 - 9);
    expect(free(third)).toBe(30 - 10 - 3);
  });

  test('requests without a note count from the takeover, and a smaller share is a note by itself', async () => {
    const ceilings = [{ path: template, requests: 30, perMs: 60_000 }];
    const [first, second] = [open(ceilings), open(ceilings)];
    first.gate.take(lane('a'));
    await first.clock.advance(1);
    const used = first.throttles.used(0.1);
    await first.clock.advance(1);
    expect(used).toMatchObject({ noted: 1, unnoted: 0.1 });
    expect(first.throttles.used(0)).toMatchObject({ noted: 2, unnoted: 0 });

    await second.clock.advance(50_000);
    second.throttles.resume(used);
    await second.clock.advance(15_000);

    // The noted request is over. Three more could have gone until the takeover.
    let free = 0;
    for (; second.gate.delay(lane('a')) === 0; free += 1) second.gate.take(lane('a'));
    expect(free).toBe(30 - 3);
  });

  test('a ceiling holds over takeovers although only due notes reach the next process', async () => {
    const perMs = 10_000;
    const requestsMax = 20;
    const sent: number[] = [];
    let now = 0;
    let logged: Json | null = null;
    for (let owner = 0; owner < 40; owner += 1) {
      const { gate, throttles, clock } = open([{ path: template, requests: requestsMax, perMs }]);
      await clock.advance(now - clock.monotonic());
      if (logged !== null) throttles.resume(logged);
      let noted = (logged as { readonly noted: number } | null)?.noted ?? 0;
      for (let step = 0; step < 7 + owner; step += 1) {
        if (gate.delay(lane('a')) === 0) {
          gate.take(lane('a'));
          sent.push(clock.monotonic());
        }
        const used = throttles.used(0.1) as { readonly noted: number } | null;
        if (used !== null && used.noted > noted) {
          logged = used as unknown as Json;
          noted = used.noted;
        }
        await clock.advance(100 + ((owner * 37) % 5) * 130);
      }
      now = clock.monotonic();
    }
    const most = Math.max(
      ...sent.map((from) => sent.filter((at) => at >= from && at < from + perMs).length),
    );
    expect(most).toBeLessThanOrEqual(requestsMax);
    expect(most).toBeGreaterThan(requestsMax / 2);
  });

  test('usage of a previous process counts in a gate that is made later', () => {
    const ceilings = [{ path: template, requests: 2, perMs: 60_000 }];
    const first = open(ceilings);
    first.gate.take(lane('a'));
    first.gate.take(lane('a'));
    const tools = { clock: manualClock(), random: () => 0 };
    const throttles = openThrottles(tools);
    throttles.resume(first.throttles.used());

    expect(throttles.gate(key, { ceilings }).delay(lane('a'))).toBe(60_000);
  });

  test('a caller that stops waiting leaves nothing: no turn taken, no timer, no listener', async () => {
    const { gate, clock } = open([{ path: template, requests: 1, perMs: 1_000 }]);
    const stop = new AbortController();
    await gate.acquire(lane('a'), stop.signal);

    const waiting = [gate.acquire(lane('a'), stop.signal), gate.acquire(lane('b'), stop.signal)];
    const sleeping = clock.sleepers;
    stop.abort(new Error('shutting down'));
    const results = await Promise.allSettled(waiting);
    await clock.settle();

    expect(sleeping).toBe(1);
    expect(results.map((result) => result.status)).toEqual(['rejected', 'rejected']);
    expect(clock.sleepers).toBe(0);
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
    await clock.advance(1_000);
    expect(gate.delay(lane('b'))).toBe(0);
  });

  test('thousands of paths seen once do not pile up', () => {
    const { gate } = open([{ path: template, requests: 1, perMs: 1_000 }]);

    for (let number = 0; number < 10_000; number++) {
      const here = lane('a', `/policies/${number}`);
      gate.observe(here, { refused: false, limit: 5, remaining: 4 });
    }

    expect(gate.state().length).toBeLessThanOrEqual(4_096);
  });

  test('state shows budgets and waits', () => {
    const { gate } = open();

    gate.observe(lane('a'), { refused: false, limit: 60, remaining: 0, resetMs: 5_000 });

    expect(gate.state()).toEqual([
      { path: '/companies/a/logs', waitMs: 5_000, limit: 60, remaining: 0 },
    ]);
  });
});
