// The live tail's view of a real spool: what is shown, in which form, and that a look is bounded and moves nothing.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import type { Append } from '../../src/contracts/spool.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { eventTap } from '../../src/run/event-tap.ts';
import { planFrom } from '../../src/run/plan.ts';
import type { TailTake, TailWish } from '../../src/watch/tail.ts';
import { aConfig, configEnv } from '../config/config-text.ts';
import { manualClock } from '../support/manual-clock.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { planMeans } from './plan-deps.ts';

const sources =
  '  audit: { type: audit_events, upstream: edge }\n' +
  '  web: { type: logs, upstream: ops, path: "/logs/{company_id}/web" }';
const sinks =
  '  siem: { type: syslog, address: "udp://127.0.0.1:1", format: cef }\n' +
  '  lake: { type: otlp, url: "http://127.0.0.1:1/" }';
const routes =
  'routes:\n' +
  '  - { from: [audit], to: [siem], where: \'event.metadata.original_event_uid != "2"\', redact: [actor] }\n' +
  '  - { from: [audit, web], to: [lake] }';

/** A tap on an empty spool with two sinks that never read. Time stands still, so a look may take as long as it does. */
async function aTap({
  clock = manualClock(),
  top = routes,
}: {
  readonly clock?: Clock;
  readonly top?: string;
} = {}) {
  const config = parseConfig(aConfig({ sources, sinks, top }), 'c.yaml', configEnv());
  const dir = tempDir('event-tap-');
  const settings = { dir, sync: 'normal', keepMs: 0, bytesMax: 1e8 } as const;
  const spool = await openSpool({ ...settings, sinks: ['siem', 'lake'] });
  afterThisTest(() => spool.close());
  const tap = eventTap({ config, plan: planFrom(config, planMeans()), spool, clock });
  const never = new AbortController().signal;
  const open = (wish: Partial<TailWish> = {}) => {
    const view = tap.open({ ...{ form: 'readable', stream: '', text: '', where: '' }, ...wish });
    return { take: () => view.take(never) };
  };
  return { spool, tap, open, look: (wish: Partial<TailWish> = {}) => open(wish).take() };
}

/** A page of these records. */
function holding(records: readonly object[], parts: { stream?: string; onlySink?: string } = {}) {
  const { stream = 'audit', ...rest } = parts;
  const [source = ''] = stream.split('/');
  const kind = source === 'audit' ? 'audit' : 'log';
  const uids = records.map((_, index) => createHash('sha256').update(`${stream}${index}`).digest());
  const append: Append = {
    stream,
    pages: [
      {
        context: { source, stream, kind, fetchedAt: Date.UTC(2026, 0, 1) },
        body: Buffer.from(JSON.stringify({ data: records, next_cursor: null })),
        items: 'data',
        kept: null,
        uids: Buffer.concat(uids),
        ...rest,
      },
    ],
    checkpoint: null,
  };
  return append;
}

function aRecord(id: number, parts: object = {}) {
  const actor = { email: 'ana@example.com' };
  return {
    id: `${id}`,
    timestamp: '2026-01-01T00:00:00Z',
    action: 'policy.update',
    actor,
    ...parts,
  };
}

function manyRecords(count: number, parts: object = {}) {
  return Array.from({ length: count }, (_, id) => aRecord(id, parts));
}

function texts({ lines }: TailTake): readonly string[] {
  return lines.map(({ text }) => text);
}

const idsOf = (take: TailTake) => texts(take).map((text) => JSON.parse(text).id);

test('eventTap shows the latest stored events, then new ones, oldest first', async () => {
  const { spool, open } = await aTap();
  await spool.append(holding([aRecord(1), aRecord(2)]));
  const { take } = open({ form: 'original' });

  const first = await take();
  const waiting = take();
  await spool.append(holding([aRecord(3), aRecord(4)]));
  const second = await waiting;

  expect(idsOf(first)).toEqual(['1', '2']);
  expect(idsOf(second)).toEqual(['3', '4']);
  expect(second).toMatchObject({ looked: 2, missed: 0, unjudged: 0 });
  expect((await spool.progress('siem')).position).toBe(0);
});

