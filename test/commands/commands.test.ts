// The command line as scripts see it: names, exit codes, and what goes to stdout and stderr.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { freePort, tempDir } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

describe('the command line', () => {
  test('--help names every command for users and exits 0', async () => {
    const { stdout, exitCode } = await runSluice(['--help']);

    expect(exitCode).toBe(0);
    for (const name of [
      ...['run', 'check', 'status', 'checkpoint', 'dead-letters', 'tap', 'schema', 'sandbox'],
    ]) {
      expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    }
    expect(stdout).not.toContain('quickstart');
  });

  test.each([
    { args: [], says: 'Usage: sluice' },
    { args: ['rnu'], says: 'Did you mean run?' },
    { args: ['run'], says: '-c, --config' },
    { args: ['run', '-c', 'x.yaml', '--nonsense'], says: '--nonsense' },
    { args: ['run', '-c', 'x.yaml', '--timeout', '5s'], says: '--once' },
    { args: ['run', '-c', 'x.yaml', '--once', '--timeout', 'soon'], says: 'expected a duration' },
    { args: ['checkpoint', 'rewind', '-c', 'x.yaml', '--stream', 'a'], says: '--to' },
    { args: ['backfill', 'lst'], says: 'did you mean list?' },
    { args: ['run', 'sluice.yaml'], says: 'found sluice.yaml; name a config with -c FILE' },
    { args: ['check', '--why', 'a.yaml'], says: 'found a.yaml; name a config with -c FILE' },
    { args: ['schema', 'a.yaml'], says: 'too many arguments' },
    { args: ['sandbox', '--rate', 'fast'], says: '5/s' },
    { args: ['sandbox', '--faults', 'nowhere.yaml'], says: 'nowhere.yaml' },
  ])('$args is a usage error: exit 64, reported on stderr', async ({ args, says }) => {
    const { stdout, stderr, exitCode } = await runHere(args);

    expect(exitCode).toBe(64);
    expect(stderr).toContain(says);
    expect(stdout).toBe('');
  });

  test('schema prints a JSON Schema of the config', async () => {
    const { stdout, exitCode } = await runHere(['schema']);

    const schema = JSON.parse(stdout);
    expect(exitCode).toBe(0);
    expect(Object.keys(schema.properties)).toEqual(
      expect.arrayContaining(['state', 'upstreams', 'sources', 'sinks', 'routes']),
    );
  });
});

describe('a config that is wrong', () => {
  const commands = [
    ['run', '--once'],
    ['check'],
    ['status'],
    ['tap'],
    ['dead-letters', 'list'],
    ['checkpoint', 'show', '--stream', 'audit'],
  ];

  test.each(commands)(
    '%s %s reports every flaw with its location and exits 2',
    async (...command) => {
      const file = join(tempDir(), 'bad.yaml');
      writeFileSync(file, 'upstreams: {}\nsorces: {}\nsinks:\n  a: { type: fil }\n');

      const { stdout, stderr, exitCode } = await runHere([...command, '-c', file]);

      expect(exitCode).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain(`${file}:2:1 sorces: unknown key; did you mean sources?`);
      expect(stderr).toContain(`${file}:4:`);
    },
  );
});

