// `sluice succession plan`: its output is YAML for every parser and a config for `check` as soon as the open paths are
// filled in; it has the questions for the vendor, and prints no secret.

import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { startMovingUpstreams } from '../support/moving/upstreams.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const strict = { version: '1.2', schema: 'core', strict: true, uniqueKeys: true } as const;
const plainSecret = 'k-0123456789abcdef';

const edge = `  edge: { api: unified, base_url: "https://api.example.com/v1", auth: { api_key: ${plainSecret} } }`;
const ops = `  ops: { api: services, base_url: "https://svc.example.invalid", auth: { client_id: "\${env:OPS_ID}", client_secret: "\${env:OPS_SECRET}", scope: "urn:v:api" }, companies: [c-1] }`;

/** Every kind of source of the earlier API. */
const allSources = `
  audit: { type: audit_events, upstream: edge, every: 5s, id: eventId, time: [eventTime, meta.createdAt], expect_every: 1h, page_limit: 50 }
  tickets: { type: collection, upstream: edge, path: /tickets, id: ticketId, ignore: [updatedAt], pagination: { style: page } }
  hosts: { type: collection, upstream: edge, path: /v0/hosts, id: hostId, pagination: { style: page }, removals_after: 3 }
  blocks: { type: collection, upstream: edge, path: /utp/blocklist, id: entryId, pagination: { style: page } }
  allowed: { type: collection, upstream: edge, path: /utp/exceptions, id: entryId }
  sites: { type: sites, upstream: edge, schedule: "*/5 * * * *" }
  ticket_list: { type: logs, upstream: edge, path: /tickets, id: ticketId, params: { openOnly: "1" } }
  ticket_times: { type: incident_timeline, upstream: edge, path: "/tickets/{parent_id}/events", each: { of: tickets, id: ticketId } }
  incidents: { type: incident_timeline, upstream: edge, each: { ids: [INC-1] } }
  finds: { type: investigations, upstream: edge, each: { ids: [inv_1] } }
  flows: { type: logs, upstream: edge, path: /flows, mapping: { class: network_activity, fields: { src_endpoint.ip: clientIP, dst_endpoint.ip: server.ipAddress } } }
  hooks: { type: webhooks, upstream: edge, listen: "127.0.0.1:8443", secret: "${plainSecret}" }`;

function aConfig(upstreams: string, sources: string, rest = '  out: { type: stdout }'): string {
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(
    file,
    `# ${plainSecret}\nupstreams:\n${upstreams}\nsources:${sources}\nsinks:\n${rest}\n`,
  );
  return file;
}

async function planned(file: string) {
  const { stdout, stderr, exitCode } = await runHere(['succession', 'plan', '-c', file]);
  const document = parseDocument(stdout, strict);
  expect([exitCode, stderr, document.errors, document.warnings]).toEqual([0, '', [], []]);
  return { text: stdout, value: document.toJS() };
}

/** Fills each open path in, as an operator does. */
function filled(text: string): string {
  return text.replace(/path: null(.*)$/gm, 'path: "/api/x/v1/companies/{company_id}/y"$1');
}

async function checked(text: string) {
  const file = join(tempDir(), 'planned.yaml');
  writeFileSync(file, text);
  return await runHere(['check', '-c', file], { OPS_ID: 'id', OPS_SECRET: 'secret' });
}

describe.each([
  ['a new upstream', edge],
  ['the upstream of the config', `${edge}\n${ops}`],
])('with %s', (_, upstreams) => {
  test('every source has a successor of its kind, and check accepts the result', async () => {
    const { text, value } = await planned(aConfig(upstreams, allSources));
    const withParents = filled(text).replace(
      /(incidents_next:\n(?: {4}.*\n)*? {4}path: )"[^"]*"/,
      '$1"/api/x/v1/companies/{company_id}/incidents/{parent_id}/timeline"',
    );
    const before = await checked(text);
    const after = await checked(withParents);

    expect(before).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/audit_next\.path/),
    });
    expect(after).toMatchObject({ exitCode: 0, stderr: '' });
    const { sources } = value;
    expect(Object.keys(sources).slice(0, 10)).toEqual([
      ...['audit_next', 'tickets_next', 'hosts_next', 'blocks_next', 'allowed_next', 'sites_next'],
      ...['ticket_list_next', 'ticket_times_next', 'incidents_next', 'flows_next'],
    ]);
    expect(sources).toMatchObject({
      audit_next: {
        ...{ type: 'logs', path: null, every: '5s', expect_every: '1h', page_limit: 50 },
        ...{ id: 'event_id', time: ['event_time', 'meta.created_at'] },
        succeeds: { source: 'audit' },
      },
      tickets_next: { type: 'tickets', id: 'ticket_id', ignore: ['updated_at'], removals: true },
      hosts_next: { type: 'hosts', id: 'host_id', removals_after: 3 },
      blocks_next: { type: 'block_list', id: 'entry_id' },
      allowed_next: { type: 'exclusion_list' },
      sites_next: { type: 'collection', path: null, kind: 'site', schedule: '*/5 * * * *' },
      ticket_list_next: {
        ...{ type: 'logs', path: '/api/ticketing/v1/companies/{company_id}/tickets' },
        pagination: { style: 'offset' },
      },
      ticket_times_next: { type: 'ticket_events', each: { of: 'tickets_next', id: 'ticket_id' } },
      incidents_next: { type: 'ticket_events', path: null, each: { ids: ['INC-1'] } },
      flows_next: {
        mapping: {
          class: 'network_activity',
          fields: { 'src_endpoint.ip': 'client_ip', 'dst_endpoint.ip': 'server.ip_address' },
        },
      },
    });
    for (const of of ['finds', 'hooks']) expect(text).toContain(`no successor proposed for ${of}`);
    expect(text).toContain('params of the source (openOnly) are not carried over');
    expect(text.match(/question for the vendor: which path of the logs API/g)?.length).toBe(2);
  });
});

