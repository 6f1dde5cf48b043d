// Paths in filters and redactions: a typo is reported with its location and a similar name, and no path that an event
// has is refused, as real records show.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pathFlaw } from '../../src/config/event-paths.ts';
import { isObject } from '../../src/contracts/json.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { aSetup } from '../commands/a-setup.ts';
import { aContext, aUid } from '../normalise/ocsf.ts';
import { runHere, runOnceHere } from '../support/cli.ts';
import { describeWithShared } from '../support/shared.ts';
import { aConfig, flawLines } from './config-text.ts';

const sources = [
  '  audit: { type: audit_events, upstream: edge }',
  '  fw: { type: firewall, upstream: ops }',
  '  hosts: { type: hosts, upstream: ops }',
  '  tickets: { type: tickets, upstream: ops, mapping: { class: account_change, fields: { user.name: a } } }',
  '  hooks: { type: webhooks, upstream: edge, listen: "127.0.0.1:9", secret: x }',
  '  web: { type: logs, upstream: ops, path: /x, mapping: { class: http_activity, fields:',
  '    { src_endpoint.ip: a, dst_endpoint.ip: b, http_request.http_method: m, http_response.code: c } } }',
].join('\n');

/** The reports about a route from there. */
function reported(from: string, rest: string): readonly string[] {
  return flawLines(
    aConfig({ sources, top: `routes:\n  - { from: [${from}], to: [screen], ${rest} }` }),
  );
}

const where = (from: string, text: string) => reported(from, `where: ${JSON.stringify(text)}`);

test.each([
  ['evnt.severity_id >= 3', 'Unknown variable: evnt; did you mean event?'],
  ['event.severty_id >= 3', 'no event of these sources has severty_id; did you mean severity_id?'],
  ['event["severty_id"] >= 3', 'has severty_id; did you mean severity_id?'],
  ['has(event.actor.usr)', 'has actor.usr; did you mean user?'],
  ['event.?actor.?user.?nme.orValue("") == ""', 'has actor.user.nme; did you mean name?'],
  ['event.resources.exists(r, r.nme == "x")', 'has resources[].nme; did you mean name?'],
  ['event.resources.filter(r, r.name == "")[0].nme == ""', 'resources[].nme; did you mean name?'],
  ['cel.bind(u, event.actor, u.usr.name == "x")', 'has actor.usr; did you mean user?'],
  [
    'event.resources.name == "x"',
    'resources is a list; for any element: event.resources.exists(one, one.name …)',
  ],
  ['event.api.operation.x == 1', 'api.operation is a value, and has no x'],
  ['event.metadata.log_nam == "x"', 'has metadata.log_nam; did you mean log_name?'],
  ['event.query.hostname == "x"', 'has query; those of dns_activity have it'],
  ['event.severity_id', 'severity_id is neither true nor false'],
  ['event.actor.user', 'actor.user is neither true nor false'],
  ['!event.severity_id', 'severity_id is neither true nor false'],
  ['event.severity_id >= 3 || event.message', 'message is neither true nor false'],
  ['event.severity_id ? true : false', 'severity_id is neither true nor false'],
  ['event.severity_id + 1', 'it gives int, and not true or false'],
  ['source', 'it gives string, and not true or false'],
  ['event.message.lowr() == "x"', 'found no matching overload'],
  ['event.severity_id > "3"', 'severity_id is a number, and "3" is a text'],
  ['event.severity_id in ["4"]', 'severity_id is a number, and "4" is a text'],
  ['event.message != 3', 'message is a text, and 3 is a number'],
  ['"x" == event.actor.user', 'actor.user is an object, and "x" is a text'],
  ['event.resources.exists(r, r.name == true)', 'resources[].name is a text, and true is true or'],
  ['event.resources == "x"', 'resources is a list, and "x" is a text'],
  ['source == "audt"', 'this route has no source "audt"; did you mean audit?'],
  ['source in ["audit", "web"]', 'this route has no source "web"'],
])('the filter %s is refused', (filter, why) => {
  const lines = where('audit', filter);

  expect(lines).toEqual([expect.stringMatching(/^c\.yaml:2:43 routes\[0\]\.where: /)]);
  expect(lines[0]).toContain(why);
});

test('events of webhooks have the fields of audit records, unless a mapping sets others', () => {
  expect(where('hooks', 'event.entity.name == "x" || event.api.operation == "y"')).toEqual([]);
  expect(where('hooks', 'event.query.hostname == "x"')[0]).toContain('has query');
});

test('events of a resource have the fields of changes, and those of a mapping or an inventory', () => {
  expect(where('hosts', 'event.device.ip == "x" || event.entity.name == "x"')).toEqual([]);
  expect(where('tickets', 'event.user.name == "x" || event.entity.name == "x"')).toEqual([]);
  expect(where('fw', 'event.user.name == "x"')[0]).toContain('has user');
});

