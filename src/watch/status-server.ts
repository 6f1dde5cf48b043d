// The status over HTTP: a page for people, numbers for Prometheus, probes for whoever restarts us. It looks at the
// journey and never touches it: every request only reads, and a reader who is slow, greedy or hostile costs the journey
// nothing but a bounded number of connections.
//
//   /             the page, with its style and scripts beside it; they hold no data, so they need no token
//   /healthz      200 while the process lives
//   /readyz       200, or 503 with what keeps the journey from going on: { ready, reasons }
//   /metrics      for Prometheus (metrics.ts)
//   /status.json  everything (report.ts)
//   /events       server-sent events: `history` and `state` at once, then `state` each second and `sample` each step
//
// Probes of container platforms carry no secrets, so without the token /readyz still answers 200 or 503, and keeps the
// reasons to itself.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { ExportError } from '../contracts/errors.ts';
import type { Secret } from '../contracts/settings.ts';
import type { Clock, Log } from '../contracts/tools.ts';
import { bringsToken, isLoopback, namesLoopback, safeHeaders } from './access.ts';
import { openHealth, type Patience, usualPatience } from './health.ts';
import { openHistory, type Sample, stepMs } from './history.ts';
import { metricsText, metricsType } from './metrics.ts';
import { type Report, reportOf } from './report.ts';
import type { Watched } from './watched.ts';

/** What a status server is made with. */
export interface StatusSettings {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Needed on any address but loopback; asked for on loopback too where it is set. */
  readonly token: Secret | null;
  /** The journey as it is now. */
  readonly look: () => Watched;
  readonly clock: Clock;
  readonly log: Log;
  readonly patience?: Patience;
}

/** A server that runs. */
export interface StatusServer {
  /** `http://127.0.0.1:8686`, with the real port. */
  readonly url: string;
  /** Ends at once, listeners and all. */
  close(): Promise<void>;
}

const tellMs = 1_000;
/** Connections of `/events`; each gets a report a second. */
const listenersMax = 16;
const connectionsMax = 64;
const streamsToldMax = 500;

