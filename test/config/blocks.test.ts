// The errors for a wrong block: the exact location, the path, and the allowed values. Sections on their own; the checks
// across sections are in together.test.ts.

import { expect, test } from 'vitest';
import { sinks } from '../../connectors/index.ts';
import { fileSink } from '../../connectors/sinks/file.ts';
import { formatsOf } from '../../formats/index.ts';
import { makeCa } from '../support/certificates.ts';
import { aConfig, configEnv, flawLines, withFirst } from './config-text.ts';

const ofFile = formatsOf(fileSink).join(', ');

test('parseConfig takes a config with the least that one needs', () => {
  expect(flawLines(aConfig())).toEqual([]);
});

test('parseConfig refuses the name of an upstream in a whole sentence', () => {
  const lines = flawLines(withFirst('upstreams', '  1st: { api: unified }'));

  expect(lines[0]).toContain('upstreams.1st: this cannot be the name of an upstream');
});

test.each([
  ['state: { max_byte: 1GiB }', '1:10 state.max_byte: unknown key; did you mean max_bytes?'],
  [
    '\u00a0\u00a0state: {}',
    '1:1 ["…"]: the line begins with the invisible character U+00A0; indent the line with blanks',
  ],
  ['\u200bstate: {}', '1:1 ["…"]: the line begins with the invisible character U+200B'],
  ['statw: {}', '1:1 statw: unknown key; did you mean state?'],
  [
    'observability: {}',
    '1:1 observability: unknown key; known: state, upstreams, sources, sinks, routes, mask, watch, status, shutdown, log',
  ],
  [
    'state: { keep: 5 }',
    '1:16 state.keep: expected a duration such as 250ms, 30s, 5m or 24h, found a number',
  ],
  [
    'state: { kafka: { brokers: ["k:1"], shards: 0 } }',
    '1:45 state.kafka.shards: expected a number of at least 1',
  ],
  ['state: { sync: half }', '1:16 state.sync: expected one of full, normal, found "half"'],
  [
    'state: { max_bytes: 12 KB }',
    '1:21 state.max_bytes: expected a size such as 64KiB, 1MiB or 1GiB',
  ],
  ['state: { max_bytes: 1KiB }', '1:21 state.max_bytes: expected a size of at least 1MiB'],
  ['state: yes', '1:8 state: expected a mapping, found text'],
  ['state:', '1:1 state: expected a mapping, found nothing; give it a value or leave the key out'],
  ['shutdown: { timeout: 10 }', '1:22 shutdown.timeout: expected a duration such as'],
  [
    'status: { listen: 8686 }',
    '1:19 status.listen: expected host:port such as 127.0.0.1:8686, found a number',
  ],
  ['status: { listen: "8686" }', '1:19 status.listen: expected host:port such as 127.0.0.1:8686'],
  ['status: {}', '1:1 status.listen: is missing; expected host:port such as 127.0.0.1:8686'],
  [
    'watch: { drift: { changes: [audit], trail: [audit] } }',
    '1:29 watch.drift.changes[0]: this source reports no configuration changes',
  ],
  [
    'log: { level: warning }',
    '1:15 log.level: expected one of debug, info, warn, error, found "warning"; did you mean warn?',
  ],
])('parseConfig reports %s', (top, flaw) => {
  const lines = flawLines(aConfig({ top }));

  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`c.yaml:${flaw}`);
});