test('no secret is printed, references stay', async () => {
  const { text, value } = await planned(aConfig(`${edge}\n${ops}`, allSources));

  expect(text).not.toContain(plainSecret);
  expect(value.upstreams.ops.auth.client_secret).toBe('${env:OPS_SECRET}');
});

test.each([
  ['services', `${ops}`, '\n  tickets: { type: tickets, upstream: ops }', 'ops'],
  [
    'ends: never',
    edge.replace('api: unified,', 'api: unified, ends: never,'),
    '\n  audit: { type: audit_events, upstream: edge }',
    'edge',
  ],
])(
  'where no upstream ends (%s) it says so, and exits with 0',
  async (_, upstreams, sources, name) => {
    const file = aConfig(upstreams, sources);
    const { text, value } = await planned(file);

    expect(text).toBe(`# ${file}: no upstream ends (${name}), so no source needs a successor.\n`);
    expect(value).toBeNull();
  },
);

test('a source that has a successor gets no other', async () => {
  const file = aConfig(
    `${edge}\n${ops}`,
    `
  audit: { type: audit_events, upstream: edge }
  log: { type: logs, upstream: ops, path: /api/logs/v1/audit, succeeds: { source: audit } }`,
  );
  const { text } = await planned(file);

  expect(text).toBe(
    `# ${file}: each source of an upstream that ends has a successor.\n# sources.audit: log\n`,
  );
});

test('a services API that ends: its sources keep type and names, and their paths are open', async () => {
  const file = aConfig(
    ops.replace('api: services,', 'api: services, ends: "2027-06-30",'),
    `
  tickets: { type: tickets, upstream: ops, ignore: [updatedAt] }
  web: { type: logs, upstream: ops, path: /api/logs/v1/web, pagination: { style: offset } }`,
  );
  const { text, value } = await planned(file);

  expect(text).toContain('upstreams.ops ends: 2027-06-30T23:59:59.000Z (upstreams.ops.ends)');
  expect(value.sources).toMatchObject({
    tickets_next: { type: 'tickets', upstream: 'ops', path: null, ignore: ['updatedAt'] },
    web_next: { type: 'logs', path: null, pagination: { style: 'offset' } },
  });
  expect(await checked(filled(text))).toMatchObject({ exitCode: 0, stderr: '' });
});

