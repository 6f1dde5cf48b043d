// `npx node bench/streams.ts [--streams N,N] [--window SECONDS]`: what streams cost that have nothing new. Ten sources over a
// number of companies, each stream asked once a minute, against an upstream whose lists are empty; CPU over a window after every
// stream has been polled, memory at its end, and how long it took from start to the first poll.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { countedOf, inDirectory, startSluice } from './program.ts';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '1,100,1000,10000' },
    window: { type: 'string', default: '60' },
  },
});
const windowMs = Number(values.window) * 1_000;
const sources = 10;
const lookEveryMs = 5;

let served = 0;
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.method === 'GET') served += 1;
  response.end(
    request.method === 'GET'
      ? '{"data":[],"next_cursor":null}'
      : '{"access_token":"bench","token_type":"Bearer","expires_in":3600}',
  );
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;

function configOf(dir: string, streams: number): string {
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
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
}

async function measure(streams: number) {
  return inDirectory(async (dir) => {
    served = 0;
    const begun = performance.now();
    const { child, said } = startSluice(['run'], configOf(dir, streams), dir);
    const counted = () => {
      const now = countedOf(child.pid ?? 0);
      if (now === null) throw new Error(`sluice has ended:\n${said.log}`);
      return now;
    };
    await until(() => served > 0 || child.exitCode !== null);
    const firstMs = performance.now() - begun;
    await until(() => served >= streams || child.exitCode !== null);
    const allMs = performance.now() - begun;
    const before = { polls: served, cpuUs: counted().cpuUs };
    await new Promise((resolve) => setTimeout(resolve, windowMs));
    const { cpuUs, rssBytes } = counted();
    const polls = served - before.polls;
    child.kill();
    await new Promise((resolve) => child.once('close', resolve));
    return {
      streams,
      'first poll ms': Math.round(firstMs),
      'all polled s': Number((allMs / 1_000).toFixed(1)),
      'polls in window': polls,
      'CPU % of a core': Number(((cpuUs - before.cpuUs) / windowMs / 10).toFixed(2)),
      'CPU us/poll': Math.round((cpuUs - before.cpuUs) / Math.max(1, polls)),
      'RSS MB': Math.round(rssBytes / 1e6),
    };
  });
}

const rows = [];
for (const streams of values.streams.split(',')) rows.push(await measure(Number(streams)));
console.table(rows);
server.close();
server.closeAllConnections();