test.each([
  [
    'edge: { api: unifed, base_url: "https://x", auth: { api_key: k } }',
    '2:16 upstreams.edge.api: expected one of unified, services, found "unifed"; did you mean unified?',
  ],
  [
    'edge: { api: unified, ends: 2026-02-30, base_url: "https://x", auth: { api_key: k } }',
    '2:31 upstreams.edge.ends: expected never, a date such as 2026-12-31 (the end of that day, UTC), or an RFC 3339 time such as 2026-12-31T12:00:00Z, found "2026-02-30"; set the date that the vendor names, or remove ends',
  ],
  [
    'edge: { api: unified, base_url: "http://api.example.com/v1", auth: { api_key: k } }',
    '2:3 upstreams.edge: http:// sends credentials in the clear',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: k, client_id: i } }',
    '2:48 upstreams.edge: auth holds an api_key or a client_id and client_secret, not both',
  ],
  [
    'edge: { api: services, base_url: "https://x", auth: { client_id: i, client_secret: s } }',
    '2:49 upstreams.edge: auth.scope is required',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: 12345 } }',
    '2:65 upstreams.edge.auth.api_key: expected text, found a number; put it in quotes',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: k }, tls: { ca_fil: x } }',
    '2:77 upstreams.edge.tls.ca_fil: unknown key; did you mean ca_file?',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: k }, tls: { ca_file: /no/ca.pem } }',
    '2:86 upstreams.edge.tls.ca_file: the file "/no/ca.pem" cannot be read: there is no such file',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: k }, companies: [a, 7] }',
    '2:85 upstreams.edge.companies[1]: expected text, found a number; put it in quotes',
  ],
  [
    'edge: { api: unified, base_url: "https://x", auth: { api_key: k }, throttle: [{ requests: 0, per: 1m }] }',
    '2:93 upstreams.edge.throttle[0].requests: expected a number of at least 1',
  ],
])('parseConfig reports the upstream %s', (block, flaw) => {
  const lines = flawLines(withFirst('upstreams', `  ${block}`));

  expect(lines).toContainEqual(expect.stringContaining(`c.yaml:${flaw}`));
  expect(lines.filter((line) => line.includes('c.yaml:2:'))).toHaveLength(1);
});

test('parseConfig wants certificate and key together', async () => {
  const { cert } = (await makeCa()).client;
  const tls = 'tls: { cert_file: /c.pem }';
  const text = withFirst('sinks', `  lake: { type: kafka, brokers: ["k:9092"], topic: t, ${tls} }`);

  const lines = flawLines(text, configEnv({}, { '/c.pem': cert }));

  expect(lines).toEqual([
    'c.yaml:2:62 sinks.lake.tls: cert_file and key_file belong together: set both or neither',
  ]);
});