describe('check', () => {
  test('shows the plan of a right config with advice, and exits 0', async () => {
    const { config } = await aSetup({
      sinks: ['  siem: { type: syslog, address: "udp://127.0.0.1:9", format: cef }'],
    });

    const { stdout, exitCode } = await runHere(['check', '-c', config]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('1 source with 1 stream, 1 sink');
    expect(stdout).toMatch(/sinks\.siem: best effort/);
    expect(stdout).toMatch(/upstreams\.edge: plain http/);
    expect(stdout).toMatch(/sources\.audit: order is auto/);
  });

  test('describes each source, and no more', async () => {
    const { config } = await aSetup({
      sources: [
        '  cases: { type: investigations, upstream: edge, each: { ids: [i-1] } }',
        '  hook: { type: webhooks, upstream: edge, listen: "[::1]:8700", path: /in, secret: hush }',
      ],
    });

    const { stdout, exitCode } = await runHere(['check', '-c', config]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('source hook: 1 stream, listens at [::1]:8700/in');
    expect(stdout).toMatch(/sources\.audit: order is auto/);
    expect(stdout).not.toMatch(/sources\.cases: order is auto/);
  });

  test('names a start in the future, whose older records are skipped', async () => {
    const late = '  late: { type: audit_events, upstream: edge, start: 2199-01-31T00:00:00Z }';
    const { config } = await aSetup({ sources: [late] });

    const { stdout, exitCode } = await runHere(['check', '-c', config]);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /note +sources\.late: start 2199-01-31T00:00:00\.000Z is in the future, and older records/,
    );
    expect(stdout).not.toMatch(/sources\.audit: start/);
  });

  test('--connect requests a token and a record from upstream, and exits 0 when all respond', async () => {
    const { config, sandbox } = await aSetup();

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/ok +upstream edge: token\nok +source audit: audit\nok +sink disk: /);
    expect(Object.keys(sandbox.control.requests())).toContain('/v1/audit/events');
  });

  test('--connect exits 3 when upstream refuses the credential, without printing it', async () => {
    const { config, sandbox } = await aSetup();
    sandbox.control.rotateSecret('another-secret');

    const { stdout, stderr, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/FAIL +upstream edge: token: /);
    expect(stdout + stderr).not.toContain('sandbox-secret');
  });

  test('--connect reports a state directory that cannot be written, and promises no retry', async () => {
    const { config } = await aSetup({
      stateDir: '/proc/state',
      sinks: ['  siem: { type: syslog, address: "tcp://127.0.0.1:1" }'],
    });

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/FAIL +state\.dir: \/proc\/state cannot hold the state/);
    expect(stdout).toMatch(/FAIL +sink siem/);
    expect(stdout).not.toMatch(/again by itself|stay held|nothing (was|is) lost/i);
  });

  test('--connect exits 3 when a sink cannot be reached, and still reports the others', async () => {
    const { config } = await aSetup({
      sinks: [
        `  siem: { type: syslog, address: "tcp://127.0.0.1:${await freePort()}", format: cef }`,
        '  screen: { type: stdout }',
      ],
    });

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/FAIL +sink siem: connection/);
    expect(stdout).toMatch(/ok +sink screen: connection/);
  });

  test('--connect requests only the first response of each collection', async () => {
    const { config, sandbox } = await aSetup({ sinks: ['  screen: { type: stdout }'] });
    writeFileSync(
      config,
      [
        'upstreams:',
        `  ops: { api: services, base_url: "${sandbox.servicesBaseUrl}", allow_http: true, companies: [c-1],`,
        '    auth: { client_id: sandbox-client, client_secret: sandbox-secret, scope: "urn:sandbox:api:public" } }',
        'sources: { firewall: { type: firewall, upstream: ops } }',
        'sinks: { screen: { type: stdout } }',
      ].join('\n'),
    );

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/ok +source firewall: firewall\/c-1\/objects/);
    expect(stdout).toMatch(/ok +source firewall: firewall\/c-1\/policies/);
    expect(Object.keys(sandbox.control.requests()).join(' ')).not.toContain('rules');
  });

  test.each([
    { ids: ['inv_700000'], exitCode: 0, says: /ok +source findings: findings/ },
    { ids: ['gone', 'inv_700000'], exitCode: 0, says: /ok +source findings: findings/ },
    { ids: ['gone', 'too'], exitCode: 3, says: /FAIL +source findings: findings: .*404/ },
  ])('--connect requests one of the parents that are named: $ids', async (given) => {
    const { config } = await aSetup({ sinks: ['  screen: { type: stdout }'] });
    const text = readFileSync(config, 'utf8').replace(
      'scope: events:read',
      'scope: "events:read intelligence:read"',
    );
    const findings = `  findings: { type: investigations, upstream: edge, each: { ids: [${given.ids}] } }`;
    writeFileSync(config, text.replace('sources:', `sources:\n${findings}`));

    const { stdout, exitCode } = await runHere(['check', '-c', config, '--connect']);

    expect(stdout).toMatch(given.says);
    expect(exitCode).toBe(given.exitCode);
  });
});

describe('sandbox', () => {
  test('prints a config that works as it stands, serves it, and ends with 0 at a signal', async () => {
    const dir = tempDir();
    const sandbox = startSluice(['sandbox', '--events', '60', '--rate', '0/s']);
    await sandbox.waitForLine('disk:');
    const printed = sandbox.stdout.join('\n');
    writeFileSync(join(dir, 'sandbox.yaml'), printed.slice(printed.indexOf('state:')));

    const { stdout, exitCode } = await runSluice(
      ['run', '-c', 'sandbox.yaml', '--once', '--timeout', '60s'],
      { cwd: dir },
    );
    const ended = await sandbox.kill('SIGINT');

    expect(stdout).toMatch(/disk: \d+ delivered, 0 held, 0 dead letters/);
    expect(exitCode).toBe(0);
    expect(ended.exitCode).toBe(0);
  });

  test('names the next step when its port is in use', async () => {
    const { sandbox } = await aSetup();

    const { stderr, exitCode } = await runSluice(['sandbox', '--port', String(sandbox.port)]);

    expect(exitCode).toBe(1);
    expect(stderr).toContain(`port ${sandbox.port}`);
    expect(stderr).toContain('choose another port');
  });
});
