// What sections of a config say together: names that lead nowhere, pairings that cannot work, files written twice,
// redactions that would not reach what they are to hide.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { aConfig, configEnv, flawLines, withFirst } from './config-text.ts';

const disk = '  disk: { type: file, path: ./a.ndjson }';

function withRoutes(routes: string, sinks = disk): string {
  return aConfig({ top: `routes:\n  - ${routes}`, sinks });
}

test('parseConfig names the nearest upstream', () => {
  const lines = flawLines(withFirst('sources', '  audit: { type: audit_events, upstream: egde }'));

  expect(lines).toEqual([
    'c.yaml:2:42 sources.audit.upstream: unknown upstream "egde"; did you mean edge?',
  ]);
});

test('parseConfig does not accept an inherited member of every object as an upstream', () => {
  const lines = flawLines(
    withFirst('sources', '  audit: { type: audit_events, upstream: constructor }'),
  );

  expect(lines).toEqual([
    'c.yaml:2:42 sources.audit.upstream: unknown upstream "constructor"; known: edge, ops',
  ]);
});

test('parseConfig refuses a source at an API that it cannot read', () => {
  const lines = flawLines(withFirst('sources', '  audit: { type: audit_events, upstream: ops }'));

  expect(lines).toEqual([
    'c.yaml:2:42 sources.audit.upstream: audit_events reads an upstream with api: unified, and ops is services',
  ]);
});

test('parseConfig refuses a resource of companies where the upstream names none', () => {
  const lines = flawLines(
    aConfig({
      upstreams:
        '  ops: { api: services, base_url: "https://s", auth: { client_id: i, client_secret: s, scope: x } }',
      sources: '  hosts: { type: hosts, upstream: ops }',
    }),
  );

  expect(lines).toEqual([
    expect.stringContaining('sources.hosts: hosts is read per company, so the upstream needs'),
  ]);
});

test('parseConfig reports a wrong pairing even if the upstream has another flaw', () => {
  const text = withFirst(
    'upstreams',
    '  ops: { api: services, base_url: 5, auth: { api_key: k } }',
  );

  const lines = flawLines(text.replace('upstream: edge', 'upstream: ops'));

  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain('ops is services');
});

test('parseConfig reports conflicting keys of an upstream even if another key is wrong', () => {
  const upstream = '{ api: unifed, base_url: "http://api.example.com/v1", auth: { client_id: i } }';

  const lines = flawLines(withFirst('upstreams', `  edge: ${upstream}`));

  expect(lines).toEqual([
    expect.stringMatching(/^c\.yaml:2:3 upstreams\.edge: http:\/\/ sends credentials in the clear/),
    expect.stringMatching(/^c\.yaml:2:16 upstreams\.edge\.api: .*unified/),
    expect.stringMatching(/upstreams\.edge: auth needs client_id and client_secret/),
  ]);
});

test.each([
  ['upstreams', 'upstream'],
  ['sources', 'source'],
  ['sinks', 'sink'],
])('parseConfig wants at least one of %s', (section, one) => {
  const [, ...rest] = withFirst('upstreams', '  edge: 1').split(/^(?=\w+:)/m);
  const others = ['upstreams:\n  e: {}\n', ...rest].filter((part) => !part.startsWith(section));

  const left = flawLines(others.join(''));
  const empty = flawLines(`${section}: {}\n${others.join('')}`);
  const nothing = flawLines(`${section}:\n${others.join('')}`);
  const list = flawLines(`${section}: [a]\n${others.join('')}`);

  expect(left).toContain(`c.yaml ${section}: is missing; a config has at least one ${one}`);
  expect(empty).toContain(
    `c.yaml:1:${section.length + 3} ${section}: is empty; a config has at least one ${one}`,
  );
  expect(nothing).toContain(`c.yaml:1:1 ${section}: is missing; a config has at least one ${one}`);
  expect(list).toContain(
    `c.yaml:1:${section.length + 3} ${section}: expected a mapping from names to ${section}, found a list`,
  );
});

test.each([
  [
    '{ from: [audt], to: [disk] }',
    '2:14 routes[0].from[0]: unknown source "audt"; did you mean audit?',
  ],
  [
    '{ from: [audit], to: [dsk, disk] }',
    '2:27 routes[0].to[0]: unknown sink "dsk"; did you mean disk?',
  ],
  ['{ from: audit, to: [disk] }', '2:13 routes[0].from: expected a list, found text'],
  ['{ from: [], to: [disk] }', '2:13 routes[0].from: needs at least one entry'],
  ['{ to: [disk] }', '2:5 routes[0].from: is missing; expected a list'],
  [
    '{ from: [audit], to: [disk], when: x }',
    '2:34 routes[0].when: unknown key; did you mean where?',
  ],
  [
    '{ from: [audit], to: [disk], where: "a b" }',
    "2:41 routes[0].where: this is no CEL filter: Unexpected character: 'b'; such as event.severity_id >= 3",
  ],
  [
    '{ from: [audit], to: [disk], redact: [a..b] }',
    '2:43 routes[0].redact[0]: expected a dotted path',
  ],
  ['5', '2:5 routes[0]: expected a mapping, found a number'],
])('parseConfig reports the route %s', (route, flaw) => {
  const lines = flawLines(withRoutes(route));

  expect(lines).toEqual([expect.stringContaining(`c.yaml:${flaw}`)]);
});

