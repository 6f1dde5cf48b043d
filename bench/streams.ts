// `npx node bench/streams.ts [--streams N,N] [--window SECONDS]`: the cost of streams without new records. Ten sources
// over a number of companies, each stream polled once a minute, against an upstream whose lists are empty; CPU over a
// window after every stream has been polled, memory at its end, and the time from start to the first poll.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { countedOf, inDirectory, startSluice } from './program.ts';

const sources = 10;
const lookEveryMs = 5;

function configOf(dir: string, port: number, streams: number): string {
  const companies = Array.from({ length: Math.ceil(streams / sources) }, (_, i) => `c-${i}`);
  const names = Array.from({ length: Math.min(streams, sources) }, (_, i) => `s${i}`);
  const blocks = names.map(
    (name) =>
      `  ${name}: { type: logs, upstream: edge, every: 60s, path: "/v1/companies/{company_id}/${name}", pagination: { style: cursor } }`,
  );
  return `state: { dir: ${dir}/state }
upstreams:
  edge: { api: services, base_url: "http://127.0.0.1:${port}", allow_http: true, auth: { api_key: bench }, companies: [${companies.join(', ')}] }
sources:
${blocks.join('\n')}
sinks:
  disk: { type: file, path: ${dir}/events.ndjson, format: json }
`;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(lookEveryMs);
}

/** An upstream whose lists are empty. */
async function emptyUpstream() {
  const served = { lists: 0 };
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'GET') served.lists += 1;
    response.end(
      request.method === 'GET'
        ? '{"data":[],"next_cursor":null}'
        : '{"access_token":"bench","token_type":"Bearer","expires_in":3600}',
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const end = () => {
    server.close();
    server.closeAllConnections();
  };
  return { served, port: (server.address() as AddressInfo).port, end };
}

/** What so many idle streams cost, over a window after each has been polled once. */
export async function streamsCost(streams: number, windowMs: number) {
  const { served, port, end } = await emptyUpstream();
  return inDirectory(async (dir) => {
    const begun = performance.now();
    const { child, said } = startSluice(['run'], configOf(dir, port, streams), dir);
    const counted = () => {
      const now = countedOf(child.pid ?? 0);
      if (now === null) throw new Error(`sluice has ended:\n${said.log}`);
      return now;
    };
    await until(() => served.lists > 0 || child.exitCode !== null);
    const firstMs = performance.now() - begun;
    await until(() => served.lists >= streams || child.exitCode !== null);
    const allMs = performance.now() - begun;
    const before = { polls: served.lists, cpuUs: counted().cpuUs };
    await delay(windowMs);
    const { cpuUs, rssBytes } = counted();
    child.kill();
    await once(child, 'close');
    return {
      firstMs,
      allMs,
      rssBytes,
      polls: served.lists - before.polls,
      cpuUs: cpuUs - before.cpuUs,
      /** Of one core. */
      cpuPercent: (cpuUs - before.cpuUs) / windowMs / 10,
    };
  }).finally(end);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      streams: { type: 'string', default: '1,100,1000,10000' },
      window: { type: 'string', default: '60' },
    },
  });
  const rows = [];
  for (const streams of values.streams.split(',').map(Number)) {
    const cost = await streamsCost(streams, Number(values.window) * 1_000);
    rows.push({
      streams,
      'first poll ms': Math.round(cost.firstMs),
      'all polled s': Number((cost.allMs / 1_000).toFixed(1)),
      'polls in window': cost.polls,
      'CPU % of a core': Number(cost.cpuPercent.toFixed(2)),
      'CPU us/poll': Math.round(cost.cpuUs / Math.max(1, cost.polls)),
      'RSS MB': Math.round(cost.rssBytes / 1e6),
    });
  }
  console.table(rows);
}
