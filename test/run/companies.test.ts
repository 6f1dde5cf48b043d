// `companies: { file: PATH }` on the real program: companies that are added, leave and return while it runs; files that
// would remove many, are empty or missing; and a restart with fewer companies.

import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `c-${from + i}`);
const listPath = (company: string) => `/api/logs/v1/companies/${company}/web`;

/** A sandbox with 41 companies, and a config that reads those of a file. */
async function aSetup() {
  const dir = tempDir('companies-');
  const sandbox = await startSandbox({
    ...{ rate: 0, firewallEveryS: 0, events: 0, logs: 3, changeEvery: 0 },
    companies: ids(1, 41),
  });
  afterThisTest(() => sandbox.close());
  const file = join(dir, 'companies.txt');
  const out = join(dir, 'events.ndjson');
  const { clientId, clientSecret, servicesScope } = sandbox.credentials;
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    [
      `state: { dir: ${join(dir, 'state')} }`,
      'upstreams:',
      `  ops: { api: services, base_url: ${sandbox.servicesBaseUrl}, allow_http: true, companies: { file: ${file} }, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${servicesScope}" } }`,
      'sources:',
      '  web: { type: logs, upstream: ops, every: 200ms, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset } }',
      '  excluded: { type: exclusion_list, upstream: ops, every: 200ms, confirm_after: 0s, settle: 0s, removals_after: 1 }',
      'sinks:',
      `  disk: { type: file, path: ${out}, format: json }`,
    ].join('\n'),
  );
  const events = () =>
    existsSync(out)
      ? readFileSync(out, 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : [];
  const logsOf = (company: string): readonly string[] =>
    events().flatMap(({ metadata }) =>
      metadata.log_name === 'web' && metadata.tenant_uid === company ? [metadata.uid] : [],
    );
  const grow = (company: string) => sandbox.control.grow(listPath(company), 2);
  const put = (companies: readonly string[]) => writeFileSync(file, `${companies.join('\n')}\n`);
  return { dir, config, file, put, events, logsOf, grow };
}

/** What the process logs from now on with this event. */
async function nextOf(
  sluice: ReturnType<typeof startSluice>,
  event: string,
  act: () => void,
): Promise<Readonly<Record<string, unknown>>> {
  const before = sluice.stderr.length;
  act();
  const line = await waitUntil(
    () => sluice.stderr.slice(before).find((one) => one.includes(`"event":"${event}"`)),
    { what: () => `${event}; stderr: ${sluice.stderr.slice(before).join('\n')}` },
  );
  return JSON.parse(line);
}

test('companies are added, leave and return while it runs, without loss, repetition or a deletion', async () => {
  const setup = await aSetup();
  const { put, grow, events, logsOf, config } = setup;
  put(ids(1, 40));
  const sluice = startSluice(['run', '-c', config]);
  const complete = (company: string, count: number) =>
    waitUntil(() => logsOf(company).length >= count, { what: `${count} records of ${company}` });
  await Promise.all(ids(1, 40).map((company) => complete(company, 3)));
  await waitUntil(
    () => events().filter((one) => one.metadata.log_name === 'excluded').length >= 40,
    {
      what: 'the baseline of each collection',
    },
  );

  const added = await nextOf(sluice, 'config_reloaded', () => put([...ids(1, 41), 'c-41']));
  await complete('c-41', 3);
  const removed = await nextOf(sluice, 'config_reloaded', () => put(ids(3, 41)));
  for (const company of ['c-1', 'c-2', 'c-3']) grow(company);
  await complete('c-3', 5);
  const away = [logsOf('c-1').length, logsOf('c-2').length];
  await nextOf(sluice, 'config_reloaded', () => put(ids(1, 41)));
  await Promise.all([complete('c-1', 5), complete('c-2', 5)]);
  for (const company of ['c-1', 'c-2']) grow(company);
  await Promise.all([complete('c-1', 7), complete('c-2', 7)]);
  const { exitCode } = await sluice.kill();

  expect(added).toMatchObject({ reason: 'a companies file has changed', streams_added: 2 });
  expect(removed).toMatchObject({ streams_removed: 4, streams_unchanged: 78 });
  expect(away).toEqual([3, 3]);
  for (const company of ids(1, 41)) {
    const uids = logsOf(company);
    expect(uids).toHaveLength(new Set(uids).size);
    expect(uids).toHaveLength(['c-1', 'c-2'].includes(company) ? 7 : company === 'c-3' ? 5 : 3);
  }
  expect(events().filter(({ activity_name: name }) => name === 'Delete')).toEqual([]);
  expect(exitCode).toBe(0);
});

test('a file that would remove many, is empty or is missing changes nothing; a restart applies it', {
  tags: ['long'],
}, async () => {
  const setup = await aSetup();
  const { put, grow, logsOf, config, file } = setup;
  put(ids(1, 40));
  const args = ['run', '-c', config];
  const sluice = startSluice(args);
  const status = async () => (await runSluice(['status', '-c', config])).stdout;
  await waitUntil(() => logsOf('c-40').length === 3, { what: 'the records' });

  const refused = [];
  const changes = [
    () => put(ids(1, 20)),
    () => writeFileSync(file, '# none\n'),
    () => writeFileSync(file, 'c-1\n..\n'),
    () => rmSync(file),
  ];
  for (const change of changes) {
    refused.push(await nextOf(sluice, 'config_not_reloaded', change));
    if (refused.length === 1) expect(await status()).toContain(`${file} would remove 20 of 40`);
    await nextOf(sluice, 'config_unchanged', () => put(ids(1, 40)));
  }
  grow('c-40');
  await waitUntil(() => logsOf('c-40').length === 5, { what: 'c-40 to be read still' });
  await nextOf(sluice, 'config_not_reloaded', () => put(ids(1, 20)));
  await sluice.kill();
  const restarted = startSluice([...args, '--allow-removal']);
  const warned = JSON.parse(await restarted.waitForLine('companies_removed'));
  await restarted.waitForLine('"running"');
  const allowed = await nextOf(restarted, 'config_reloaded', () => put(ids(1, 2)));
  await restarted.kill();

  expect(refused[0]?.error).toContain('would remove 20 of 40 companies at once (c-21, c-22');
  expect(refused.map(({ code }) => code)).toEqual(Array(4).fill('config_invalid'));
  expect(warned).toMatchObject({ level: 'warn', upstream: 'ops', removed: 20, before: 40, file });
  expect(allowed).toMatchObject({ streams_removed: 36 });
});

test('a file behind a link, as a ConfigMap has it, is read again when the link changes', async () => {
  const setup = await aSetup();
  const { dir, file, logsOf, config } = setup;
  const version = (name: string, companies: readonly string[]) => {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, 'companies.txt'), companies.join('\r\n'));
    symlinkSync(name, join(dir, `${name}.link`));
    renameSync(join(dir, `${name}.link`), join(dir, 'data'));
  };
  version('first', ids(1, 2));
  symlinkSync(join('data', 'companies.txt'), file);
  const { stdout } = await runSluice(['check', '-c', config]);
  const sluice = startSluice(['run', '-c', config]);
  await sluice.waitForLine('"running"');

  const changed = await nextOf(sluice, 'config_reloaded', () => version('second', ids(2, 3)));
  await waitUntil(() => logsOf('c-3').length === 3, { what: 'the records of c-3' });
  await sluice.kill();

  expect(stdout).toContain(`upstream ops: 2 companies from ${file}`);
  expect(changed).toMatchObject({ streams_added: 2, streams_removed: 2, streams_unchanged: 2 });
});
