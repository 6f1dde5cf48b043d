// `npx node bench/succession.ts [--records N]`: what a pair of a source and its successor costs. Both sides show the same N
// records (default: 200,000), camelCase and snake_case, in pages of 1,000. The real program reads them once, three times:
// 1,000 records of a pair (the base), N records of a pair, and N records of two sources that are no pair. Prints peak memory
// over the base, CPU of a matched record, and the size of the state.

import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inDirectory, runOnce } from './program.ts';

const MB = 1e6;
const pageRecords = 1_000;
const begun = Date.UTC(2026, 10, 1);

const { values } = parseArgs({ options: { records: { type: 'string', default: '200000' } } });
const records = Number(values.records);

const base = await measure({ count: pageRecords, isPair: true });
console.log(`base: ${Math.round(base.rssPeakBytes / MB)} MB`);
for (const isPair of [true, false]) {
  const { rssPeakBytes, cpuUs, seconds, stateBytes } = await measure({ count: records, isPair });
  const over = Math.round((rssPeakBytes - base.rssPeakBytes) / MB);
  const each = ((cpuUs - base.cpuUs) / records).toFixed(1);
  console.log(
    `${isPair ? 'a pair' : 'no pair'}, ${records} records: ${over} MB over the base, ${each} µs CPU a record, ${seconds.toFixed(0)} s, state ${Math.round(stateBytes / MB)} MB`,
  );
}

async function measure({ count, isPair }: { readonly count: number; readonly isPair: boolean }) {
  const { server, port } = await upstream(count);
  const measured = await inDirectory(async (dir) => {
    const usage = await runOnce(configOf(port, dir, isPair), dir);
    const state = join(dir, 'state');
    const sizes = readdirSync(state).map((name) => statSync(join(state, name)).size);
    return { ...usage, stateBytes: sizes.reduce((sum, size) => sum + size, 0) };
  });
  server.close();
  return measured;
}

/** Both sides of one ledger; a page of the new side is shown after the request for the next page of the old one. */
async function upstream(count: number) {
  const pages = Math.ceil(count / pageRecords);
  let asked = 0;
  let more: () => void = () => undefined;
  const server = createServer(async (request, response) => {
    response.setHeader('content-type', 'application/json');
    if (request.method === 'POST') {
      response.end('{"access_token":"t","token_type":"Bearer","expires_in":36000}');
      return;
    }
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const page = Number(searchParams.get('cursor') ?? 0);
    const isOld = pathname === '/old';
    if (isOld) {
      asked = Math.max(asked, page + 1);
      more();
    }
    while (!isOld && asked <= Math.min(page + 1, pages - 1)) {
      await new Promise<void>((resolve) => {
        more = resolve;
      });
    }
    const from = page * pageRecords;
    const length = Math.max(0, Math.min(pageRecords, count - from));
    const data = Array.from({ length }, (_, at) => record(from + at, isOld));
    const next = page + 1 < pages ? String(page + 1) : null;
    response.end(
      JSON.stringify({ data, pagination: { next_cursor: next, has_more: next !== null } }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

function record(number: number, isOld: boolean): object {
  const at = begun + number * 20;
  const who = `admin-${number % 50}@example.org`;
  const what = { result: 'success', method: 'PUT', description: `change ${number} of a rule set` };
  return isOld
    ? {
        id: number,
        createdAt: at,
        actionName: 'rule.updated',
        actorEmail: who,
        ...what,
        sourceIp: '192.0.2.7',
      }
    : {
        ...{
          id: String(number),
          created_at: new Date(at).toISOString(),
          action_name: 'rule.updated',
        },
        ...{ actor_email: who, ...what, source_ip: '192.0.2.7' },
      };
}

function configOf(port: number, dir: string, isPair: boolean): string {
  const source = {
    type: 'logs',
    upstream: 'ops',
    every: '1h',
    id: 'id',
    pagination: { style: 'cursor', next: 'pagination.next_cursor' },
  };
  return JSON.stringify({
    state: { dir: join(dir, 'state') },
    upstreams: {
      ops: {
        ...{
          api: 'services',
          base_url: `http://127.0.0.1:${port}`,
          allow_http: true,
          ends: 'never',
        },
        auth: { client_id: 'a', client_secret: 'b', scope: 's' },
      },
    },
    sources: {
      old: { ...source, path: '/old', time: ['createdAt'] },
      late: {
        ...{ ...source, path: '/new', time: ['created_at'] },
        ...(isPair && { succeeds: { source: 'old', overlap: '90d' } }),
      },
    },
    sinks: { disk: { type: 'file', path: join(dir, 'events.ndjson'), format: 'json' } },
  });
}
