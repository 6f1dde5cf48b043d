// How much memory an upstream can make the real program take: pages as large as it likes, for many companies at once. The
// bound is generous, since it is to hold on any machine; without a bound on bodies in flight it was 900 MB.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { startSluice } from '../support/cli.ts';
import { hugePage } from '../support/huge-page.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const MB = 1e6;
const companies = 12;

/** Serves one page to each company, once: later there is nothing new. */
async function upstreamOf(body: Buffer, headers: Readonly<Record<string, string>>) {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') response.end('{"access_token":"t","expires_in":3600}');
    else {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      response.end(body);
    }
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

/** The most that a process has had resident, in bytes. */
function residentMost(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test.skipIf(!existsSync('/proc/self/status'))(
  'twelve companies with packed pages of 24 MB are read within 512 MB',
  async () => {
    const page = hugePage(24 * MB);
    const url = await upstreamOf(gzipSync(page), { 'content-encoding': 'gzip' });
    const dir = tempDir();
    const config = join(dir, 'sluice.yaml');
    const names = Array.from({ length: companies }, (_, i) => `c-${i}`);
    writeFileSync(
      config,
      [
        `state: { dir: ${dir}/state, sync: normal }`,
        'upstreams:',
        `  ops: { api: services, base_url: "${url}", allow_http: true, auth: { client_id: i, client_secret: s, scope: x }, companies: [${names}], timeout: 120s }`,
        'sources:',
        '  web: { type: logs, upstream: ops, every: 1h, path: "/c/{company_id}/events" }',
        'sinks:',
        `  disk: { type: file, path: ${dir}/events.ndjson, format: { type: json, schema: original } }`,
      ].join('\n'),
    );
    const requested = (page.length - '{"data":[]}'.length + 1) * companies;
    const written = () => {
      const file = join(dir, 'events.ndjson');
      return existsSync(file) ? statSync(file).size : 0;
    };

    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(() => written() >= requested, { what: 'all events', timeoutMs: 220_000 });
    const most = residentMost(sluice.pid);
    await sluice.kill();

    expect(written()).toBe(requested);
    expect(most / MB).toBeLessThan(512);
  },
);
