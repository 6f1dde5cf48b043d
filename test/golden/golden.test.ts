// The output that scripts, dashboards and editors rely on, kept as files beside this one: the program's help, `status
// --json`, `/status.json` and the names of `/metrics`, of a journey with working, halted and unreachable parts.
// Compared exactly, after run-dependent values are replaced by names in angle brackets. An intended change is written
// by `npx vitest run test/golden -u`, and shows in the commit.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type LiveStatus, liveStatus, storedStatus } from '../../src/watch/status-facts.ts';
import { aSetup } from '../commands/a-setup.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { freePort, waitUntil } from '../support/temp.ts';

test('every command lists its options', async () => {
  const reported = await helpOf([]);

  await expect(reported).toMatchFileSnapshot('help.txt');
  expect(reported.match(/^\$ /gm)?.length).toBeGreaterThan(20);
});

test('schema prints config/schema.json', async () => {
  const file = join(import.meta.dirname, '../../config/schema.json');

  expect(await said(['schema'])).toBe(readFileSync(file, 'utf8').trimEnd());
});

test('a run is logged in the same form as before', async () => {
  const { config, dir, url } = await aJourney();
  const asJson = () => said(['status', '-c', config, '--json']);

  const unread = await asJson();
  const sluice = startSluice(['run', '-c', config]);
  await sluice.waitForLine('the stream is halted');
  const report = await waitUntil(() => settled(url), { what: 'all to stand as it will' });
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const running = await waitUntil(async () => (await asJson()).includes('"halted"') && asJson(), {
    what: 'the halt to be noted',
  });
  await sluice.kill();
  const stopped = await asJson();

  // Both schemas know every key, at every depth.
  expect(liveStatus.parse(report)).toEqual(report);
  expect(storedStatus.parse(JSON.parse(running))).toEqual(JSON.parse(running));
  const named = (text: string) => steady(text.replaceAll(dir, '<dir>'));
  await expect(named(unread)).toMatchFileSnapshot('status-unread.json');
  await expect(named(running)).toMatchFileSnapshot('status-running.json');
  await expect(named(stopped)).toMatchFileSnapshot('status-stopped.json');
  await expect(named(JSON.stringify(report, null, 2))).toMatchFileSnapshot('report.json');
  await expect(withoutValues(metrics)).toMatchFileSnapshot('metrics.txt');
});

/** What a command line writes. */
async function said(words: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runHere(words);
  expect([words, exitCode, stderr]).toEqual([words, 0, '']);
  return stdout.trimEnd();
}

/** The help of a command and of its subcommands, each after the command line that prints it. */
async function helpOf(words: readonly string[]): Promise<string> {
  const help = await said([...words, '--help']);
  const [, list = ''] = help.split('\nCommands:\n');
  const below = [...list.matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name);
  const texts = [`$ sluice ${[...words, '--help'].join(' ')}\n${help}\n`];
  for (const name of below) texts.push(await helpOf([...words, name]));
  return texts.join('\n');
}

/** A config with streams that are read, one that upstream does not know, and a sink without a receiver. */
async function aJourney() {
  const [port, unused] = [await freePort(), await freePort()];
  const setup = await aSetup({
    sandbox: { events: 20 },
    more: [
      `  gone: { type: http, url: "http://127.0.0.1:${unused}", format: json }`,
      'routes:',
      "  - { from: [audit], to: [disk, gone], where: 'event.unmapped.nothing > 3' }",
      '  - { from: [firewall, web_logs, lost], to: [disk, gone] }',
      `status: { listen: "127.0.0.1:${port}" }`,
    ],
  });
  const text = readFileSync(setup.config, 'utf8');
  const ops = [
    `  ops: { api: services, base_url: ${setup.sandbox.servicesBaseUrl}, allow_http: true, companies: [c-1],`,
    `    auth: { client_id: sandbox-client, client_secret: sandbox-secret, scope: "${setup.sandbox.credentials.servicesScope}" } }`,
    'sources:',
  ];
  const sources = [
    '  web_logs: { type: logs, upstream: ops, every: 1h, path: "/api/logs/v1/companies/{company_id}/web",',
    '    pagination: { style: offset } }',
    '  firewall: { type: firewall, upstream: ops, every: 1h, confirm_after: 0s }',
    '  lost: { type: audit_events, upstream: edge, every: 1h, path: /nothing }',
    'sinks:',
  ];
  writeFileSync(
    setup.config,
    text
      .replace('every: 100ms', 'every: 1h')
      .replace('sources:', ops.join('\n'))
      .replace('sinks:', sources.join('\n')),
  );
  return { ...setup, url: `http://127.0.0.1:${port}` };
}

/** The report, once each part has done what it can. */
async function settled(url: string): Promise<LiveStatus | null> {
  const report = (await (await fetch(`${url}/status.json`)).json()) as LiveStatus; // sluice's own
  const [disk, gone] = report.sinks;
  // A stream that was never polled waits as well.
  const isRead = report.streams.every(({ state, checkpoint_at: at }, place) =>
    place === report.streams.length - 1 ? state === 'halted' : state === 'waiting' && at !== null,
  );
  const isSent = disk?.backlog === 0 && disk.state === 'idle' && gone?.well === false;
  if (!(isRead && isSent)) return null;
  const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1);
  const upstreams = report.upstreams.map((upstream) => ({
    ...upstream,
    throttles: upstream.throttles.toSorted(byPath), // its own order is by what is left at the moment
  }));
  return { ...report, upstreams };
}

/** What differs from run to run, as its name. */
function steady(json: string): string {
  return json
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/(127\.0\.0\.1:)\d+/g, '$1<port>')
    .replace(/process \d+ on [^"]+/g, 'process <pid> on <host>')
    .replace(/(trace_id"?:? "?)[0-9a-f]{32}/g, '$1<trace>')
    .replace(/("version": )"[^"]*"/g, '$1"<version>"')
    .replace(/req_\w{20}/g, 'req_<id>')
    .replace(/("(?:bytes|polls|retries|remaining|\w+_per_s|\w+_ms)": )[\d.]+/g, '$1"<number>"')
    .replace(/for \d+ \w+/g, 'for <time>')
    .replace(/("full_in_ms": )null/g, '$1"<number>"')
    .concat('\n');
}

/** Types, names and labels, in their order. */
function withoutValues(metrics: string): string {
  return metrics
    .replace(/^([^#].*) \S+$/gm, '$1')
    .replace(/(commit|date|node|version)="[^"]*"/g, '$1="…"');
}
