// From a config to the objects that run: streams of sources, formats shared by sinks that encode alike, and that nothing
// is connected on the way.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import type { Event, PageContext } from '../../src/contracts/event.ts';
import { fetchPage } from '../../src/list/fetch-page.ts';
import { formatKeyOf, planFrom } from '../../src/run/plan.ts';
import { normalisersOf } from '../../src/send/held-event.ts';
import { aConfig, configEnv } from '../config/config-text.ts';
import { makeFormat } from '../formats/make-format.ts';
import { anEvent } from '../support/an-event.ts';
import { manualClock } from '../support/manual-clock.ts';
import { planMeans } from './plan-deps.ts';

const sources =
  '  audit: { type: audit_events, upstream: edge }\n' +
  '  web: { type: logs, upstream: ops, path: "/logs/{company_id}/web", every: 5s }\n' +
  '  fw: { type: firewall, upstream: ops, schedule: "0 * * * *", timezone: UTC }';

const sinks =
  '  a: { type: file, path: a, format: { type: cef, vendor: Acme, product: X } }\n' +
  '  b: { type: file, path: b, format: { product: X, vendor: Acme, type: cef }, batch: { events: 3 }, retry: { max: 1m } }\n' +
  '  c: { type: syslog, address: "udp://x:1", format: { type: cef, vendor: Acme, product: X } }\n' +
  '  d: { type: otlp, url: "http://x/" }';

test('planFrom creates the streams of each source, one per company and endpoint', () => {
  const config = parseConfig(aConfig({ sources, sinks }), 'c.yaml', configEnv());

  const plan = planFrom(config, planMeans());

  const names = plan.sources.map((source) => [source.name, source.streams.map(({ name }) => name)]);
  expect(names).toEqual([
    ['audit', ['audit']],
    ['web', ['web/c-1', 'web/c-2']],
    [
      'fw',
      expect.arrayContaining([expect.stringContaining('c-1'), expect.stringContaining('c-2')]),
    ],
  ]);
  expect(plan.sources.map(({ schedule }) => schedule)).toEqual([
    { everyMs: 30_000 },
    { everyMs: 5_000 },
    { cron: '0 * * * *', timezone: 'UTC' },
  ]);
  expect(plan.sources.map(({ list, collection }) => [list !== null, collection !== null])).toEqual([
    [true, false],
    [true, false],
    [false, true],
  ]);
});

test('planFrom makes one format for sinks that encode alike', () => {
  const config = parseConfig(aConfig({ sinks }), 'c.yaml', configEnv());

  const { sinks: planned } = planFrom(config, planMeans());

  const [a, b, c, d] = planned;
  expect(a?.format).toBe(b?.format);
  expect(a?.formatKey).toBe(b?.formatKey);
  expect(c?.formatKey).not.toBe(a?.formatKey);
  expect(planned.map(({ format }) => format.name)).toEqual(['cef', 'cef', 'syslog', 'otel']);
  expect(d?.format.document).toBeDefined();
});

test('planFrom bounds batches and waits as the config says, else as the sink does', () => {
  const config = parseConfig(aConfig({ sinks }), 'c.yaml', configEnv());

  const [a, b] = planFrom(config, planMeans()).sinks;

  expect(a).toMatchObject({
    bounds: { eventsMax: 5000, bytesMax: 1024 * 1024 },
    waitMs: 250,
    retry: { minMs: 1_000, maxMs: 300_000 },
  });
  expect(b).toMatchObject({
    bounds: { eventsMax: 3, bytesMax: 1024 * 1024 },
    waitMs: 250,
    retry: { minMs: 1_000, maxMs: 60_000 },
  });
});

test('planFrom opens every upstream, and sources request through it', async () => {
  const config = parseConfig(aConfig({ sources }), 'c.yaml', configEnv());
  const asked: string[] = [];
  const deps = planMeans({
    clock: manualClock(),
    answer: (url) => {
      asked.push(url);
      return { status: 200, body: '{"data":[],"next_cursor":null}' };
    },
  });

  const plan = planFrom(config, deps);
  const before = asked.length;
  const [stream] = plan.sources[0]?.streams ?? [];
  if (stream?.kind !== 'list') throw new Error('audit is read as a list');
  const fetched = await fetchPage(
    stream,
    { position: { by: 'cursor', cursor: null }, limit: 7 },
    new AbortController().signal,
  );

  expect(before).toBe(0);
  expect([...plan.upstreams.keys()]).toEqual(['edge', 'ops']);
  expect(fetched.outcome).toBe('ok');
  expect(asked).toEqual(['https://api.example.com/v1/audit/events?limit=7']);
});

test('formatKeyOf is the same for the same settings in any order', () => {
  expect(formatKeyOf({ type: 'a', x: { b: 1, a: [2, { d: 1, c: 2 }] } })).toBe(
    formatKeyOf({ x: { a: [2, { c: 2, d: 1 }], b: 1 }, type: 'a' }),
  );
  expect(formatKeyOf({ type: 'a', x: [1, 2] })).not.toBe(formatKeyOf({ type: 'a', x: [2, 1] }));
});

test('planFrom has events of the platform that the upstream names, and of its API where it names none', () => {
  const text = aConfig({ sources, sinks }).replace(
    '{ api: unified,',
    '{ api: unified, vendor: Acme, product: Edge,',
  );
  expect(text).toContain('vendor: Acme, product: Edge');
  const plan = planFrom(parseConfig(text, 'c.yaml', configEnv()), planMeans());
  const normaliserFor = normalisersOf(plan.sources);
  const record = { action: 'policy.update', actor: { name: 'Anna' } };
  const events = (['audit', 'web'] as const).map((source): Event => {
    const context: PageContext = { source, stream: source, kind: 'audit', fetchedAt: 0 };
    return { ...anEvent(), source, ocsf: normaliserFor(context)(record, 'u', context) };
  });

  expect(events.map(({ ocsf }) => ocsf.metadata.product)).toEqual([
    { name: 'Edge', vendor_name: 'Acme' },
    { name: 'services' },
  ]);
  const lines = (type: string, settings = {}) =>
    events.map((event) => String(makeFormat(type, settings).encode(event)).slice(0, 24));
  expect(lines('cef')).toEqual(['CEF:0|Acme|Edge|1.0|poli', 'CEF:0|sluice|services|1.']);
  expect(lines('leef')).toEqual(['LEEF:2.0|Acme|Edge|1.0|p', 'LEEF:2.0|sluice|services']);
  expect(lines('cef', { vendor: 'Own', product: 'Mine' })).toEqual(
    Array(2).fill('CEF:0|Own|Mine|1.0|polic'),
  );
  const ecs = JSON.parse(String(makeFormat('ecs').encode(events[0] as Event)));
  expect(ecs.observer).toMatchObject({ vendor: 'Acme', product: 'Edge' });
});
