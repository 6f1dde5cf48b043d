// An upstream that serves the records of records.json, so that a state of an older version meets the same records later.
// It has both APIs: a list with a cursor below /v1, lists with an offset below /api, and single objects.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { errorCodeOf } from '../../src/contracts/index.ts';

type Body = Record<string, unknown>;

/** Records by path: a list, or one object. */
export const allRecords: Readonly<Record<string, Body | readonly Body[]>> = JSON.parse(
  readFileSync(join(import.meta.dirname, 'records.json'), 'utf8'),
);

/** Growing lists: an older version saw the first half of each. */
const growing = /\/(audit\/events|web)$/;

/** What an older version saw of the records. */
export function firstHalf(): typeof allRecords {
  const cut = Object.entries(allRecords).map(([path, body]) =>
    Array.isArray(body) && growing.test(path)
      ? [path, body.slice(0, body.length / 2)]
      : [path, body],
  );
  return Object.fromEntries(cut);
}

/** A state belongs to the address of its upstream, so the address is fixed, and one that other programs do not use. */
const address = { host: '127.40.10.1', port: 18_010 };
/** `UPSTREAM_URL` of the configs. */
export const upstreamUrl: string = `http://${address.host}:${address.port}`;

/** Serves records until `close`. Waits while another run of these tests has the address. */
export async function serveRecords(records: () => typeof allRecords) {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const body = request.method === 'POST' ? token : answerTo(records()[url.pathname], url);
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { title: 'Not Found', status: 404 }));
  });
  while (!(await isListening(server))) await setTimeout(200);
  return {
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function isListening(server: Server): Promise<boolean> {
  server.listen(address);
  try {
    await once(server, 'listening');
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

const token = { access_token: 'token', token_type: 'Bearer', expires_in: 3_600, scope: 'all' };

function answerTo(body: Body | readonly Body[] | undefined, url: URL): Body | null {
  if (body === undefined) return null;
  if (!Array.isArray(body)) return body as Body;
  if (url.pathname.includes('/v1/i')) return { data: body }; // look-ups have no pages
  const limit = Number(url.searchParams.get('limit') ?? 100);
  const isCursor = url.pathname.startsWith('/v1/');
  const from = Number(url.searchParams.get(isCursor ? 'cursor' : 'offset') ?? 0);
  const data = body.slice(from, from + limit);
  return isCursor
    ? { data, next_cursor: data.length === 0 ? String(from) : String(from + data.length) }
    : { data, limit, offset: from, total: body.length };
}
