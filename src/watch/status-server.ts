// The status over HTTP: a page for people, numbers for Prometheus, probes for whoever restarts us.
// It looks at the journey and touches it only where the page's button asks for it, and a reader who
// is slow, greedy or hostile costs the journey nothing but a bounded number of connections and a
// bounded share of the time. What is answered to whom stands in answers.ts.

import { once } from 'node:events';
import type { Server } from 'node:http';
import { ExportError, errorCodeOf } from '../contracts/errors.ts';
import { hostPortText } from '../contracts/settings.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import type { Pipeline } from '../pipeline.ts';
import { Callers } from '../tools/callers.ts';
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

/** What it is made with. On any address but loopback `token` or `basicAuth` is needed. */
export interface StatusSettings {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly token: Credentials['token'];
  readonly basicAuth?: Credentials['basicAuth'];
  /** The journey as it is now. */
  readonly look: () => StatusMoment;
  /** Where the newest events are had from; left out: they are not shown. */
  readonly tap?: EventTap | null;
  /** The whole of a state in Kafka; left out: it is not there. */
  readonly cluster?: ClusterSight | null;
  /** Has the streams and sinks of a name asked now; left out: nobody can ask for that. */
  readonly retry?: Pipeline['askNow'];
  /** Where the numbers of /metrics are pushed to as well; left out: nowhere. */
  readonly telemetry?: Telemetry | null;
  readonly clock: Clock;
  readonly log: Log;
  readonly patience?: Patience;
}

/** A server that runs. */
export interface StatusServer {
  /** `http://127.0.0.1:8686`, with the real port. */
  readonly url: string;
  /** Ends at once, readers and all. */
  close(): Promise<void>;
}

/** Who has said or read nothing for so long is let go; below 5 s with Node's own delays. */
const silenceMsMax = 3_000;
const stalledMsMax = 10_000;
/** How often Node looks whose time is over. */
const lookEveryMs = 500;

/** Starts serving. Throws an ExportError when the address cannot be listened on. */
export async function serveStatus(settings: StatusSettings): Promise<StatusServer> {
  const { host, port, clock, log, token } = settings;
  const { basicAuth = null, tap = null, telemetry = null, retry = null, cluster: sight } = settings;
  const over = new AbortController();
  const callers = new Callers();
  const board = new StatusBoard({ ...settings, tap });
  const cluster = sight ? new ClusterWatch({ sight, clock, log }) : null;
  const desk = {
    ...{ host, board, tap, cluster, clock, log, callers, retry },
    credentials: { token, basicAuth },
    files: readPageFiles(),
    tails: new Set<EventStream>(),
    over: over.signal,
  };
  // An import would load Node's own fetch and WebSocket too, which takes as long as zod.
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
      callers.heard(request.socket);
      answer(desk, request, response);
    },
  );
  server.timeout = stalledMsMax;
  server.on('connection', (socket) => callers.heard(socket));
  await listen(server, host, port);
  // After this only a reader's connection can fail, and that is the reader's loss.
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
