// `npx node deploy/siem/first-alert.ts --url http://127.0.0.1:9200`: from nothing to an alert. Starts a sandbox with planted
// attacks, and sluice with an `elasticsearch` sink, then runs the detection rules until each attack of the audit trail has
// an alert. All files are in a temporary directory, and the indices have a name of their own.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Ask, clusterAt, queryRules } from './query-rules.ts';

const usage = `Usage: npx node deploy/siem/first-alert.ts --url URL [--within SECONDS] [--keep]

  --url URL  address of OpenSearch or Elasticsearch; the header Authorization is read from SIEM_AUTHORIZATION
  --within   time for all alerts; default: 60
  --keep     keep the indices first-alert-*
Exit code: 0 each attack of the audit trail has an alert, 1 an error or not all alerts in time.`;

const sluice = fileURLToPath(new URL('../../src/boot/sluice.js', import.meta.url));
/** These need more than a minute: a change without an audit event, a silent source. */
const later = new Set(['sluice_change_unexplained', 'sluice_source_silent']);

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    within: { type: 'string', default: '60' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const children: ChildProcess[] = [];

function started(args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [sluice, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  return child;
}

/** The addresses in the lines that the sandbox prints. */
async function sandboxAt(): Promise<string> {
  const child = started(['sandbox', '--attacks', '--rate', '0']);
  if (child.stdout === null) throw new Error('the sandbox has no output');
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /# sandbox: listening on (\S+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the sandbox ended');
}

function configOf(sandbox: string, url: string, index: string, dir: string): string {
  const auth = process.env.SIEM_AUTHORIZATION;
  return `state: { dir: ${JSON.stringify(join(dir, 'state'))} }
upstreams:
  edge:
    api: unified
    ends: never
    base_url: ${sandbox}/v1
    allow_http: true
    auth: { client_id: sandbox-client, client_secret: sandbox-secret, scope: "events:read" }
sources:
  audit: { type: audit_events, upstream: edge, every: 5s }
sinks:
  siem: { type: elasticsearch, url: ${JSON.stringify(url)}, index: "${index}-{class}-{date}"${
    auth === undefined ? '' : ', headers: { Authorization: "${env:SIEM_AUTHORIZATION}" }'
  } }
`;
}

/** Resolves when the process ends with code 0; otherwise rejects with its last lines. */
async function ended(child: ChildProcess, what: string): Promise<void> {
  let said = '';
  child.stderr?.on('data', (data) => {
    said = `${said}${data}`.slice(-2_000);
  });
  child.stdout?.resume();
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${said}`);
}

/** Prints the first alert of each rule; resolves to whether all came in time. */
async function alertsOf(ask: Ask, index: string, startMs: number): Promise<boolean> {
  const limitMs = Number(values.within) * 1000;
  const waiting = new Set(
    queryRules()
      .map(({ name }) => name)
      .filter((name) => !later.has(name)),
  );
  while (Date.now() - startMs < limitMs) {
    await ask('POST', `/${index}-*/_refresh`);
    for (const rule of queryRules()) {
      if (!waiting.has(rule.name)) continue;
      const [alert] = await rule.run(ask, { index: `${index}-*`, since: 'now-15m' });
      if (alert === undefined) continue;
      waiting.delete(rule.name);
      const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
      console.log(`${seconds.padStart(5)} s  ALERT ${alert.level} ${alert.title} | ${alert.text}`);
    }
    if (waiting.size === 0) return true;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  console.error(`no alert within ${limitMs / 1000} s of: ${[...waiting].join(', ')}`);
  return false;
}

async function main(): Promise<number> {
  const { url } = values;
  if (values.help || url === undefined) {
    console.log(usage);
    return values.help ? 0 : 64;
  }
  const startMs = Date.now();
  const dir = mkdtempSync(join(tmpdir(), 'sluice-first-alert-'));
  // Another beginning than the default, since templates of one priority must not overlap.
  const index = `first-alert-${process.pid}`;
  const ask = clusterAt(url, process.env.SIEM_AUTHORIZATION);
  try {
    const config = join(dir, 'sluice.yaml');
    writeFileSync(config, configOf(await sandboxAt(), url, index, dir));
    await ended(started(['check', '--setup', '-c', config]), 'check --setup');
    await ended(started(['run', '--once', '-c', config]), 'run --once');
    return (await alertsOf(ask, index, startMs)) ? 0 : 1;
  } finally {
    for (const child of children) child.kill();
    rmSync(dir, { recursive: true, force: true });
    if (!values.keep) {
      await ask('DELETE', `/_index_template/${index}-ecs`).catch(() => undefined);
      await ask('DELETE', `/${index}-*`).catch(() => undefined);
    }
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(`first-alert: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
