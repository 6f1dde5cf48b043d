// The one HTTP client of sluice, on undici: pages come in through it and the http sink's batches go out. It returns a
// whole answer within its bounds of time and size or throws one HttpFailure; there is nothing between. It never
// follows a redirect (the credentials would go along) and never retries (the engine owns that, and must see each 429).
// Connections are pooled by TLS settings and origin; certificates rotated on disk are taken up without a restart.

import type { Dispatcher } from 'undici';
import { invariant } from '../contracts/errors.ts';
import {
  type HttpClient,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
} from '../contracts/tools.ts';
import { acceptEncoding, decode } from './content-encoding.ts';
import { type Phase, toHttpFailure } from './http-failure.ts';
import { openPools, type Pools } from './http-pools.ts';

/** What differs from the defaults; tests and tuning only. */
export interface HttpClientOptions {
  /** Open connections per origin; more requests than that wait. Default 16. */
  readonly connectionsMax?: number;
  /** Default 10 s. */
  readonly connectTimeoutMs?: number;
  /** How often certificate files are looked at, at most. Default 5 s. */
  readonly certificateCheckMs?: number;
}

/** The HTTP client as who has opened it sees it. */
export interface OwnHttpClient extends HttpClient {
  /** Loads undici ahead of the first request, which would else wait for it. */
  ready(): Promise<void>;
}

/** Timers overflow above this. */
const timerMsMax = 2 ** 31 - 1;

/**
 * Opens the client; undici is loaded by `ready` or the first request. An aborted `signal` rejects at once with the signal's reason,
 * every other failure is an HttpFailure. `close` breaks off what is under way.
 */
export function openHttpClient(options: HttpClientOptions = {}): OwnHttpClient {
  const pools = openPools({
    connectionsMax: options.connectionsMax ?? 16,
    connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
    certificateCheckMs: options.certificateCheckMs ?? 5_000,
  });
  return {
    async request(request, signal) {
      signal.throwIfAborted();
      const packed = await exchange(pools, request, signal);
      const { status, headers } = packed;
      const encoding = headers['content-encoding'];
      if (encoding === undefined) return packed;
      const body = await decode(packed.body, encoding, request.bodyBytesMax);
      signal.throwIfAborted();
      return { status, headers, body };
    },
    ready: () => pools.ready(),
    close: () => pools.close(),
  };
}

async function exchange(
  pools: Pools,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  invariant(request.method === 'GET' || request.method === 'POST', 'requests are GET or POST');
  const url = addressOf(request.url);
  const pool = await pools.pool(request.tls);
  return new Promise((resolve, reject) => {
    const answer = new AnswerReader(request.bodyBytesMax, (outcome) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      if ('failure' in outcome) reject(outcome.failure);
      else resolve(outcome.response);
    });
    const abort = () => answer.giveUp(signal.reason);
    const timer = setTimeout(
      () => answer.giveUp(timeout(request.timeoutMs, answer.phase)),
      Math.min(request.timeoutMs, timerMsMax),
    );
    signal.addEventListener('abort', abort, { once: true });
    try {
      pool.dispatch(
        {
          origin: url.origin,
          path: `${url.pathname}${url.search}`,
          method: request.method,
          headers: {
            'accept-encoding': acceptEncoding,
            'user-agent': 'sluice',
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
 * Gathers one answer straight from undici's parser, without a stream in between. Settles once; what undici reports
 * after that is the echo of giving up.
 */
class AnswerReader implements Dispatcher.DispatchHandler {
  phase: Phase = 'connecting';
  readonly #bytesMax: number;
  /** The whole body's memory, where the answer tells its length: chunks can then go as they come. */
  #whole: Buffer | null = null;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;
  #status = 0;
  #headers: Record<string, string> = {};
  #controller: Dispatcher.DispatchController | null = null;
  #settle: ((outcome: Outcome) => void) | null;

  constructor(bytesMax: number, settle: (outcome: Outcome) => void) {
    this.#bytesMax = bytesMax;
    this.#settle = settle;
  }

  /** Fails the exchange with this error, at once, wherever it stands; the connection is dropped. */
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
    else if (length > 0) this.#whole = Buffer.allocUnsafeSlow(length);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const start = this.#length;
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) this.#refuseLength();
    else if (this.#whole === null) this.#chunks.push(chunk);
    else chunk.copy(this.#whole, start);
  }

  onResponseEnd(): void {
    // undici has checked that the body is as long as was told.
    const body = this.#whole ?? Buffer.concat(this.#chunks, this.#length);
    this.#finish({ response: { status: this.#status, headers: this.#headers, body } });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#finish({ failure: toHttpFailure(error, this.phase) });
  }

  #refuseLength(): void {
    this.giveUp(new HttpFailure('too_large', `the answer exceeds ${this.#bytesMax} bytes`));
  }

  #finish(outcome: Outcome): void {
    const settle = this.#settle;
    this.#settle = null;
    settle?.(outcome);
  }
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
