// The only HTTP client of sluice, on undici: it reads pages and sends the http sink's batches. It
// returns a complete response within its bounds of time and size or throws one HttpFailure; there
// is no third result. Invariants: it never follows a redirect (which would forward the credentials)
// and never retries (the engine does, and must see each 429). Connections are pooled by TLS
// settings and origin; certificates rotated on disk apply without a restart.

import type { Dispatcher } from 'undici';
import {
  errorText,
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  invariant,
  proxyOfEnvironment,
} from '../contracts/index.ts';
import { BytesInFlight, type Lease } from './bytes-in-flight.ts';
import { acceptEncoding, decode, refusePacked } from './content-encoding.ts';
import { free, GrowingBody } from './counted-memory.ts';
import { environmentProxy } from './environment-proxy.ts';
import { type Phase, toHttpFailure } from './http-failure.ts';
import { openPools, type Pools } from './http-pools.ts';
import { buildText } from './version.ts';

/** A comment after the version is RFC 9110's form: `sluice/0.2.0 (1a2b3c4d5e6f, 2026-11-26)`. */
const userAgent = `sluice/${buildText()}`;

/** Differences from the defaults; only for tests and tuning. */
export interface HttpClientOptions {
  /** Open connections per origin; further requests wait. Default 16. */
  readonly connectionsMax?: number;
  /** Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** Bound on the counted bodies that are read at the same time. Default 32 MiB. */
  readonly inFlightBytesMax?: number;
  /** Minimum interval between checks of certificate files. Default 5 s. */
  readonly certificateCheckMs?: number;
}

/** The HTTP client as its opener sees it. */
export interface OwnHttpClient extends HttpClient {
  readonly inFlight: BytesInFlight;
  /** Loads undici before the first request, which would wait for it otherwise. */
  ready(): Promise<void>;
}

/** Per origin: the polls that may run at a time, and slow ones beside them (fetch/turns.ts). */
const connectionsUsual = 48;
/** Timers overflow above this. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Opens the client; undici is loaded by `ready` or the first request. An aborted `signal` rejects
 * at once with the signal's reason, every other failure is an HttpFailure. `close` aborts requests
 * in flight.
 */
export function openHttpClient(options: HttpClientOptions = {}): OwnHttpClient {
  const pools = openPools({
    connectionsMax: options.connectionsMax ?? connectionsUsual,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    certificateCheckMs: options.certificateCheckMs ?? 5_000,
  });
  const inFlight = new BytesInFlight(options.inFlightBytesMax);
  return {
    inFlight,
    async request(request, signal) {
      signal.throwIfAborted();
      // Tokens are requested with POST, and other requests wait for them: they never wait
      // themselves.
      const lease = request.method === 'GET' ? inFlight.open() : null;
      try {
        const packed = await exchange(pools, { request, lease }, signal);
        const { status, headers } = packed;
        const encoding = headers['content-encoding'];
        const body =
          encoding === undefined
            ? packed.body
            : await decode(packed.body, encoding, { bytesMax: request.bodyBytesMax, lease });
        if (encoding === undefined) refusePacked(body);
        signal.throwIfAborted();
        lease?.complete();
        return { status, headers, body };
      } catch (error) {
        lease?.drop();
        throw error;
      }
    },
    ready: () => pools.ready(),
    close: () => pools.close(),
  };
}

async function exchange(
  pools: Pools,
  { request, lease }: { readonly request: HttpRequest; readonly lease: Lease | null },
  signal: AbortSignal,
): Promise<HttpResponse> {
  invariant(request.method === 'GET' || request.method === 'POST', 'requests are GET or POST');
  const url = addressOf(request.url);
  const pool = await pools.pool(request.tls, proxyFor(url, request.proxy));
  return new Promise((resolve, reject) => {
    const answer = new AnswerReader({ bytesMax: request.bodyBytesMax, lease }, (outcome) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      if ('failure' in outcome) reject(outcome.failure);
      else resolve(outcome.response);
    });
    const abort = () => answer.giveUp(signal.reason);
    const expire = () => {
      // Time in which it was not read does not count as upstream's.
      const pausedMs = answer.takePausedMs();
      if (pausedMs > 0) timer = setTimeout(expire, Math.min(pausedMs, timerMsMax));
      else answer.giveUp(timeout(request.timeoutMs, answer.phase));
    };
    let timer = setTimeout(expire, Math.min(request.timeoutMs, timerMsMax));
    signal.addEventListener('abort', abort, { once: true });
    try {
      pool.dispatch(
        {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: request.method,
          headers: {
            'accept-encoding': acceptEncoding,
            'user-agent': userAgent,
            ...request.headers,
          },
          body: request.body ?? null,
        },
        answer,
      );
    } catch (error) {
      answer.giveUp(toHttpFailure(error, 'connecting'));
    }
  });
}