test.each([
  [
    'audit: { upstream: edge }',
    '2:3 sources.audit.type: is missing; expected a source type: audit_events, ',
  ],
  [
    'audit: { type: audit_event, upstream: edge }',
    '2:18 sources.audit.type: unknown source type "audit_event"; did you mean audit_events?',
  ],
  [
    'audit: { type: 5, upstream: edge }',
    '2:18 sources.audit.type: expected a source type: audit_events, ',
  ],
  [
    'audit: audit_events',
    '2:10 sources.audit: expected a mapping with the source’s settings, found "audit_events"',
  ],
  ['audit: { type: audit_events }', '2:3 sources.audit.upstream: is missing; expected'],
  [
    'audit: { type: audit_events, upstream: edge, pageLimit: 5 }',
    '2:48 sources.audit.pageLimit: unknown key; did you mean page_limit?',
  ],
  [
    'audit: { type: audit_events, upstream: edge, page_limit: 0 }',
    '2:60 sources.audit.page_limit: expected a number of at least 1',
  ],
  [
    'audit: { type: audit_events, upstream: edge, page_limit: 1.5 }',
    '2:60 sources.audit.page_limit: expected a whole number, found one with a fraction',
  ],
  [
    'audit: { type: audit_events, upstream: edge, start: yesterday }',
    '2:55 sources.audit.start: expected beginning, now or an RFC 3339 time',
  ],
  [
    'audit: { type: audit_events, upstream: edge, every: 1s, schedule: "* * * * *" }',
    '2:59 sources.audit.schedule: every is set as well',
  ],
  [
    'audit: { type: audit_events, upstream: edge, every: 0s }',
    '2:55 sources.audit.every: expected a duration from 10ms to 365d',
  ],
  [
    'audit: { type: audit_events, upstream: edge, every: 5 }',
    '2:55 sources.audit.every: expected a duration such as 30s or 5m, or { min: 5s, max: 5m }, found a number',
  ],
  [
    'audit: { type: audit_events, upstream: edge, every: { min: 5m, max: 5s } }',
    '2:55 sources.audit.every: min is 300 s and max is 5 s; min must not be longer than max',
  ],
  [
    'audit: { type: audit_events, upstream: edge, every: { min: 5m } }',
    '2:48 sources.audit.every.max: is missing',
  ],
  [
    'audit: { type: audit_events, upstream: edge, schedule: "61 * * * *" }',
    '2:58 sources.audit.schedule: this is no cron expression: 61 is a',
  ],
  [
    'audit: { type: audit_events, upstream: edge, schedule: "0 0 31 2 *" }',
    '2:58 sources.audit.schedule: this is no cron expression: 31 2 is an impossible day',
  ],
  [
    'audit: { type: audit_events, upstream: edge, timezone: UTC }',
    '2:48 sources.audit.timezone: it belongs to schedule',
  ],
  [
    'audit: { type: audit_events, upstream: edge, schedule: "* * * * *", timezone: Europe/Zurih }',
    '2:81 sources.audit.timezone: unknown time zone "Europe/Zurih"; did you mean Europe/Zurich?',
  ],
  [
    'web: { type: logs, upstream: edge, path: /x, pagination: { stile: none } }',
    '2:62 sources.web.pagination.stile: unknown key; did you mean style?',
  ],
  [
    'web: { type: logs, upstream: edge, path: "/x/{company_id}" }',
    '2:38 sources.web: path holds {company_id}, so the upstream needs companies',
  ],
  [
    'web: { type: logs, upstream: edge, path: /x, mapping: { class: netwrk_activity } }',
    '2:66 sources.web.mapping.class: "netwrk_activity" is',
  ],
  [
    'web: { type: logs, upstream: edge, path: /x, mapping: { class: network_activity, fields: { src_endpoint.ipp: a } } }',
    '2:94 sources.web.mapping.fields["src_endpoint.ipp"]: ',
  ],
  [
    'hosts: { type: hosts, upstream: ops, detail: /hosts }',
    '2:48 sources.hosts.detail: expected {id} at the position of an entity’s id',
  ],
  [
    'hosts: { type: hosts, upstream: ops, detail: "/hosts/{id}/{host_id}" }',
    '2:48 sources.hosts.detail: only {company_id} and {id} can be in braces',
  ],
  [
    'sites: { type: sites, upstream: edge, path: "/x/{company_id}" }',
    '2:47 sources.sites.path: the unified API has no companies',
  ],
  ['sites: { type: sites, upstream: ops }', '2:35 sources.sites.upstream: sites reads an upstream'],
  [
    'sites: { type: sites, upstream: edge, params: { cursor: a } }',
    '2:41 sources.sites: params holds cursor, which paging sets itself',
  ],
  ['rules: { type: collection, upstream: edge }', '2:3 sources.rules.path: is missing; expected'],
  [
    'rules: { type: collection, upstream: ops, path: /rules, detail: "/{company_id}/rules/{id}" }',
    '2:59 sources.rules: detail holds {company_id}, so path must hold it, too',
  ],
  [
    'rules: { type: collection, upstream: edge, path: /rules, single: true, detail: "/rules/{id}" }',
    '2:74 sources.rules: detail does not go with single',
  ],
  [
    'rules: { type: collection, upstream: edge, path: /rules, id: null, detail: "/rules/{id}" }',
    '2:70 sources.rules: detail needs an id',
  ],
  [
    'tickets: { type: tickets, upstream: ops, mapping: { class: incident } }',
    '2:62 sources.tickets.mapping.class: "incident" is no OCSF class that sluice writes',
  ],
  [
    'tickets: { type: tickets, upstream: ops, mapping: { class: account_change, fields: { user.nme: a } } }',
    '2:88 sources.tickets.mapping.fields["user.nme"]: ',
  ],
  [
    '1st: { type: audit_events, upstream: edge }',
    '2:3 sources.1st: this cannot be the name of a source',
  ],
  [
    'a/b: { type: audit_events, upstream: edge }',
    '2:3 sources["a…"]: this cannot be the name of a source',
  ],
])('parseConfig reports the source %s', (block, flaw) => {
  const lines = flawLines(withFirst('sources', `  ${block}`));

  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`c.yaml:${flaw}`);
});

