// The real program, killed with SIGKILL at random moments while it archives the sandbox's responses, and restarted, as
// often as requested. At the end the archive must verify, and have each event of a file sink of the same config, once.
// `npm run archive-kills` runs it for long, archive-kills/kills.test.ts for a short while.

import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { signingKeyText } from '../../src/archive/note.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';

/** How the program is treated. */
export interface KillsOptions {
  readonly kills: number;
  /** 0 up to 1, as Math.random. */
  readonly random: () => number;
  readonly dir: string;
  readonly tell?: (line: string) => void;
}

/** The result. */
export interface KillsResult {
  /** Exit code of `archive verify`, and what it printed. */
  readonly verified: number | null;
  readonly report: string;
  /** Uids of the archive in order, and of the file. */
  readonly archived: readonly string[];
  readonly filed: readonly string[];
  /** Processes that had started to write when they were killed. */
  readonly starts: number;
  readonly entries: number;
}

const claimsMax = 6;
/** A checkpoint takes about so long. */
const stepMsMax = 100;
const verifyWithinMs = 120_000;

/** Some claims after its start, of which each checkpoint has one, and a while: at any step. */
async function momentOf(location: string, random: () => number): Promise<void> {
  const file = join(location, 'writer');
  const renewed = () => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (let left = Math.floor(random() * claimsMax); left > 0; left -= 1) {
    const before = renewed();
    await waitUntil(() => renewed() !== before, { what: 'a claim', everyMs: 2 }).catch(() => 0);
  }
  await delay(random() * stepMsMax);
}

/** Kills it so many times, lets it end well, and looks. */
export async function runKills({ kills, random, dir, tell }: KillsOptions): Promise<KillsResult> {
  const sandbox = await startSandbox({ events: 300, logs: 200, rate: 40, firewallEveryS: 2 });
  const { clientId, clientSecret } = sandbox.credentials;
  const location = join(dir, 'archive');
  const config = join(dir, 'sluice.yaml');
  const auth = `{ client_id: ${clientId}, client_secret: "\${env:SECRET}", scope: `;
  writeFileSync(join(dir, 'key'), signingKeyText('archive.test', Buffer.alloc(32, 1)));
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: { api: unified, ends: never, base_url: "${sandbox.unifiedBaseUrl}", allow_http: true, auth: ${auth} "events:read" } }
  ops: { api: services, base_url: "${sandbox.servicesBaseUrl}", allow_http: true, companies: [c-1, c-2], auth: ${auth} "urn:sandbox:api:public" } }
sources:
  audit: { type: audit_events, upstream: edge, every: 100ms, page_limit: 10 }
  web: { type: logs, upstream: ops, every: 100ms, path: "/api/logs/v1/companies/{company_id}/web", pagination: { style: offset }, order_by: timestamp, order: oldest_first, page_limit: 20 }
  firewall: { type: firewall, upstream: ops, every: 1s, confirm_after: 0s }
sinks:
  proof: { type: archive, location: ${location}, signing_key: "\${file:${dir}/key}", checkpoint_every: 20ms, batch: { wait: 1ms } }
  disk: { type: file, path: ${dir}/events.ndjson, fsync: false }
`,
  );
  const env = { SECRET: clientSecret };
  try {
    for (let kill = 1; kill <= kills; kill += 1) {
      const sluice = startSluice(['run', '-c', config, '--log-level', 'warn'], { env });
      await Promise.race([momentOf(location, random), sluice.exited]);
      await sluice.kill('SIGKILL');
      if (kill % 10 === 0) tell?.(`killed ${kill} times`);
    }
    const last = await runSluice(['run', '-c', config, '--once', '--log-level', 'warn'], { env });
    if (last.exitCode !== 0) throw new Error(`the last run ended badly: ${last.stderr}`);
  } finally {
    await sandbox.close();
  }
  const { vkey } = aSigner().verifier;
  const words = ['archive', 'verify', location, '--key', vkey];
  const verified = await runSluice(words, { timeoutMs: verifyWithinMs });
  const { uids, entries, size } = await readArchive(location);
  const lines = readFileSync(join(dir, 'events.ndjson'), 'utf8').trim().split('\n');
  return {
    verified: verified.exitCode,
    report: verified.stdout + verified.stderr,
    archived: uids,
    // The archive's own events for other sinks are not pages in it.
    filed: lines.flatMap((line) => {
      const { uid, event_code: code } = JSON.parse(line).metadata;
      return code === 'archive.checkpoint' ? [] : [uid as string];
    }),
    starts: entries.filter(({ t }) => t === 'start').length,
    entries: size,
  };
}

/** The faults of the result; empty: none. */
export function findingsOf({ verified, report, archived, filed }: KillsResult): readonly string[] {
  const [inArchive, inFile] = [new Set(archived), new Set(filed)];
  const missing = [...inFile].filter((uid) => !inArchive.has(uid));
  const others = [...inArchive].filter((uid) => !inFile.has(uid));
  return [
    ...(verified === 0 ? [] : [`verify ended with ${verified}: ${report}`]),
    ...(inArchive.size === archived.length
      ? []
      : [`${archived.length - inArchive.size} events are in the archive twice`]),
    ...missing.map((uid) => `the archive lacks ${uid}`),
    ...others.map((uid) => `the archive alone has ${uid}`),
  ];
}

/** Numbers from 0 up to 1, the same for a seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