test('parseConfig wants routes as a list', () => {
  const lines = flawLines(aConfig({ top: 'routes: { from: [audit] }' }));

  expect(lines).toEqual(['c.yaml:1:9 routes: expected a list of routes, found a mapping']);
});

test.each([
  'a: { type: file, path: x, format: { type: json, schema: original } }',
  'a: { type: file, path: x, format: { type: json, raw_data: true } }',
  'a: { type: syslog, address: "udp://x:1", format: { type: json, schema: original } }',
  'a: { type: syslog, address: "udp://x:1", format: { type: syslog, message: original } }',
  'a: { type: syslog, address: "udp://x:1", format: { type: syslog, message: { type: json, raw_data: true } } }',
  'a: { type: otlp, url: "http://x/", format: { type: otel, raw_data: true } }',
])('parseConfig refuses to redact for the sink %s, which writes the record as sent', (sink) => {
  const route = '{ from: [audit], to: [a], redact: [actor.user] }';

  const lines = flawLines(withRoutes(route, `  ${sink}`));

  expect(lines).toEqual([
    expect.stringContaining(
      'c.yaml:2:31 routes[0].redact: the sink a writes records as upstream sent them',
    ),
  ]);
});

test.each([
  ['where: "event.severity_id >= 3"', '2:31 routes[0].where'],
  ['redact: [actor.user]', '2:31 routes[0].redact'],
])('parseConfig refuses a route with %s to a sink that proves its input', (what, place) => {
  const route = `{ from: [audit], to: [a], ${what} }`;

  const lines = flawLines(withRoutes(route, '  a: { type: archive, location: x, signing_key: k }'));

  expect(lines).toEqual([
    expect.stringContaining(
      `c.yaml:${place}: the sink a proves the responses of upstream, so it gets whole pages`,
    ),
  ]);
});

test('parseConfig knows no format of a sink that takes pages', () => {
  const sinks = '  a: { type: archive, location: x, signing_key: k, format: json }';

  expect(flawLines(withFirst('sinks', sinks))).toEqual([
    expect.stringContaining('c.yaml:2:52 sinks.a.format: unknown key'),
  ]);
});

test('parseConfig lets a route redact for a sink that writes OCSF', () => {
  expect(flawLines(withRoutes('{ from: [audit], to: [disk], redact: [actor.user] }'))).toEqual([]);
});

test('parseConfig refuses two sinks on one file, however it is written', () => {
  const sinks =
    '  a: { type: file, path: out/../x.ndjson }\n  b: { type: file, path: y }\n  c: { type: file, path: ./x.ndjson }';

  expect(flawLines(withFirst('sinks', sinks))).toEqual([
    'c.yaml:4:26 sinks.c.path: the sink a uses this path already; give each its own',
  ]);
});

test('parseConfig refuses two Kafka sinks with one transactional id', () => {
  const kafka = 'type: kafka, brokers: ["k:9092"], topic: x, exactly_once: true';
  const sinks = `  a: { ${kafka}, transactional_id: mine }\n  b: { ${kafka} }\n  c: { ${kafka}, transactional_id: mine }`;

  expect(flawLines(withFirst('sinks', sinks))).toEqual([
    expect.stringContaining(
      'sinks.c.transactional_id: the sink a uses this transactional_id already; give each its own',
    ),
  ]);
});

test('parseConfig gives notice of sources and sinks that no route names', () => {
  const text = aConfig({
    top: 'routes:\n  - { from: [audit], to: [disk] }',
    sources:
      '  audit: { type: audit_events, upstream: edge }\n  more: { type: audit_events, upstream: edge }',
    sinks: `${disk}\n  screen: { type: stdout }`,
  });

  const { notices } = parseConfig(text, 'c.yaml', configEnv());

  const routes = notices.filter(({ message }) => /no route/.test(message));
  expect(routes.map(({ line, path }) => [line, path])).toEqual([
    [8, 'sources.more'],
    [11, 'sinks.screen'],
  ]);
});