test.each([
  ['lake: { type: kafak }', '2:17 sinks.lake.type: unknown sink type "kafak"; did you mean kafka?'],
  [
    'lake: { type: nothing }',
    `2:17 sinks.lake.type: unknown sink type "nothing"; known: ${sinks.map(({ type }) => type).join(', ')}`,
  ],
  [
    'lake: { type: kafka, brokers: [k], topic: t }',
    '2:34 sinks.lake.brokers[0]: expected host:port',
  ],
  [
    'lake: { type: kafka, brokers: [], topic: t }',
    '2:33 sinks.lake.brokers: needs at least one entry',
  ],
  ['lake: { type: kafka, brokers: ["k:1"] }', '2:3 sinks.lake.topic: is missing; expected'],
  [
    'lake: { type: kafka, brokers: ["k:1"], topic: t, sasl: { mechanism: plan, username: u, password: p } }',
    '2:71 sinks.lake.sasl.mechanism: expected one of plain, scram-sha-256, scram-sha-512, oauthbearer, aws_msk_iam, found "plan"; did you mean plain?',
  ],
  [
    'lake: { type: kafka, brokers: ["k:1"], topic: t, sasl: { mechanism: oauthbearer, token_url: "https://i", client_id: a } }',
    '2:52 sinks.lake.sasl.client_secret: is missing; oauthbearer needs it',
  ],
  [
    'lake: { type: kafka, brokers: ["k:1"], topic: t, sasl: { mechanism: aws_msk_iam, region: eu-west-1, scope: s } }',
    '2:110 sinks.lake.sasl.scope: does not belong to aws_msk_iam; leave it out',
  ],
  [
    'lake: { type: kafka, brokers: ["k:1"], topic: t, sasl: { mechanism: oauthbearer, token_url: login.example, client_id: a, client_secret: b } }',
    '2:95 sinks.lake.sasl.token_url: expected a URL such as https://ingest.example/path',
  ],
  [
    'disk: { type: file, path: "a\\0b" }',
    '2:23 sinks.disk: path: it has a NUL character, which no file name may have',
  ],
  [
    'disk: { type: file, path: a, format: otel }',
    `2:40 sinks.disk.format: a file sink does not carry "otel"; it carries ${ofFile}`,
  ],
  [
    'disk: { type: file, path: a, format: jsn }',
    '2:40 sinks.disk.format: unknown format "jsn"; did you mean json?',
  ],
  [
    'disk: { type: file, path: a, format: 5 }',
    `2:40 sinks.disk.format: expected a format: ${ofFile}, or { type: …, … }`,
  ],
  [
    'disk: { type: file, path: a, format: { schema: ocsf } }',
    '2:40 sinks.disk.format: expected a format',
  ],
  [
    'disk: { type: file, path: a, format: { type: json, shema: ocsf } }',
    '2:54 sinks.disk.format.shema: unknown key; did you mean schema?',
  ],
  [
    'disk: { type: file, path: a, batch: { event: 5 } }',
    '2:41 sinks.disk.batch.event: unknown key; did you mean events?',
  ],
  [
    'disk: { type: file, path: a, batch: { bytes: 0B } }',
    '2:48 sinks.disk.batch.bytes: expected 1B to 64MiB',
  ],
  [
    'disk: { type: file, path: a, retry: { min: 5m, max: 1s } }',
    '2:41 sinks.disk: retry.min is longer than retry.max',
  ],
  [
    'siem: { type: syslog, address: "http://x:1" }',
    '2:34 sinks.siem.address: expected udp://, tcp://, tls://, relp:// or relps://, not http://',
  ],
  [
    'siem: { type: syslog, address: "udp://x:1", tls: {} }',
    '2:47 sinks.siem: tls is set, but udp://x:1 is not encrypted',
  ],
  [
    'siem: { type: syslog, address: "udp://x:1", format: { type: syslog, facility: kern } }',
    '2:71 sinks.siem.format.facility: facility is a key of the syslog sink itself',
  ],
  [
    'siem: { type: syslog, address: "udp://x:1", format: { type: syslog, message: xml } }',
    '2:80 sinks.siem.format.message: expected one of json, ecs, cef, leef, text, original, found "xml"',
  ],
  [
    'siem: { type: syslog, address: "udp://x:1", format: { type: syslog, message: { type: cef, vendr: x } } }',
    '2:93 sinks.siem.format.message.vendr: unknown key; did you mean vendor?',
  ],
  [
    'post: { type: http, url: "https://u:p@x/" }',
    '2:28 sinks.post.url: credentials do not go into the URL',
  ],
  [
    'post: { type: http, url: "https://x/", headers: { "a b": c } }',
    '2:53 sinks.post.headers["a…"]: expected a header name',
  ],
  [
    'disk: { type: file, path: }',
    '2:23 sinks.disk.path: expected text, found nothing; give it a value or leave the key out',
  ],
])('parseConfig reports the sink %s', (block, flaw) => {
  const lines = flawLines(withFirst('sinks', `  ${block}`));

  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`c.yaml:${flaw}`);
});

