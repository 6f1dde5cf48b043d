// `npx node bench/memory.ts [--only TEXT]`: the most memory that an upstream can make sluice take, with pages of its greatest
// size for one company or many, and with one that is packed a thousand times over. Peak resident set of the real program,
// which reads each list once, holds it on disk and writes it to a file.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { hugePage } from '../test/support/huge-page.ts';
import { inDirectory, startSluice, watched } from './program.ts';

const MB = 1e6;
const MiB = 1024 ** 2;

interface Attack {
  readonly companies: number;
  readonly body: () => Buffer;
  readonly coding?: string;
}

/** Packed data may be several pieces back to back, each unpacked in turn. */
const bomb = () => Buffer.concat(new Array<Buffer>(64).fill(gzipSync(Buffer.alloc(16 * MiB))));

const attacks: Readonly<Record<string, Attack>> = {
  'a page of 60 MB': { companies: 1, body: () => hugePage(60 * MB) },
  '4 companies, 57 MB each': { companies: 4, body: () => hugePage(57 * MB) },
  '20 companies, 57 MB each': { companies: 20, body: () => hugePage(57 * MB) },
  '20 companies, 57 MB each, packed': {
    companies: 20,
    body: () => gzipSync(hugePage(57 * MB)),
    coding: 'gzip',
  },
  'a bomb of 1 GiB in 1 MB': { companies: 1, body: bomb, coding: 'gzip' },
};

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } });
for (const [upstream, attack] of Object.entries(attacks)) {
  if (upstream.includes(values.only)) console.log(`${upstream}: ${await measure(attack)}`);
}

async function measure({ companies, body, coding = 'identity' }: Attack): Promise<string> {
  const bytes = body();
  const server = createServer(answering(bytes, coding)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { code, rssPeakBytes } = await inDirectory(async (dir) => {
    const { child } = startSluice(['run', '--once'], configOf(port, companies, dir), dir);
    return await watched(child);
  });
  server.close();
  return `${Math.round(rssPeakBytes / MB)} MB at most; ended with ${code}`;
}

function answering(body: Buffer, coding: string): RequestListener {
  return (request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') {
      response.end('{"access_token":"t","token_type":"Bearer","expires_in":3600}');
      return;
    }
    response.setHeader('content-encoding', coding);
    response.end(body);
  };
}

/** A time-out as long as a machine takes that does other things as well: memory is measured, and not speed. */
function configOf(port: number, companies: number, dir: string): string {
  const names = Array.from({ length: companies }, (_, i) => `c-${i}`);
  return `
state: { dir: ${dir}/state }
upstreams:
  ops:
    { api: services, base_url: "http://127.0.0.1:${port}", allow_http: true, companies: [${names}],
      auth: { client_id: a, client_secret: b, scope: s }, timeout: 10m }
sources:
  web: { type: logs, upstream: ops, every: 1h, path: "/c/{company_id}/events" }
sinks:
  disk: { type: file, path: ${dir}/events.ndjson, format: json }
`;
}