test('parseConfig gives every setting that is left out its default', () => {
  const config = parseConfig(aConfig(), 'c.yaml', configEnv());

  expect(config.state).toEqual({
    dir: `${process.cwd()}/state`,
    places: [`${process.cwd()}/state`],
    warning: null,
    maxBytes: 1024 ** 3,
    keepMs: 0,
    removedSinksMs: 86_400_000,
    sync: 'full',
    kafka: null,
  });
  expect(config.shutdown).toEqual({ timeoutMs: 10_000 });
  expect(config.log).toEqual({ level: 'info', otlp: null });
  expect(config.status).toBeNull();
  expect(config.routes).toEqual([]);
  expect(config.sources.audit?.schedule).toEqual({ everyMs: 30_000 });
  expect(config.sinks.screen).toMatchObject({
    format: { type: 'json', schema: 'ocsf', raw_data: false },
    batch: { events: 1000, bytes: 256 * 1024, waitMs: 0 },
    retry: { minMs: 1_000, maxMs: 300_000 },
  });
});

test('parseConfig reads all settings', () => {
  const text = aConfig({
    top:
      'state: { dir: /var/lib/sluice, max_bytes: 2GiB, keep: 24h, sync: normal }\n' +
      'status: { listen: "[::1]:8686", token: t }\nshutdown: { timeout: 30s }\nlog: { level: debug }\n' +
      'routes: [{ from: [audit], to: [siem], where: "event.severity_id >= 3", redact: [actor.user.name] }]',
    sources:
      '  audit: { type: audit_events, upstream: edge, schedule: "*/5 * * * *", timezone: Europe/Zurich }',
    sinks:
      '  siem: { type: syslog, address: "tcp://s:514", format: { type: cef, vendor: Acme }, batch: { events: 7, wait: 3s },' +
      ' retry: { min: 2s } }',
  });

  const config = parseConfig(text, 'c.yaml', configEnv());

  expect(config.state).toEqual({
    dir: '/var/lib/sluice',
    places: ['/var/lib/sluice'],
    warning: null,
    maxBytes: 2 * 1024 ** 3,
    keepMs: 86_400_000,
    removedSinksMs: 86_400_000,
    sync: 'normal',
    kafka: null,
  });
  expect(config.status).toMatchObject({ host: '::1', port: 8686 });
  expect(config.status?.token?.reveal()).toBe('t');
  expect(config.shutdown.timeoutMs).toBe(30_000);
  expect(config.log.level).toBe('debug');
  expect(config.routes).toEqual([
    { from: ['audit'], to: ['siem'], where: 'event.severity_id >= 3', redact: ['actor.user.name'] },
  ]);
  expect(config.sources.audit?.schedule).toEqual({
    cron: '*/5 * * * *',
    timezone: 'Europe/Zurich',
  });
  expect(config.sinks.siem).toMatchObject({
    format: { type: 'syslog', message: { type: 'cef', vendor: 'Acme', version: '1.0' } },
    batch: { events: 7, bytes: 512 * 1024, waitMs: 3_000 },
    retry: { minMs: 2_000, maxMs: 300_000 },
  });
});

test.each([
  ['{ of: tickts, id: ticket_id }', 'unknown source "tickts"; did you mean tickets?'],
  ['{ of: more, id: id }', 'form a cycle'],
  [`{ of: tickets, id: ticket_id, where: 'event.severity_id > 1' }`, 'remove where'],
  [`{ of: audit, id: id, where: 'event.severty_id > 1' }`, 'severty_id'],
  [`{ of: audit, id: id, where: 'event.' }`, 'where'],
  ['{ ids: [tkt-1, ".."] }', '".." under each.ids cannot be part of a path'],
  ['{ ids: [] }', 'each'],
  ['{ of: tickets }', 'id'],
])('parseConfig explains why parents cannot come from %s', (each, said) => {
  const lines = flawLines(
    withFirst(
      'sources',
      `  more: { type: ticket_events, upstream: ops, each: ${each} }
  tickets: { type: tickets, upstream: ops }
  audit: { type: audit_events, upstream: edge }`,
    ),
  );

  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^c.yaml:2:\d+ sources.more/);
  expect(lines[0]).toContain(said);
});

test('parseConfig finds parents that come from each other', () => {
  const lines = flawLines(
    withFirst(
      'sources',
      `  one: { type: ticket_events, upstream: ops, each: { of: two, id: a } }
  two: { type: changes, upstream: ops, each: { of: one, id: b } }`,
    ),
  );

  expect(lines.map((line) => line.replace(/^.*?sources/, 'sources'))).toEqual([
    'sources.one.each.of: one has its parents from two has its parents from one: the parents form a cycle',
    'sources.two.each.of: two has its parents from one has its parents from two: the parents form a cycle',
  ]);
});