describe('on a spool with three events', () => {
  let world: Awaited<ReturnType<typeof aTap>>;
  beforeAll(async () => {
    world = await aTap();
    const { spool } = world;
    await spool.append(holding([aRecord(1), aRecord(2, { severity: 'high' })]));
    await spool.append(holding([aRecord(3, { note: 'Straße' })], { stream: 'web/c-1' }));
  });
  afterAll(() => world.spool.close());

  test.each([
    ['readable', /^2026-01-01 00:00:00 .*ana@example\.com/],
    ['json', /^\{.*"class_uid":/],
    ['syslog', /^<\d+>1 /],
    ['cef', /^CEF:0\|/],
    ['otel', /^\{"resourceLogs":/],
    ['original', /^\{"id":"1","timestamp"/],
    ['sink lake', /^\{"resourceLogs":/],
  ])('an event is shown as %s', async (form, shape) => {
    const [first] = texts(await world.look({ form }));

    expect(first).toMatch(shape);
    expect(world.tap.forms).toContain(form);
  });

  test('as a sink gets it: after its route, without the fields that it redacts', async () => {
    const take = await world.look({ form: 'sink siem' });

    expect(take.lines).toHaveLength(1);
    expect(texts(take)[0]).toMatch(/externalId=1\b/);
    expect(texts(take)[0]).not.toContain('ana@example.com');
    expect(take.looked).toBe(3);
  });

  test('a form that is not offered is refused', () => {
    expect(() => world.open({ form: 'sink nobody' })).toThrow('form: there is none of this name');
  });

  test.each<[Partial<TailWish>, readonly string[]]>([
    [{}, ['1', '2', '3']],
    [{ stream: 'WEB' }, ['3']],
    [{ text: 'STRASSE' }, []],
    [{ text: 'straße' }, ['3']],
    [{ where: 'event.severity_id >= 4' }, ['2']],
    [{ where: 'stream.startsWith("web")' }, ['3']],
    [{ where: 'source == "audit"', text: '"2"' }, ['2']],
  ])('filtered by %j', async (wish, ids) => {
    expect(idsOf(await world.look({ ...wish, form: 'original' }))).toEqual(ids);
  });

  test('events on which the filter fails are not shown, and counted', async () => {
    const take = await world.look({ where: 'event.unmapped.note == "Straße"', form: 'original' });

    expect(idsOf(take)).toEqual(['3']);
    expect(take).toMatchObject({ looked: 3, unjudged: 2 });
  });

  test.each([
    ['is no CEL', 'event.', /^where: \S/],
    ['has a regular expression', 'event.message.matches("(a+)+$")', /matches\(\) is not offered/],
    ['hides one', 'event.message.`matches`("(a+)+$")', /matches\(\) is not offered/],
    ['loops in a loop', '[1].all(a, [1].all(b, a == b))', /only one of all, exists/],
    ['is too long', `"${'x'.repeat(500)}" == ""`, /longer than 500 characters/],
  ])('a filter that %s is refused', (_, where, why) => {
    expect(() => world.open({ where })).toThrow(why);
  });
});

describe('a look is bounded', () => {
  test('to the newest lines that a person can read; the rest is counted', async () => {
    const { spool, look } = await aTap();
    await spool.append(holding(manyRecords(3_000)));

    const take = await look({ form: 'original' });

    expect(idsOf(take)).toEqual(Array.from({ length: 50 }, (_, at) => `${2_950 + at}`));
    expect([take.looked, take.missed]).toEqual([50, 950]);
  });

  test('in time, whatever the filter costs', async () => {
    // Each look at the clock costs a millisecond.
    let ms = 0;
    const monotonic = () => {
      ms += 1;
      return ms;
    };
    const { spool, look } = await aTap({ clock: { ...manualClock(), monotonic } });
    await spool.append(holding(manyRecords(100)));

    const take = await look({ where: 'event.severity_id == 99' });

    expect(take.lines).toEqual([]);
    expect(take.looked).toBeGreaterThan(10);
    expect(take.looked).toBeLessThan(20);
    expect(take.looked + take.missed).toBe(100);
  });

  test('in the length of a line, and shows no dead letter that is sent again', async () => {
    const { spool, look } = await aTap();
    await spool.append(holding([aRecord(1, { note: 'x'.repeat(50_000) })]));
    await spool.append(holding([aRecord(2)], { onlySink: 'siem' }));

    const [text = '', ...others] = texts(await look({ form: 'json' }));

    expect(text).toHaveLength(16_385);
    expect(text.endsWith('…')).toBe(true);
    expect(others).toEqual([]);
  });

  test('a flood between two looks is counted', async () => {
    const { spool, open } = await aTap();
    await spool.append(holding([aRecord(1)]));
    const { take } = open({ form: 'original' });
    await take();

    await spool.append(holding(manyRecords(1_500)));
    await spool.append(holding([aRecord(7_000)]));
    const after = await take();

    expect(idsOf(after).at(-1)).toBe('7000');
    expect(after.looked + after.missed).toBe(1_501);
  });
});

test('a form that belongs to no sink masks fields that any route masks, and shows no record as sent', async () => {
  const masked = `mask: { key: a-key }
routes:
  - { from: [audit], to: [lake] }
  - { from: [audit], to: [siem], mask: { actor.user.email_addr: hash } }`;
  const { spool, look } = await aTap({ top: masked });
  await spool.append(holding([aRecord(1)]));

  for (const form of ['readable', 'json', 'syslog', 'cef', 'otel', 'sink siem']) {
    const [text = ''] = texts(await look({ form }));
    expect(text).toMatch(/[0-9a-f]{32}/);
    expect(text).not.toContain('ana@example.com');
  }
  expect((await look({ form: 'original' })).lines).toEqual([]);
  const where = 'event.actor.user.email_addr == "ana@example.com"';
  expect((await look({ form: 'json', where })).lines).toEqual([]);
  expect(texts(await look({ form: 'sink lake' }))[0]).toContain('ana@example.com');
});
