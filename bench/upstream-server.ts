// A static upstream in a process of its own: pages are created once and then only written, so that it does not affect
// the measurement. Usage: upstream-server.ts PAGES. Prints its port, then the number of pages served for each line on
// its input.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pageBody } from './work.ts';

const pages = Number(process.argv[2]);
let served = 0;
const bodies = Array.from({ length: pages }, (_, page) => pageBody(page, page === pages - 1));

const server = createServer((request, response) => {
  if (request.method === 'POST') {
    response.setHeader('content-type', 'application/json');
    response.end(
      '{"access_token":"bench","token_type":"Bearer","expires_in":3600,"scope":"events:read"}',
    );
    return;
  }
  const cursor = new URL(request.url ?? '/', 'http://localhost').searchParams.get('cursor');
  const body = bodies[cursor === null ? 0 : Number(cursor)];
  if (body !== undefined) served += 1;
  response.statusCode = body === undefined ? 404 : 200;
  response.setHeader('content-type', 'application/json');
  if (body !== undefined) response.setHeader('content-length', body.length);
  response.end(
    body ?? '{"error":{"code":"not_found","message":"no such page"},"request_id":"bench"}',
  );
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.stdin
  .on('data', () => process.stdout.write(`${served}\n`))
  .once('end', () => process.exit(0));
