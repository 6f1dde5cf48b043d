// Upstream's responses, from the sandbox into an archive by the real program, which is killed again and again
// meanwhile: the archive is whole, has every record once, and has a response to every request.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.ts';
import { aSigner, readArchive } from '../archive/a-writer.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const company = 'c-1';
const investigations = '/v1/intelligence/investigations';

function configFor(sandbox: Sandbox, dir: string): string {
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const upstream = (api: string, base: string, scope: string) =>
    `{ api: ${api}, base_url: "${base}", allow_http: true, ends: never, auth: { client_id: ${clientId}, client_secret: ${clientSecret}, scope: "${scope}" }`;
  const how = (api: string) => `upstream: ${api}, every: 300ms`;
  const ids = [...sandbox.ledger().collection(investigations).entities().keys()].slice(0, 5);
  const config = join(dir, 'sluice.yaml');
  writeFileSync(join(dir, 'key'), signingKeyText('archive.test', Buffer.alloc(32, 1)));
  writeFileSync(
    config,
    `state: { dir: ${dir}/state }
upstreams:
  edge: ${upstream('unified', sandbox.unifiedBaseUrl, unifiedScope)} }
  ops: ${upstream('services', sandbox.servicesBaseUrl, servicesScope)}, companies: [${company}] }
sources:
  audit: { type: audit_events, ${how('edge')}, page_limit: 20 }
  fw: { type: firewall, ${how('ops')}, confirm_after: 0s }
  sites: { type: sites, ${how('edge')}, confirm_after: 0s }
  tickets: { type: tickets, ${how('ops')}, confirm_after: 0s }
  entries: { type: ticket_events, ${how('ops')}, each: { of: tickets, id: ticket_id } }
  findings: { type: investigations, ${how('edge')}, each: { ids: ${JSON.stringify(ids)} } }
sinks:
  disk: { type: file, path: ${dir}/events.ndjson }
  proof: { type: archive, location: ${dir}/archive, signing_key: "\${file:${dir}/key}", checkpoint_every: 100ms }
routes:
  - { from: [audit, fw, sites, tickets, entries, findings], to: [disk, proof] }
`,
  );
  return config;
}

interface Written {
  readonly metadata: { readonly uid: string; readonly event_code?: string };
  readonly unmapped?: { readonly details?: { readonly note?: string; readonly size?: number } };
}

function written(dir: string): readonly Written[] {
  const lines = readFileSync(join(dir, 'events.ndjson'), 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Written);
}

/** The paths with a 200 response, below the base address. */
function answeredPaths(sandbox: Sandbox): readonly string[] {
  return Object.entries(sandbox.control.requests()).flatMap(([path, { statuses }]) => {
    const isAsked = (statuses[200] ?? 0) > 0 && !path.endsWith('/token');
    return isAsked ? [path.replace(/^\/v1(?=\/)/, '')] : [];
  });
}

test('an archive has every answer and every record once, whenever the program is killed', async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ rate: 0, events: 400, companies: [company] });
  afterThisTest(() => sandbox.close());
  const config = configFor(sandbox, dir);

  for (let kill = 0; kill < 5; kill += 1) {
    const before = Object.values(sandbox.control.requests()).reduce(
      (n, one) => n + one.requests,
      0,
    );
    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(
      () => {
        const all = Object.values(sandbox.control.requests());
        return all.reduce((n, one) => n + one.requests, 0) > before + 12 + kill * 25;
      },
      { what: 'some requests' },
    );
    await sluice.kill('SIGKILL');
  }
  const once = await runHere(['run', '-c', config, '--once']);

  expect(once).toMatchObject({ exitCode: 0 });
  const archive = await readArchive(join(dir, 'archive'));
  const pages = archive.entries.flatMap((entry) => (entry.t === 'page' ? [entry] : []));
  const paths = pages.flatMap(({ answer }) => answer?.path?.split('?')[0] ?? []);
  expect(new Set(paths)).toEqual(new Set(answeredPaths(sandbox)));
  expect(paths.length).toBeGreaterThan(30);
  const events = written(dir);
  const own = events.filter(({ metadata }) => metadata.event_code === 'archive.checkpoint');
  const uids = events.filter((event) => !own.includes(event)).map(({ metadata: { uid } }) => uid);
  expect(archive.uids.toSorted()).toEqual(uids.toSorted());
  expect(new Set(uids).size).toBe(uids.length);

  const { vkey } = aSigner().verifier;
  const verified = await runHere(['archive', 'verify', join(dir, 'archive'), '--key', vkey]);
  expect(verified).toMatchObject({ exitCode: 0 });

  // The last checkpoint of pages is sent to the other sink, as stored.
  const { size, note } = own.at(-1)?.unmapped?.details ?? {};
  const last = archive.entries.findLast((entry) => entry.t === 'page' || entry.t === 'checkpoint');
  expect(last).toMatchObject({ t: 'checkpoint', size });
  const kept = last?.t === 'checkpoint' ? last.object : '';
  expect(readFileSync(join(dir, 'archive', kept), 'utf8')).toBe(note);
  expect(archive.entries.filter(({ t }) => t === 'stop')).toHaveLength(1);
});

test('an archive proves the silence of an idle stream, and no cursor stands in it or in the log', async () => {
  const dir = tempDir();
  const sandbox = await startSandbox({ rate: 0, events: 120, companies: [company] });
  afterThisTest(() => sandbox.close());
  const config = configFor(sandbox, dir);
  const sluice = startSluice(['run', '-c', config, '--log-level', 'debug']);
  const audit = () => sandbox.control.requests()['/v1/audit/events']?.requests ?? 0;
  await waitUntil(() => audit() > 20, { what: 'an idle list to be asked' });
  await sluice.kill('SIGTERM');
  const { stderr } = await sluice.exited;

  const archive = await readArchive(join(dir, 'archive'));
  const idle = archive.entries.flatMap((entry) =>
    entry.t === 'page' && entry.stream === 'audit' && entry.kept === 0 ? [entry] : [],
  );
  expect(idle.length).toBeGreaterThan(1);
  expect(idle.at(-1)).toMatchObject({ kind: 'answer', answer: { status: 200 } });
  for (const entry of archive.entries) {
    if (entry.t !== 'page' || entry.answer === undefined) continue;
    const { asked, next = null } = entry.answer;
    for (const cursor of [asked, next])
      if (cursor !== null) expect(cursor).toMatch(/^[0-9a-f]{64}$/);
  }
  expect(stderr).not.toContain('cursor=');
  const queries = archive.entries.flatMap((one) =>
    one.t === 'page' ? (one.answer?.path ?? []) : [],
  );
  expect(queries.some((path) => path.includes('cursor='))).toBe(false);
});
