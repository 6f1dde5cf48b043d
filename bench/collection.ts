// `npx node bench/collection.ts [--entities 100000] [--full]`: the cost of a collection of many entities in the real
// program: CPU per entity of readings without changes, and memory beyond that of a collection with ten, at the peak and
// after readings. The server runs here; for the program it is another process. `--full`: each entity is reported at the
// first reading.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { countedOf, inDirectory, startSluice } from './program.ts';

const { values } = parseArgs({
  options: { entities: { type: 'string', default: '100000' }, full: { type: 'boolean' } },
});
const pageEntities = 1_000;
const readings = 4;
/** Readings before those that are measured: the baseline, and some in which the code gets warm. */
const warm = 6;

const base = await measure(10);
const many = await measure(Number(values.entities));
const mb = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
console.log(`${values.entities} entities: ${many.cpuUs.toFixed(1)} µs CPU an entity and reading`);
console.log(`RSS ${mb(many.rss)}, ${mb(many.rss - base.rss)} over that with ten entities`);
console.log(
  `at most ${mb(many.peak)}, ${mb(many.peak - base.peak)} over; with the baseline ${mb(many.baseline)}`,
);

async function measure(count: number) {
  const pages = pagesOf(count);
  let begun = 0;
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') {
      response.end('{"access_token":"t","token_type":"Bearer","expires_in":3600}');
      return;
    }
    const at = Number(new URL(request.url ?? '', 'http://x').searchParams.get('cursor') ?? 0);
    if (at === 0) begun += 1;
    response.end(pages[at]);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const reached = async (reading: number) => {
    while (begun < reading) await sleep(5);
  };
  return await inDirectory(async (dir) => {
    const run = async () => {
      begun = 0;
      const { child, said } = startSluice(['run'], configOf(port, dir), dir);
      const ended = once(child, 'close').then(() => Promise.reject(new Error(said.log)));
      const counted = () => countedOf(child.pid ?? 0) ?? { cpuUs: 0, rssBytes: 0, rssPeakBytes: 0 };
      await Promise.race([reached(warm), ended]);
      const before = counted();
      await Promise.race([reached(warm + readings), ended]);
      const after = counted();
      ended.catch(() => undefined);
      child.kill('SIGKILL');
      await once(child, 'close');
      const cpuUs = (after.cpuUs - before.cpuUs) / readings / count;
      return { cpuUs, rss: after.rssBytes, peak: after.rssPeakBytes };
    };
    const first = await run();
    const again = await run();
    server.closeAllConnections();
    server.close();
    return { ...again, baseline: first.peak };
  });
}

/** Entities of about 500 bytes. */
function pagesOf(count: number): readonly string[] {
  const pages: string[] = [];
  for (let from = 0; from < count; from += pageEntities) {
    const to = Math.min(count, from + pageEntities);
    const data = Array.from({ length: to - from }, (_, n) => ({
      id: `obj_${String(from + n).padStart(8, '0')}`,
      name: `host-${from + n}.example.internal`,
      addresses: [`10.${(n >> 8) % 256}.${n % 256}.0/24`, `fd00::${from + n}`],
      description: 'Terminal of a branch office, moved here when the building was closed. '.repeat(
        3,
      ),
      labels: { environment: 'production', owner: 'network-team', site: `s-${n % 40}` },
      created_at: '2026-01-31T00:00:00Z',
      updated_at: '2026-11-01T12:00:00Z',
    }));
    pages.push(JSON.stringify({ data, next_cursor: to < count ? String(pages.length + 1) : null }));
  }
  return pages;
}

function configOf(port: number, dir: string): string {
  return `
state: { dir: ${dir}/state }
upstreams:
  ops:
    { api: services, base_url: "http://127.0.0.1:${port}", allow_http: true, companies: [c-1],
      auth: { client_id: a, client_secret: b, scope: s } }
sources:
  firewall: { type: firewall, upstream: ops, every: 3s, resources: [objects]${values.full === true ? ', baseline: full' : ''} }
sinks:
  disk: { type: file, path: ${dir}/events.ndjson, format: json }
`;
}