test('parseConfig reports everything at once, in the order of the file', () => {
  const text = [
    'bogus: 1',
    'upstreams: { edge: { api: x, base_url: y } }',
    'sources:',
    '  a: { type: nope, upstream: edgy }',
    '  b: { type: audit_events, upstream: edgy, page_limit: x }',
    'sinks:',
    '  s: { type: file }',
    'routes: [{ from: [c], to: [s] }]',
  ].join('\n');

  const places = flawLines(text).map((line) => line.split(': ')[0]);

  expect(places).toEqual([
    'c.yaml:1:1 bogus',
    'c.yaml:2:14 upstreams.edge.auth',
    'c.yaml:2:27 upstreams.edge.api',
    'c.yaml:2:40 upstreams.edge.base_url',
    'c.yaml:4:14 sources.a.type',
    'c.yaml:4:30 sources.a.upstream',
    'c.yaml:5:38 sources.b.upstream',
    'c.yaml:5:56 sources.b.page_limit',
    'c.yaml:7:3 sinks.s.path',
    'c.yaml:8:19 routes[0].from[0]',
  ]);
});

test('a watched resource is reported with all its flaws', () => {
  const sources =
    '  audit: { type: audit_events, upstream: edge }\n  fw: { type: firewall, upstream: ops }';
  const top = 'watch: { drift: { changes: [fw, fww], trail: [fw, audit], within: 10 } }';
  expect(flawLines(aConfig({ top, sources }))).toEqual([
    expect.stringContaining('watch.drift.changes[1]: unknown source "fww"; did you mean fw?'),
    expect.stringContaining('watch.drift.trail[0]: this source is no trail of events'),
    expect.stringContaining('watch.drift.within: expected a duration'),
  ]);
});

test('a stream cannot be expected to bring something more often than it is read', () => {
  const sources = '  audit: { type: audit_events, upstream: edge, every: 1m, expect_every: 1m }';
  expect(flawLines(aConfig({ sources }))).toEqual([
    expect.stringContaining('expect_every must be longer than every'),
  ]);
});

test('look-ups are those of the services API', () => {
  const of = (upstream: string) =>
    `  web: { type: logs, path: /x, upstream: ${upstream}, enrich: [ip_protocols] }`;
  expect(flawLines(aConfig({ sources: of('edge') }))).toEqual([
    expect.stringContaining('enrich needs an upstream with api: services'),
  ]);
  expect(flawLines(aConfig({ sources: of('ops') }))).toEqual([]);
});
