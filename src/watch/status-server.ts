// The status over HTTP: a page for people, metrics for Prometheus, probes for supervisors. Invariants: the server only
// reads, except for the page's retry button; a slow, greedy or hostile client uses a bounded number of connections and
// a bounded share of the time. answers.ts has the paths and their access rules.

import { once } from 'node:events';
import type { Server } from 'node:http';
import { hostPortText } from '../contracts/config.ts';
import { type Clock, ExportError, errorCodeOf, type Log } from '../contracts/index.ts';
import type { Pipeline } from '../pipeline.ts';
import { Callers } from '../tools/index.ts';
import type { Credentials } from './access.ts';
import { answer } from './answers.ts';
import { StatusBoard } from './board.ts';
import type { ClusterSight } from './cluster-status.ts';
import { ClusterWatch } from './cluster-watch.ts';
import type { EventStream } from './event-stream.ts';
import type { Patience } from './health.ts';
import type { StatusMoment } from './live.ts';
import { readPageFiles } from './page-files.ts';
import type { EventTap } from './tail.ts';
import { pushMetrics, type Telemetry } from './telemetry.ts';

/** Dependencies of the server. On any address except loopback, `token`, `tokens` or `basicAuth` is required. */
export interface StatusSettings {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly token: Credentials['token'];
  readonly tokens?: Credentials['tokens'];
  readonly basicAuth?: Credentials['basicAuth'];
  /** Returns the present state of the export. */
  readonly look: () => StatusMoment;
  /** The source of the newest events; undefined: they are not shown. */
  readonly tap?: EventTap | null;
  /** The view of the whole cluster; undefined: the state is not in Kafka. */
  readonly cluster?: ClusterSight | null;
  /** Requests the streams and sinks of a name now; undefined: not available. */
  readonly retry?: Pipeline['retryNow'];
  /** The collector to which metrics are pushed as well; undefined: none. */
  readonly telemetry?: Telemetry | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly patience?: Patience;
  /** The share of the streams that must advance for /readyz to answer 200, from 0 to 1; default: a half. */
  readonly readyShare?: number;
}

/** A running server. */
export interface StatusServer {
  /** `http://127.0.0.1:8686`, with the actual port. */
  readonly url: string;
  /** Closes at once, with all connections. */
  close(): Promise<void>;
}

/** Timeouts of idle and stalled connections; below 5 s including Node's own delays. */
const silenceMsMax = 3_000;
const stalledMsMax = 10_000;
/** Interval at which Node checks these timeouts. */
const lookEveryMs = 500;

/** Starts the server. Throws an ExportError if the address is not available. */
export async function serveStatus(settings: StatusSettings): Promise<StatusServer> {
  const { host, port, clock, log, token, tokens = null } = settings;
  const { basicAuth = null, tap = null, telemetry = null, retry = null, cluster: sight } = settings;
  const over = new AbortController();
  const callers = new Callers();
  const board = new StatusBoard({ ...settings, tap });
  const cluster = sight ? new ClusterWatch({ sight, clock, log }) : null;
  const desk = {
    ...{ host, board, tap, cluster, clock, log, callers, retry },
    credentials: { token, tokens, basicAuth },
    files: readPageFiles(),
    tails: new Set<EventStream>(),
    over: over.signal,
  };
  // An import would also load Node's fetch and WebSocket, which costs as much as loading zod.
  const { createServer } = process.getBuiltinModule('node:http');
  const server = createServer(
    {
      requestTimeout: stalledMsMax,
      headersTimeout: silenceMsMax,
      keepAliveTimeout: silenceMsMax,
      connectionsCheckingInterval: lookEveryMs,
      maxHeaderSize: 8_192,
    },
    (request, response) => {
      callers.seen(request.socket);
      answer(desk, request, response);
    },
  );
  server.timeout = stalledMsMax;
  server.on('connection', (socket) => callers.seen(socket));
  await listen(server, host, port);
  // Later errors affect only one client's connection.
  server.on('error', (error) =>
    log.warn('status_server_failed', 'the status server', { error: error.message }),
  );
  const following = [board.follow(over.signal)];
  if (cluster !== null) following.push(cluster.follow(over.signal));
  if (telemetry !== null)
    following.push(pushMetrics(telemetry, { board, clock, log }, over.signal));
  const url = urlOf(server, host);
  log.info('status_page_listening', 'status page', { url });
  return {
    url,
    async close() {
      over.abort(new Error('closing'));
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, ...following]);
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const code = errorCodeOf(error) || String(error);
    const why = reasons.get(code) ?? `the system answers ${code}`;
    throw new ExportError('config_invalid', `serving the status on ${host}:${port}: ${why}`, {
      next: 'Choose another address as status.listen, or stop the process that uses this one.',
      cause: error,
    });
  }
}

const reasons: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'another program listens there already (EADDRINUSE)'],
  ['EACCES', 'this user may not listen there (EACCES)'],
  ['EADDRNOTAVAIL', 'this machine does not have that address (EADDRNOTAVAIL)'],
  ['ENOTFOUND', 'that name has no address (ENOTFOUND)'],
]);

function urlOf(server: Server, host: string): string {
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return `http://${hostPortText({ host, port })}`;
}
