// `--company` of `status` and `receipt`: the answer for one company, also where another one waits or was refused.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { countsOf } from '../../src/commands/shared/company.ts';
import type { Config } from '../../src/config/index.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { runHere } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

test('one company is delivered, while events of another wait', async () => {
  const dir = tempDir('company-');
  const sandbox = await startSandbox({ rate: 0, firewallEveryS: 0, events: 40 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret, servicesScope } = sandbox.credentials;
  const receiver = await startHttpReceiver({ answer: () => ({ answer: 'reply', status: 503 }) });
  const config = join(dir, 'sluice.yaml');
  const text = (to: string) => `
state: { dir: ${join(dir, 'state')}, keep: 1h }
upstreams:
  ops: { api: services, base_url: "${sandbox.servicesBaseUrl}", allow_http: true, companies: [c-1, c-2],
    auth: { client_id: "${clientId}", client_secret: "${clientSecret}", scope: "${servicesScope}" } }
sources:
  web: { type: logs, upstream: ops, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset } }
sinks:
  post: { type: http, url: "${receiver.url}", retry: { min: 50ms, max: 100ms } }
  disk: { type: file, path: ${join(dir, 'out.ndjson')} }
routes:
  - { from: [web], to: [post], where: 'event.metadata.tenant_uid == "${to}"' }
  - { from: [web], to: [disk] }
`;
  writeFileSync(config, text('c-1'));
  await runHere(['run', '-c', config, '--once', '--timeout', '4s', '--log-level', 'error']);
  const company = async (command: string, id: string, ...more: readonly string[]) =>
    await runHere([command, '-c', config, ...more, '--company', id]);

  const [first, second, all, unknown] = await Promise.all([
    company('status', 'c-1', '--json'),
    company('status', 'c-2', '--json'),
    runHere(['status', '-c', config, '--json']),
    company('status', 'c-9', '--json'),
  ]);

  const parsed = [first, second, all].map(({ stdout }) => JSON.parse(stdout));
  expect(parsed[0].streams.map(({ name }: { name: string }) => name)).toEqual(['web/c-1']);
  expect(parsed[1].streams.map(({ name }: { name: string }) => name)).toEqual(['web/c-2']);
  expect(parsed[2].streams).toHaveLength(2);
  const backlogs = parsed.map(({ sinks }) => sinks[0].backlog);
  expect(backlogs[0]).toBeGreaterThan(0);
  expect(backlogs[0] + backlogs[1]).toBe(backlogs[2]);
  expect(unknown.exitCode).toBe(64);
  expect(unknown.stderr).toContain('there is no company c-9');

  const disk = await company('receipt', 'c-2', '--sink', 'disk', '--json');
  const post = await company('receipt', 'c-1', '--sink', 'post', '--json');
  expect(JSON.parse(disk.stdout)).toMatchObject({
    ...{ company: 'c-2', whole: true, waiting: 0, refused: 0 },
    streams: [{ name: 'web/c-2' }],
  });
  expect(JSON.parse(post.stdout)).toMatchObject({ company: 'c-1', whole: false });
  expect([disk.exitCode, post.exitCode]).toEqual([0, 1]);
  const text2 = await company('receipt', 'c-2', '--sink', 'disk');
  expect(text2.stdout).toContain('company: c-2');

  // A copy has no pages: the waiting events of all companies count, never fewer.
  const stored = { state: { dir: join(dir, 'state') }, routes: [] } as unknown as Config;
  const copied = countsOf({ config: stored, isCopy: true }, 'c-1', new Map([['post', 0]]));
  expect(copied.get('post')).toEqual({ waiting: backlogs[2], refused: 0 });
});
