// The paths of the status server, their responses and access rules. Every request only reads, except /retry. The table
// `routes` has the role that each path needs (access.ts): a path outside the table is not served.
//
//   /             the page, with its style and scripts beside it
//   /healthz      200 while the process runs
//   /readyz       200, or 503 with the causes that stop the export: { ready, reasons }
//   /metrics      for Prometheus (metrics.ts)
//   /status.json  everything (status-facts.ts); `?find=TEXT` only streams whose name, state or error
//                 holds the text
//   /events       server-sent events: `history` and `state` at once, then `state` each second and
//                 `sample` each step; `find` as above. A reader that reconnects with Last-Event-ID
//                 receives only the samples since. If the state is in Kafka, `cluster` every few
//                 seconds (cluster-watch.ts)
//   /tail         server-sent `events` (tail.ts); `?form=…&stream=…&text=…&where=…`
//   /retry        POST with `?name=STREAM|SINK`: requests it now; 202 with `{ asked }`, 404 if
//                 no stream or sink has that name
//
// Probes of container platforms carry no secrets, so without one /readyz still answers 200 or 503
// but omits the reasons. The page contains no data; if browsers can prompt for a name and a
// password, they do so for the page.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { isLoopback } from '../contracts/config.ts';
import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import type { Pipeline } from '../pipeline.ts';
import { type Callers, refreshSecrets } from '../tools/index.ts';
import {
  type Credentials,
  challengeOf,
  isForeign,
  isOpen,
  isOwn,
  isTrusted,
  namesLoopback,
  type Role,
  safeHeaders,
} from './access.ts';
import type { StatusBoard } from './board.ts';
import type { ClusterWatch } from './cluster-watch.ts';
import { EventStream, eventStreamType } from './event-stream.ts';
import { metricsText, metricsType } from './metrics.ts';
import type { PageFile } from './page-files.ts';
import { type EventTap, reportTail, type TailView } from './tail.ts';

/** The inputs of the responses. */
export interface Desk {
  readonly host: string;
  readonly credentials: Credentials;
  readonly board: StatusBoard;
  readonly tap: EventTap | null;
  readonly cluster: ClusterWatch | null;
  readonly files: ReadonlyMap<string, PageFile>;
  readonly clock: Clock;
  readonly log: Log;
  readonly callers: Callers;
  /** Requests the streams and sinks of a name now; null: not available here. */
  readonly retry: Pipeline['retryNow'] | null;
  /** The readers of the live tail. */
  readonly tails: Set<EventStream>;
  /** Aborts when the server closes. */
  readonly over: AbortSignal;
}