describe('with the new API at hand', () => {
  const anUpstream = (name: string, settings: object) => `  ${name}: ${JSON.stringify(settings)}`;

  test('one record of each side proposes ids and times', async () => {
    const pair = await startMovingUpstreams({ ids: { new: 'unrelated' } });
    pair.addMany(3);
    pair.setTicket(1);
    const { old, new: later } = pair.upstreams;
    const file = aConfig(
      `${anUpstream('old', old)}\n${anUpstream('new', later)}`,
      `
  tickets: { type: logs, upstream: old, path: /tickets, id: number, time: [opened], pagination: { style: page } }
  entities: { type: collection, upstream: old, path: /tickets, id: ticketId, pagination: { style: page } }
  audit: { type: logs, upstream: old, path: /audit, time: [eventTime], pagination: { style: page } }`,
    );
    const { text, value } = await planned(file);

    expect(value.sources.tickets_next).toMatchObject({ id: 'ticket_id', time: ['created_at'] });
    expect(value.sources.entities_next).toMatchObject({ type: 'tickets', id: 'ticket_id' });
    expect(text).toContain('id: the new record has no field number');
    expect(text).toContain('time: the new record has no time at opened; these fields are times');
    expect(text).not.toMatch(/moving-(key|secret|token)|ticket 1/);
    expect(value.sources.audit_next).toMatchObject({ path: null, time: ['event_time'] });
    expect(pair.requests('old')).toBeLessThan(12);
  });

  test.each(['refused', 401, 404, 'reset'] as const)(
    'an old API that is dead already (%s) is a note',
    async (how) => {
      const pair = await startMovingUpstreams();
      pair.setTicket(1);
      await pair.die('old', how);
      const { old, new: later } = pair.upstreams;
      const file = aConfig(
        `${anUpstream('old', old)}\n${anUpstream('new', later)}`,
        '\n  tickets: { type: collection, upstream: old, path: /tickets, id: ticketId }',
      );
      const { text, value } = await planned(file);

      expect(text).toContain('the old list cannot be read: ');
      expect(value.sources.tickets_next).toMatchObject({ type: 'tickets', id: 'ticket_id' });
    },
  );

  test('the lists of the sandbox, in both readings', async () => {
    const sandbox = await startSandbox({ earlier: {}, rate: 0, events: 20 });
    afterThisTest(() => sandbox.close());
    const { apiKey, clientId, clientSecret, servicesScope } = sandbox.credentials;
    const plain = { allow_http: true };
    const upstreams = [
      anUpstream('old', {
        ...{ api: 'unified', base_url: sandbox.earlierBaseUrl, ...plain },
        auth: { api_key: apiKey },
      }),
      anUpstream('edge', {
        ...{ api: 'unified', base_url: sandbox.unifiedBaseUrl, ...plain },
        auth: { api_key: apiKey },
      }),
      anUpstream('new', {
        ...{ api: 'services', base_url: sandbox.servicesBaseUrl, ...plain },
        auth: { client_id: clientId, client_secret: clientSecret, scope: servicesScope },
        companies: ['1001', '1002'],
      }),
    ];
    const file = aConfig(
      upstreams.join('\n'),
      `
  audit: { type: audit_events, upstream: edge }
  sites: { type: sites, upstream: edge }
  hosts: { type: collection, upstream: old, path: /hosts, id: hostId, pagination: { style: page } }
  blocks: { type: collection, upstream: old, path: /utp/block-list, id: entryId, pagination: { style: page } }`,
    );
    const { text, value } = await planned(file);

    expect(text).not.toMatch(/cannot be (read|compared)|has no field|ids look different/);
    expect(text).not.toContain('deprecated');
    expect(value.sources).toMatchObject({
      ...{ audit_next: { path: null }, sites_next: { path: null } },
      ...{ hosts_next: { id: 'host_id' }, blocks_next: { id: 'entry_id' } },
    });
  });

  test('references without a value: nothing is requested, and it says why', async () => {
    const { text } = await planned(aConfig(`${edge}\n${ops}`, allSources));

    expect(text).toContain(
      'Not compared with records, because these have no value here: ${env:OPS_ID}, ${env:OPS_SECRET}',
    );
  });
});

test('names that are taken, hostile names and texts', async () => {
  const file = aConfig(
    edge,
    `
  audit: { type: audit_events, upstream: edge, id: "x\\n  y: 1 # z", time: ["a: b", "'", "true", "\\u2028", "1e3"] }
  audit_next: { type: audit_events, upstream: edge, params: { "a\\nb: c": "d" } }`,
  );
  const { text, value } = await planned(file);

  expect(Object.keys(value.sources).slice(0, 2)).toEqual(['audit_next_2', 'audit_next_next']);
  expect(value.sources.audit_next_2).toMatchObject({
    ...{ id: 'x\n  y: 1 # z', time: ['a: b', "'", 'true', '\u2028', '1e3'] },
  });
  expect(await checked(filled(text))).toMatchObject({ exitCode: 0 });
});

const hasPyYaml = spawnSync('python3', ['-c', 'import yaml']).status === 0;

test.skipIf(!hasPyYaml)(
  'PyYAML reads the same values (skipped where python3 has no yaml)',
  async () => {
    const { text, value } = await planned(aConfig(`${edge}\n${ops}`, allSources));
    const script = 'import sys, json, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))';

    const read = execFileSync('python3', ['-c', script], { input: text, encoding: 'utf8' });

    expect(JSON.parse(read)).toEqual(value);
  },
);

test('as a program of its own, with standard output for a file', async () => {
  const file = aConfig(edge, '\n  audit: { type: audit_events, upstream: edge }');
  const { exitCode, stdout, stderr } = await runSluice(['succession', 'plan', '-c', file]);

  expect([exitCode, stderr]).toEqual([0, '']);
  expect(await checked(filled(stdout))).toMatchObject({ exitCode: 0 });
});