/** Starts serving. Throws an ExportError when the address cannot be listened on. */
export async function serveStatus(settings: StatusSettings): Promise<StatusServer> {
  const { host, port, log } = settings;
  const board = new Board(settings);
  const assets = readAssets();
  const server = createServer(
    {
      requestTimeout: 10_000,
      headersTimeout: 5_000,
      keepAliveTimeout: 5_000,
      maxHeaderSize: 8_192,
    },
    (request, response) => answer({ request, response, board, settings, assets }),
  );
  server.maxConnections = connectionsMax;
  await listen(server, host, port);
  // After this only a reader's connection can fail, and that is the reader's loss.
  server.on('error', (error) => log.warn('the status server', { error: error.message }));
  const over = new AbortController();
  const following = board.follow(over.signal);
  const url = urlOf(server, host);
  log.info('status page', { url });
  return {
    url,
    async close() {
      over.abort(new Error('closing'));
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await Promise.all([closed, following]);
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const why = reasons.get(code) ?? `the system answers ${code}`;
    throw new ExportError('config_invalid', `serving the status on ${host}:${port}: ${why}`, {
      next: 'Choose another address as status.listen, or end what uses this one.',
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
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The journey as it was last looked at, and who wants to hear of it. */
class Board {
  readonly #settings: StatusSettings;
  readonly #history = openHistory();
  readonly #health: ReturnType<typeof openHealth>;
  readonly #listeners = new Set<ServerResponse>();
  readonly #startedAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #watched: Watched;
  /** The latest sample that listeners have. */
  #told: Sample | undefined;

  constructor(settings: StatusSettings) {
    this.#settings = settings;
    this.#health = openHealth(settings.patience ?? usualPatience);
    this.#startedAt = settings.clock.now();
    this.#watched = this.#look();
  }

  /** Looks each second while someone listens, each step while no one does, until the end. */
  async follow(over: AbortSignal): Promise<void> {
    const { clock, log } = this.#settings;
    while (!over.aborted) {
      await clock.sleep(tellMs, over).catch(() => undefined);
      const idleMs = clock.monotonic() - this.#lookedAt;
      if (over.aborted || (this.#listeners.size === 0 && idleMs < stepMs)) continue;
      try {
        this.#tellAll();
      } catch (error) {
        // Whatever is wrong with watching, the journey goes on.
        log.warn('the status could not be followed', { error: String(error) });
      }
    }
  }

  #tellAll(): void {
    this.#look();
    const sample = this.#history.samples().at(-1);
    if (sample !== undefined && sample !== this.#told) this.#tell('sample', sample);
    this.#told = sample;
    if (this.#listeners.size > 0) this.#tell('state', this.#report(streamsToldMax));
  }

  get ready(): boolean {
    return this.#health.ailments().length === 0;
  }

  /** The body of /readyz. */
  readiness(): object {
    this.#look();
    return { ready: this.ready, reasons: this.#health.ailments() };
  }

  report(): Report {
    this.#look();
    return this.#report(Number.POSITIVE_INFINITY);
  }

  metrics(): string {
    this.#look();
    const { user, system } = process.cpuUsage();
    return metricsText(this.#watched, {
      ready: this.ready,
      startedAt: this.#startedAt,
      residentBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
    });
  }

  /** False where there are too many already. */
  listen(response: ServerResponse): boolean {
    if (this.#listeners.size >= listenersMax) return false;
    response.writeHead(200, { ...safeHeaders, ...eventStream });
    this.#look();
    response.write(eventText('history', { step_ms: stepMs, samples: this.#history.samples() }));
    response.write(eventText('state', this.#report(streamsToldMax)));
    this.#listeners.add(response);
    response.once('close', () => this.#listeners.delete(response));
    return true;
  }

  #look(): Watched {
    const { look, clock } = this.#settings;
    this.#watched = look();
    this.#lookedAt = clock.monotonic();
    this.#history.observe(this.#watched, clock.now(), this.#lookedAt);
    this.#health.observe(this.#watched, this.#lookedAt);
    return this.#watched;
  }

  #report(streamsMax: number): Report {
    return reportOf({
      watched: this.#watched,
      history: this.#history,
      ailments: this.#health.ailments(),
      now: this.#settings.clock.now(),
      startedAt: this.#startedAt,
      streamsMax,
    });
  }

  /** A listener that does not read misses states; a sample is a state's worth of bytes and may wait in the buffer. */
  #tell(event: 'state' | 'sample', told: object): void {
    const text = eventText(event, told);
    for (const listener of this.#listeners) {
      if (listener.writableLength > bufferedBytesMax) listener.destroy();
      else if (event === 'sample' || !listener.writableNeedDrain) listener.write(text);
    }
  }
}

/** A listener that has so much unread is taken to be gone; the page comes back by itself. */
const bufferedBytesMax = 4 * 1_024 * 1_024;

/** JSON holds no line feed, so a value cannot end its line and start an event of its own. */
function eventText(event: string, told: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(told)}\n\n`;
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly board: Board;
  readonly settings: StatusSettings;
  readonly assets: ReadonlyMap<string, Asset>;
}

interface Answer {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

function answer(exchange: Exchange): void {
  const { response, settings } = exchange;
  try {
    const given = answerTo(exchange);
    if (given !== null) send(response, given);
  } catch (error) {
    settings.log.warn('the status could not be told', { error: String(error) });
    if (response.headersSent) response.destroy();
    else send(response, plain(500, 'the status cannot be told; the log says why'));
  }
}

/** Null: the response is a listener's now, and stays open. */
function answerTo({ request, response, board, settings, assets }: Exchange): Answer | null {
  const { method, url = '/', headers } = request;
  const { token, host } = settings;
  const [path = '/'] = url.split('?', 1);
  if (token === null && isLoopback(host) && !namesLoopback(headers.host)) {
    return plain(421, 'ask for this machine by its loopback address or as localhost');
  }
  if (method !== 'GET' && method !== 'HEAD') {
    return { ...plain(405, 'the status can only be read'), headers: { allow: 'GET, HEAD' } };
  }
  const asset = assets.get(path);
  if (asset !== undefined) return asset;
  const trusted = token === null || bringsToken(headers, token.reveal());
  if (path === '/healthz') return plain(200, 'ok');
  if (path === '/readyz') {
    const readiness = board.readiness();
    return json(board.ready ? 200 : 503, trusted ? readiness : { ready: board.ready });
  }
  if (path !== '/metrics' && path !== '/status.json' && path !== '/events') {
    return plain(404, 'there is no such page');
  }
  if (!trusted) {
    const challenge = { 'www-authenticate': 'Bearer realm="sluice"' };
    return { ...plain(401, 'bring status.token as a bearer token'), headers: challenge };
  }
  if (path === '/status.json') return json(200, board.report());
  if (path === '/metrics') {
    return { status: 200, body: board.metrics(), headers: { 'content-type': metricsType } };
  }
  if (method === 'HEAD') return { status: 200, body: '', headers: eventStream };
  if (board.listen(response)) return null;
  return { ...plain(503, 'too many listen already'), headers: { 'retry-after': '5' } };
}

const eventStream = { 'content-type': 'text/event-stream' };

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
  // Node leaves the body of an answer to HEAD out by itself.
  response.writeHead(status, { ...usual, ...headers }).end(body);
}

type Asset = Answer & { readonly body: Uint8Array };

/** The page's files, read once: what is served does not change under a running program. */
function readAssets(): ReadonlyMap<string, Asset> {
  const asset = (name: string, type: string): Asset => ({
    status: 200,
    body: readFileSync(new URL(`./page/${name}`, import.meta.url)),
    headers: { 'content-type': `${type}; charset=utf-8` },
  });
  const scripts = ['page.js', 'charts.js', 'journey.js', 'dom.js'];
  return new Map([
    ['/', asset('index.html', 'text/html')],
    ['/page.css', asset('page.css', 'text/css')],
    ['/icon.svg', asset('icon.svg', 'image/svg+xml')],
    ...scripts.map((name) => [`/${name}`, asset(name, 'text/javascript')] as const),
  ]);
}