interface Answer {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Answers one request. */
export function answer(desk: Desk, request: IncomingMessage, response: ServerResponse): void {
  const [path = '/', query] = (request.url ?? '/').split(/\?(.*)/s, 2);
  const exchange = { request, response, path, query: new URLSearchParams(query) };
  try {
    const given = turnedAway(desk, exchange) ?? answerTo(desk, exchange);
    if (given !== null) send(response, given);
  } catch (error) {
    desk.log.warn('status_failed', 'failed to render the status response', {
      error: String(error),
    });
    if (response.headersSent) response.destroy();
    else send(response, plain(500, 'the status cannot be shown; see the log'));
  }
}

/** The rejection of a request by its headers; null: it may be answered. */
function turnedAway(desk: Desk, { request, path }: Exchange): Answer | null {
  const { method, headers } = request;
  const { credentials, host } = desk;
  // RFC 9112 section 3.2; a proxy before this server may have used the other header.
  if ((request.headersDistinct.host?.length ?? 0) > 1)
    return plain(400, 'more than one Host header');
  if (isOpen(credentials) && isLoopback(host) && !namesLoopback(headers.host)) {
    return plain(421, 'request this machine by its loopback address or as localhost');
  }
  const allowed = path === retryPath ? ['POST'] : ['GET', 'HEAD'];
  if (method === undefined || !allowed.includes(method)) {
    return {
      ...plain(405, 'the method is not allowed here'),
      headers: { allow: allowed.join(', ') },
    };
  }
  const isFile = desk.files.has(path);
  const role = isFile ? 'view' : routes[path];
  if (role === undefined) return plain(404, 'there is no such page');
  if (role === 'open' || (isFile && credentials.basicAuth === null)) return null;
  if (!isFile && isForeign(headers)) return plain(403, 'a request from another site is refused');
  if (path === retryPath && !isOwn(headers, credentials)) {
    return plain(403, 'only the page itself, or a client with credentials, may request that');
  }
  if (isTrusted(headers, credentials, role)) return null;
  // A token by a command may have been rotated: the next request is compared with the new one.
  void refreshSecrets(credentials);
  if (isTrusted(headers, credentials, 'view')) {
    return plain(403, `this token does not allow ${path}: use a token of status.tokens.${role}`);
  }
  const what =
    credentials.basicAuth === null
      ? `bring status.token, or a token of status.tokens, as a bearer token`
      : 'bring the name and password of status.basic_auth';
  return { ...plain(401, what), headers: { 'www-authenticate': challengeOf(credentials) } };
}

const retryPath = '/retry';

/** The role that each path needs; `open`: none. The page's files need `view` if browsers can prompt. */
export const routes: Readonly<Record<string, Role | 'open' | undefined>> = Object.assign(
  Object.create(null) as Record<string, Role | 'open'>,
  {
    '/healthz': 'open',
    '/readyz': 'open',
    '/metrics': 'view',
    '/status.json': 'view',
    '/events': 'view',
    '/tail': 'events',
    [retryPath]: 'act',
  } as const,
);

/** Null: the response belongs to a reader now, and stays open. */
function answerTo(desk: Desk, exchange: Exchange): Answer | null {
  const { board, credentials, files } = desk;
  const { path, query, request } = exchange;
  const file = files.get(path);
  if (file !== undefined) return { status: 200, ...file };
  switch (path) {
    case '/healthz':
      return plain(200, 'ok');
    case '/readyz': {
      const readiness = board.readiness();
      const reported = isTrusted(request.headers, credentials, 'view')
        ? readiness
        : { ready: board.ready };
      return json(board.ready ? 200 : 503, reported);
    }
    case '/status.json':
      return json(200, board.status(query.get('find') ?? ''));
    case '/metrics':
      return {
        status: 200,
        body: metricsText(board.families()),
        headers: { 'content-type': metricsType },
      };
    case '/tail':
      return tail(desk, exchange);
    case retryPath: {
      const asked = desk.retry?.(query.get('name') ?? '') ?? [];
      return asked.length === 0
        ? plain(404, 'no stream or sink of that name')
        : json(202, { asked });
    }
    default:
      return events(desk, exchange);
  }
}

function events(
  { board, cluster, callers }: Desk,
  { request, response, query }: Exchange,
): Answer | null {
  if (request.method === 'HEAD') return { status: 200, body: '', headers: eventStreamType };
  if (board.isFull) return crowded;
  callers.keep(request.socket);
  const since = Number(request.headers['last-event-id'] ?? 0);
  const stream = new EventStream(response);
  board.add(stream, {
    find: query.get('find') ?? '',
    since: Number.isFinite(since) ? since : 0,
  });
  cluster?.add(stream);
  return null;
}

/** Each reader costs a look at the newest events twice a second. */
const tailsMax = 4;

function tail(desk: Desk, { request, response, query }: Exchange): Answer | null {
  const { tap, tails, callers, clock, log, over } = desk;
  if (tap === null) return plain(404, 'events are not shown here: status.tail is false');
  const wished = (name: string) => query.get(name) ?? '';
  const { forms } = tap;
  let view: TailView;
  try {
    view = tap.open({
      form: wished('form') || (forms[0] ?? ''),
      stream: wished('stream'),
      text: wished('text'),
      where: wished('where'),
    });
  } catch (error) {
    if (error instanceof ExportError) return plain(400, error.message);
    throw error;
  }
  if (request.method === 'HEAD') return { status: 200, body: '', headers: eventStreamType };
  if (tails.size >= tailsMax) return crowded;
  callers.keep(request.socket);
  const stream = new EventStream(response);
  tails.add(stream);
  stream.gone.addEventListener('abort', () => tails.delete(stream));
  const isCurrent = () => tap.forms === forms;
  reportTail(view, stream, { clock, isCurrent, signal: over }).catch((error) => {
    log.warn('live_tail_failed', 'live tail failed', { error: String(error) });
    response.destroy();
  });
  return null;
}

const crowded: Answer = {
  ...plain(503, 'too many listen already'),
  headers: { 'retry-after': '5' },
};

function plain(status: number, text: string): Answer {
  return { status, body: `${text}\n` };
}

function json(status: number, body: object): Answer {
  const headers = { 'content-type': 'application/json' };
  return { status, body: `${JSON.stringify(body)}\n`, headers };
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  const usual = {
    ...safeHeaders,
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
  };
  // Node omits the body of a response to HEAD.
  response.writeHead(status, { ...usual, ...headers }).end(body);
}