function proxyFor(url: URL, proxy: string | undefined): string | undefined {
  if (proxy !== proxyOfEnvironment) return proxy;
  try {
    return environmentProxy(url.href, process.env)?.address;
  } catch (error) {
    throw new HttpFailure('unreachable', errorText(error), error);
  }
}

function addressOf(text: string): URL {
  const url = URL.parse(text);
  if (url && (url.protocol === 'https:' || url.protocol === 'http:')) return url;
  throw new HttpFailure('unreachable', 'the address is not an http:// or https:// URL');
}

function timeout(timeoutMs: number, phase: Phase): HttpFailure {
  return new HttpFailure('timeout', `no whole answer within ${timeoutMs} ms (${phase})`);
}

type Outcome = { readonly response: HttpResponse } | { readonly failure: unknown };

/**
 * Collects one response directly from undici's parser, without a stream in between. Settles once;
 * later reports of undici are consequences of the abort.
 */
class AnswerReader implements Dispatcher.DispatchHandler {
  phase: Phase = 'connecting';
  readonly #bytesMax: number;
  readonly #lease: Lease | null;
  #body: GrowingBody | null = null;
  /** The last received chunk, if its memory is its own. */
  #chunk: Buffer<ArrayBuffer> | null = null;
  #pausedMs = 0;
  /** On the clock of `performance`; null while it is read. */
  #pausedAt: number | null = null;
  #status = 0;
  #headers: Record<string, string> = {};
  #controller: Dispatcher.DispatchController | null = null;
  #settle: ((outcome: Outcome) => void) | null;

  constructor(
    { bytesMax, lease }: { readonly bytesMax: number; readonly lease: Lease | null },
    settle: (outcome: Outcome) => void,
  ) {
    this.#bytesMax = bytesMax;
    this.#lease = lease;
    this.#settle = settle;
  }

  /** How long reading was paused for other bodies since the last call. */
  takePausedMs(): number {
    const now = performance.now();
    const pausedMs = this.#pausedMs + (this.#pausedAt === null ? 0 : now - this.#pausedAt);
    this.#pausedMs = 0;
    if (this.#pausedAt !== null) this.#pausedAt = now;
    return Math.ceil(pausedMs);
  }

  /** Fails the exchange with this error at once, in any phase; the connection is dropped. */
  giveUp(failure: unknown): void {
    this.#finish({ failure });
    this.#controller?.abort(asError(failure));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.phase = 'waiting for the answer';
    if (this.#settle === null)
      controller.abort(new Error('given up while waiting for a connection'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // Informational answers (103 Early Hints) come before the real one.
    if (status < 200) return;
    this.phase = 'reading the answer';
    this.#status = status;
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined)
        this.#headers[name] = Array.isArray(value) ? value.join(', ') : value;
    }
    const length = Number(this.#headers['content-length']);
    if (length > this.#bytesMax) this.#refuseLength();
    else this.#body = new GrowingBody(this.#bytesMax, length > 0 ? length : undefined);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const body = this.#body;
    if (body === null || this.#settle === null) return;
    if (body.length + chunk.length > this.#bytesMax) {
      this.#refuseLength();
      return;
    }
    body.add(chunk);
    this.#releasePrevious(chunk as Buffer<ArrayBuffer>);
    if (this.#lease === null || this.#lease.add(chunk.length)) return;
    this.#pausedAt ??= performance.now();
    controller.pause();
    this.#lease.onTurn(() => {
      this.#pausedMs += performance.now() - (this.#pausedAt ?? 0);
      this.#pausedAt = null;
      controller.resume();
    });
  }

  onResponseEnd(): void {
    // undici has checked that the body has the declared length.
    const body = this.#body?.take() ?? new Uint8Array(0);
    this.#finish({ response: { status: this.#status, headers: this.#headers, body } });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish({ failure: toHttpFailure(error, this.phase) });
  }

  /**
   * Releases the memory of the previous chunk once the next one came in other memory: the parser
   * has finished with it by then. Until a garbage collection tens of megabytes would pile up. Only
   * memory that mostly belongs to the chunk is its own, not a pool.
   */
  #releasePrevious(chunk: Buffer<ArrayBuffer>): void {
    const before = this.#chunk;
    if (before !== null && before.buffer !== chunk.buffer) free(before);
    this.#chunk = chunk.length > chunk.buffer.byteLength / 2 ? chunk : null;
  }

  #refuseLength(): void {
    this.giveUp(new HttpFailure('too_large', `the answer exceeds ${this.#bytesMax} bytes`));
  }

  #finish(outcome: Outcome): void {
    const settle = this.#settle;
    this.#settle = null;
    this.#body?.drop();
    settle?.(outcome);
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
