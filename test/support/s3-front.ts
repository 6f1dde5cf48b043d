// A proxy for a sink's requests to an S3 server, passed on unchanged, down to the signature: for tests that lose some
// of them.
import { request } from 'node:http';
import type { HttpAnswer, ReceivedRequest } from './http-receiver.ts';

/** The real server's answer. */
export function askedOf(
  endpoint: string,
  { method, path, headers, body }: ReceivedRequest,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    // A connection of its own: one that was kept may be closed by the server at the same moment.
    const asked = request(`${endpoint}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const { 'transfer-encoding': _, connection: __, ...kept } = response.headers;
        resolve({
          answer: 'reply',
          status: response.statusCode ?? 500,
          headers: Object.fromEntries(
            Object.entries(kept).map(([name, value]) => [name, String(value)]),
          ),
          body: Buffer.concat(chunks),
        });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}
