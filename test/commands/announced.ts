// A services API whose responses announce its end, and a config that reads an empty list there.

import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { tempDir } from '../support/temp.ts';

/** Starts it. `date`: the time in its `Sunset` header, 20.5 days from now. */
export async function listUntilAnnounced(): Promise<{
  readonly config: string;
  readonly date: Date;
}> {
  const date = new Date(Math.floor((Date.now() + 20.5 * 86_400_000) / 1_000) * 1_000);
  const server = createServer((request, response) => {
    const isToken = request.url?.includes('token');
    const body = isToken
      ? { access_token: 'secret', token_type: 'bearer', expires_in: 3_600 }
      : { data: [], next_cursor: null };
    const ends = isToken ? {} : { sunset: date.toUTCString() };
    response.writeHead(200, { 'content-type': 'application/json', ...ends });
    response.end(JSON.stringify(body));
  });
  const port = await listen(server);
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      state: { dir: join(dir, 'state') },
      upstreams: {
        edge: {
          ...{ api: 'services', base_url: `http://127.0.0.1:${port}`, allow_http: true },
          auth: { client_id: 'a', client_secret: 'b', scope: 's' },
        },
      },
      sources: { audit: { type: 'logs', upstream: 'edge', path: '/audit', time: ['time'] } },
      sinks: { disk: { type: 'file', path: join(dir, 'events.ndjson') } },
    }),
  );
  return { config, date };
}
