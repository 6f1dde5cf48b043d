// A services API whose resources are what a test puts there, for moves of kinds of sources that the sandbox serves in one form
// only: two of them are two versions of the same services.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterThisTest } from '../support/temp.ts';

/** One API. */
export interface PlainApi {
  /** What is served: an array as a whole list, an object as it is; a path that is not here is a 404. */
  readonly at: Map<string, readonly object[] | object>;
  /** Answers so far to a path. */
  requests(path: string): number;
  /** Its block in a config. */
  readonly upstream: object;
}

/** Starts one. */
export async function plainApi(companies: readonly string[] = ['1']): Promise<PlainApi> {
  const at: PlainApi['at'] = new Map();
  const counts = new Map<string, number>();
  const server = createServer((request, response) => {
    request.resume();
    const { pathname } = new URL(request.url ?? '/', 'http://api');
    const found = at.get(pathname);
    const body = pathname.endsWith('/token')
      ? { access_token: 'token', token_type: 'Bearer', expires_in: 43_200 }
      : Array.isArray(found)
        ? { data: found, limit: 1_000, offset: 0, total: found.length }
        : found;
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body ?? { title: 'Not Found', status: 404, detail: pathname }));
    response.once('finish', () => counts.set(pathname, (counts.get(pathname) ?? 0) + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    at,
    requests: (path) => counts.get(path) ?? 0,
    upstream: {
      ...{ api: 'services', base_url: `http://127.0.0.1:${port}`, allow_http: true, ends: 'never' },
      ...{ companies, auth: { client_id: 'id', client_secret: 'secret', scope: 's' } },
    },
  };
}