test.each([
  ['audit', 'event.severity_id >= 3 && source == "audit" && stream != ""'],
  ['audit', 'event.is_alert'],
  ['audit', 'event.unmapped.any.thing == 3'],
  ['audit', 'event.resources.exists(r, r.data.before.rules[0] == 1)'],
  ['audit', 'event.resources.map(r, r.uid).exists(u, u == "")'],
  [
    'audit',
    'event.metadata.uid != "" && event.metadata.product.name == "x" && event.class_uid == 6003',
  ],
  ['audit, web', 'event.http_request.url.path == "/" || event.api.operation == "x"'],
  ['fw', 'event.entity.data.action == "allow" && event.entity.type == "rule"'],
  ['fw', 'event.app.name == "sluice"'],
])('of events from %s the filter %s is taken', (from, filter) => {
  expect(where(from, filter)).toEqual([]);
});

describe('a redaction', () => {
  test('a path that no event has is refused, each with its location', () => {
    const lines = reported(
      'audit',
      'redact: [actor.usr.email_addr, actor.user.email_addr, usr, src_endpoint.ip.x]',
    );

    expect(lines).toEqual([
      'c.yaml:2:45 routes[0].redact[0]: no event of these sources has actor.usr; did you mean user?',
      'c.yaml:2:90 routes[0].redact[2]: no event of these sources has usr; did you mean user?',
      'c.yaml:2:95 routes[0].redact[3]: src_endpoint.ip is a value, and has no x',
    ]);
  });

  test('reaches into lists, and below open objects', () => {
    const paths =
      'actor.user.email_addr, resources.name, resources.data.before.secret, unmapped.x.y, raw_data';

    expect(reported('audit, fw', `redact: [${paths}]`)).toEqual([]);
  });

  test('that came through a reference is not repeated', () => {
    const text = aConfig({
      sources,
      top: `routes:\n  - { from: [audit], to: [screen], redact: ["\${env:PATH_OF}"] }`,
    });

    const lines = flawLines(text, { env: { PATH_OF: 'actor.hunter2' } });

    expect(lines).toEqual([expect.stringContaining('has [hidden].[hidden]')]);
  });
});

test('check, test and run refuse a filter with a slip of the pen', async () => {
  const { config, dir } = await aSetup({
    more: ['routes:', "  - { from: [audit], to: [disk], where: 'event.severty_id >= 3' }"],
  });

  const tests = join(dir, 'tests.yaml');
  writeFileSync(
    tests,
    'config: sluice.yaml\ntests: [{ name: a, source: audit, record: { id: "1" }, event: {} }]',
  );

  const ends = await Promise.all([
    runHere(['check', '-c', config]),
    runOnceHere(config),
    runHere(['test', tests]),
  ]);

  for (const { exitCode, stderr } of ends) {
    expect([exitCode, stderr]).toEqual([
      2,
      expect.stringContaining(`${config}:14:41 routes[0].where`),
    ]);
  }
  expect(readdirSync(dir)).not.toContain('state');
});

/** Every path of a value, lists looked into. */
function pathsOf(value: unknown): readonly (readonly string[])[] {
  if (Array.isArray(value)) return value.flatMap(pathsOf);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    [key],
    ...pathsOf(inner).map((path) => [key, ...path]),
  ]);
}

describeWithShared('paths of real records', ['data', 'samples'], (dir) => {
  test.each(['audit', 'auth', 'dns', 'web', 'firewall', 'ids'])('of %s are all taken', (name) => {
    const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
    const lines = readFileSync(join(dir, `${name}.ndjson`), 'utf8')
      .trim()
      .split('\n');
    const paths = new Map(
      lines
        .flatMap((line) => pathsOf(normalise(JSON.parse(line), aUid, aContext('audit'))))
        .map((path) => [path.join('.'), path]),
    );
    const classes = ['api_activity', 'entity_management', 'authentication', 'base_event'] as const;

    const flaws = [...paths.values()].flatMap((path) => pathFlaw(path, classes, 'each') ?? []);

    expect(paths.size).toBeGreaterThan(10);
    expect(flaws).toEqual([]);
  });
});

test('check --why shows the effect of filters and redactions on stored events', async () => {
  const { config } = await aSetup({
    sandbox: { events: 40 },
    sinks: ['  post: { type: http, url: "http://127.0.0.1:1/", format: json }'],
    more: [
      'routes:',
      "  - { from: [audit], to: [post], where: 'event.severity_id >= 0', redact: [actor.user.name, dst_endpoint.mac] }",
      "  - { from: [audit], to: [post], where: 'event.severity_id > 90' }",
      "  - { from: [audit], to: [post], where: 'event.unmapped.nowhere == 1' }",
    ],
  });
  const nothing = await runHere(['check', '-c', config, '--why']);
  await runHere(['run', '-c', config, '--once', '--timeout', '3s', '--log-level', 'error']);

  const { stdout, exitCode } = await runHere(['check', '-c', config, '--why']);

  expect(nothing.stdout).toContain('no event is held to look at');
  expect(exitCode).toBe(0);
  expect(stdout).toContain('routes[0].where: passes 40 of 40\n');
  expect(stdout).toMatch(/routes\[0\]\.redact actor\.user\.name: present in \d+ of 40\n/);
  expect(stdout).toContain('routes[0].redact dst_endpoint.mac: never present in 40\n');
  expect(stdout).toContain('routes[1].where: passes 0 of 40: it never matched\n');
  expect(stdout).toContain('routes[2].where: could not judge 40 events, which pass: No such key');
});
