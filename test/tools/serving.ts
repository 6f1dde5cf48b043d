// A real HTTP or HTTPS server on a free loopback port for one test, and the few tools that the tests of src/tools share.

import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Secret } from '../../src/contracts/secret.ts';
import type { Log } from '../../src/contracts/tools.ts';
import { afterThisTest } from '../support/temp.ts';

/** Its address, and its requests. */
export interface Serving {
  readonly url: string;
  readonly asked: readonly Asked[];
}

export interface Asked {
  readonly method: string;
  /** Path and query, as sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export type Answering = (asked: Asked, response: ServerResponse, request: IncomingMessage) => void;

/** Serves until the test ends; `answer` is called once the request's body is in. */
export async function serve(answer: Answering, tls?: ServerOptions): Promise<Serving> {
  const asked: Asked[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      asked.push(one);
      answer(one, response, request);
    });
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
  return { url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`, asked };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly event: string;
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that keeps its lines. */
export function keepingLog(lines: LogLine[] = [], base = {}): Log & { readonly lines: LogLine[] } {
  const at =
    (level: LogLine['level']) =>
    (event: string, text: string, fields: object = {}) => {
      lines.push({ level, event, text, fields: { ...base, ...fields } });
    };
  return {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: (fields) => keepingLog(lines, { ...base, ...fields }),
  };
}

/** A secret with this value. */
export function secretOf(value: string): Secret {
  return new Secret(() => value);
}

/** A signal that is never aborted. */
export function never(): AbortSignal {
  return new AbortController().signal;
}
