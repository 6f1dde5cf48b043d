// A journey as the status server is told of it, made up: everything well, unless a test says otherwise.

import { type ClientRequestArgs, type IncomingHttpHeaders, request } from 'node:http';
import { Secret } from '../../src/contracts/settings.ts';
import { systemClock } from '../../src/tools/clock.ts';
import {
  type StatusServer,
  type StatusSettings,
  serveStatus,
} from '../../src/watch/status-server.ts';
import type { Watched, WatchedError, WatchedSink, WatchedStream } from '../../src/watch/watched.ts';
import { noLog } from '../support/plain-upstream.ts';
import { afterThisTest } from '../support/temp.ts';

/** A failure with this message. */
export function aFailure(message = 'it did not work'): WatchedError {
  return { code: 'sink_unreachable', message, next: 'Look.', requestId: null, traceId: null };
}

/** A stream that was read to its tail. */
export function aStream(parts: Partial<WatchedStream> = {}): WatchedStream {
  return {
    name: 'audit',
    source: 'audit',
    upstream: 'edge',
    state: 'waiting',
    everyMs: 1_000,
    polls: 3,
    records: 100,
    skipped: 0,
    caughtUpAt: 1_767_225_600_000,
    order: 'newest_first',
    checkpointAt: 1_767_225_600_000,
    error: null,
    ...parts,
  };
}

/** A sink that has everything. */
export function aSink(parts: Partial<WatchedSink> = {}): WatchedSink {
  return {
    name: 'siem',
    type: 'syslog',
    state: 'idle',
    position: 100,
    backlog: 0,
    delivered: 100,
    deadLetters: 0,
    lettersHeld: 0,
    retries: 0,
    error: null,
    ...parts,
  };
}

/** A journey of one stream and one sink. */
export function aWatched(parts: Partial<Watched> = {}): Watched {
  return {
    upstreams: [{ name: 'edge', baseUrl: 'https://edge.example', throttles: [], endOfLife: [] }],
    streams: [aStream()],
    spool: { bytes: 1_000, bytesMax: 1_000_000, oldest: 90, end: 100, oldestAt: 1_767_225_600_000 },
    sinks: [aSink()],
    conditions: [],
    conditionCounts: [],
    filterFailures: 0,
    ...parts,
  };
}

/** Serves what `look` tells on a free loopback port, until the test ends. */
export async function aServer(
  look: () => Watched,
  parts: Partial<Omit<StatusSettings, 'token'>> & { readonly token?: string } = {},
): Promise<StatusServer> {
  const { token, ...rest } = parts;
  const server = await serveStatus({
    host: '127.0.0.1',
    port: 0,
    look,
    clock: systemClock(),
    log: noLog,
    ...rest,
    token: token === undefined ? null : new Secret(() => token),
  });
  afterThisTest(() => server.close());
  return server;
}

/** One answer. */
export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Asks with full control of method and headers, which `fetch` does not give. */
export function ask(url: string, options: ClientRequestArgs = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response
        .on('error', reject)
        .on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
    });
    asked.on('error', reject).end();
  });
}
