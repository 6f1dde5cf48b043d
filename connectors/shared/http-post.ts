// One POST to an HTTP receiver, and the meaning of its response for the engine. The OTLP and HTTP
// sinks differ in the body and in how they read a success; everything else is here, so that the
// same status has the same consequence in both. Invariant: a response that leaves any doubt keeps
// the events in the spool. Only a plain "this content is wrong" (400, 422) may make dead letters;
// every other failure waits or stops the sink.

import { z } from 'zod';
import { type Compression, compressed } from '../../src/contracts/config.ts';
import {
  asExportError,
  type Delivery,
  type ErrorCode,
  ExportError,
  HttpFailure,
  type HttpRequest,
  type HttpResponse,
  headerValue,
  type Secret,
  type TlsSettings,
  type Tools,
} from '../../src/contracts/index.ts';
import type { Spoiled, TooLarge } from './halves.ts';
import { blotted, plainLine, receiverWords } from './receiver-words.ts';
import { boundedRetryAfterMs } from './retry-after.ts';

// The response size that OTLP allows (protocol specification, "OTLP/HTTP"), and enough for other
// receivers: a longer response cannot be read, and the batch would be sent again although it
// arrived.
const answerBytesMax = 4 * 1024 * 1024;

/** Address and options of a posting sink; the settings that these sinks share. */
export interface HttpReceiver {
  readonly url: string;
  readonly headers?: Readonly<Record<string, Secret>> | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly compression: Compression;
  readonly timeout: number;
  readonly proxy?: Secret | undefined;
  readonly sign?: Sign | undefined;
}

/** Adds authentication headers to a request, computed over the bytes as sent. */
export type Sign = (request: {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}) => Promise<Readonly<Record<string, string>>>;

/**
 * One body to post, and its headers. The receiver's own headers from the config take precedence.
 */
export interface Post {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** The result of a post: a success that the sink has to read, or one of the other results. */
export type PostAnswer =
  | {
      readonly outcome: 'accepted';
      readonly response: HttpResponse;
      /**
       * Removes sluice's own secrets from a response; to be called before the text is cut, which
       * could leave a part.
       */
      blot(said: Uint8Array): Uint8Array;
    }
  | FailedAnswer;

/** The result of a post that was not accepted. */
export type FailedAnswer =
  | Exclude<Delivery, { readonly outcome: 'delivered' | 'partly' }>
  | TooLarge
  | Spoiled;

/** The setting `url` of a posting sink. Credentials belong in headers, because URLs are shown. */
export function postUrl() {
  return z
    .url({ protocol: /^https?$/, error: 'expected a URL such as https://ingest.example/path' })
    .refine((url) => {
      const parsed = URL.parse(url);
      return parsed === null || (parsed.username === '' && parsed.password === '');
    }, 'credentials do not go into the URL: set headers, e.g. { Authorization: ${env:NAME} }');
}

/** A flaw in a receiver's settings together; null: none. */
export function receiverFlaw(settings: HttpReceiver): string | null {
  return settings.tls !== undefined && settings.url.startsWith('http:')
    ? 'tls is set, but url begins with http://; write https://, or leave tls out'
    : null;
}

/** True if a request has bytes of its own, whatever body is posted. */
export function isCopied({ compression }: Pick<HttpReceiver, 'compression'>): boolean {
  return compression !== 'none';
}

/** Context of a request. */
export interface PostContext {
  /** Start of every error message, e.g. `sending to post`. */
  readonly doing: string;
  readonly tools: Pick<Tools, 'clock' | 'http'>;
  readonly signal: AbortSignal;
  /**
   * The receiver's explanation in a failed response, if it has a known field for it; one short
   * line.
   */
  readonly explain?: (response: HttpResponse) => string;
  /**
   * The result of a failed response if the receiver reports more than the status; undefined: the
   * status decides. `failure` creates its error with the receiver's explanation.
   */
  readonly judge?: (response: HttpResponse, failure: MakeHttpError) => FailedAnswer | undefined;
}

/** Creates the error for a failed response. */
export type MakeHttpError = (code: ErrorCode, next: string) => ExportError;

/** The end of an error text if waiting suffices. */
export const heldNext = 'Nothing was lost: the events stay held and are sent again by themselves.';

/** Posts once. Rejects only when `signal` aborts. */
export async function postOnce(
  receiver: HttpReceiver,
  post: Post,
  context: PostContext,
): Promise<PostAnswer> {
  const { doing, tools, signal } = context;
  const at = `${doing}: ${new URL(receiver.url).origin}`;
  try {
    const body = await compressed(post.body, receiver.compression);
    const headers = revealed(receiver.headers);
    const plain = {
      ...post.headers,
      ...headers,
      ...(receiver.compression === 'none' ? {} : { 'content-encoding': receiver.compression }),
    };
    const signed = await signedHeaders(receiver, 'POST', plain, body);
    const response = await tools.http.request(
      { method: 'POST', ...requestParts(receiver), headers: signed, body },
      signal,
    );
    if (response.status >= 200 && response.status < 300) {
      const blot = (body: Uint8Array) => blotted({ ...response, body }, receiver.url, headers).body;
      return { outcome: 'accepted', response, blot };
    }
    return failureAnswer(blotted(response, receiver.url, headers), at, { ...context, receiver });
  } catch (error) {
    signal.throwIfAborted();
    // The proxy may have refused a password that a command prints.
    if (error instanceof HttpFailure) void receiver.proxy?.refresh();
    return failureMeaning(error, at);
  }
}

/**
 * Frees the body of a request that has been answered and is not sent again, if a compressed copy was sent: otherwise a
 * garbage collection of the whole heap frees the body later. Nothing else may read the body.
 */
export function freeSent(
  body: Uint8Array,
  { compression }: Pick<HttpReceiver, 'compression'>,
): void {
  const { buffer } = body;
  // A small body shares its memory with others.
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === body.byteLength;
  if (compression !== 'none' && isOwn) buffer.transfer(0);
}

/** Requests with GET, for `check --connect` if a POST could leave something behind. */
export async function getOnce(receiver: HttpReceiver, context: PostContext): Promise<HttpResponse> {
  const { doing, tools, signal } = context;
  try {
    return await tools.http.request(
      {
        method: 'GET',
        ...requestParts(receiver),
        headers: await signedHeaders(receiver, 'GET', revealed(receiver.headers)),
      },
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    throw failureMeaning(error, `${doing}: ${new URL(receiver.url).origin}`).cause;
  }
}

/**
 * The error of an accepted post whose response is not the expected one: a login page, a proxy’s
 * text, an incomplete response. Nothing is concluded from it.
 */
export function unusableResponse(
  { status, headers: { 'content-type': type = 'none' } }: HttpResponse,
  about: { readonly doing: string; readonly whose: string; readonly next: string },
): ExportError {
  const message = `${about.doing}: the receiver answered ${status} with a response that is not from ${about.whose} (${plainLine(type)})`;
  return new ExportError('sink_refused', message, { next: about.next, details: { status } });
}

/** An HTML page, such as a login or a proxy’s own error: no event receiver responds with one. */
export function isPage({ body }: HttpResponse): boolean {
  return /^\s*<(!doctype\s+html|html)\b/i.test(Buffer.from(body).toString('utf8', 0, 1024));
}

/** `judge` for receivers whose own 400 is never a page: a page is not about an event. */
export function pageIsOfSink(next: string): NonNullable<PostContext['judge']> {
  return (response, failure) =>
    response.status === 400 && isPage(response)
      ? { outcome: 'refused', scope: 'sink', cause: failure('sink_refused', next) }
      : undefined;
}

async function signedHeaders(
  { url, sign }: HttpReceiver,
  method: 'GET' | 'POST',
  headers: Readonly<Record<string, string>>,
  body?: Uint8Array,
): Promise<Readonly<Record<string, string>>> {
  if (sign === undefined) return headers;
  return await sign({ method, url, headers, ...(body !== undefined && { body }) });
}

function requestParts(
  receiver: HttpReceiver,
): Pick<HttpRequest, 'url' | 'timeoutMs' | 'bodyBytesMax' | 'tls' | 'proxy'> {
  return {
    url: receiver.url,
    timeoutMs: receiver.timeout,
    bodyBytesMax: answerBytesMax,
    ...(receiver.tls === undefined ? {} : { tls: receiver.tls }),
    ...(receiver.proxy === undefined ? {} : { proxy: receiver.proxy.reveal() }),
  };
}

function revealed(headers: HttpReceiver['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers ?? {}).map(([name, value]) => [
      name.toLowerCase(),
      headerValue(value, `the header ${name}`),
    ]),
  );
}

/**
 * The meaning of a status. OTLP lists 408 and 500 as not retryable, and lets an exporter drop; here
 * the events stay in the spool and cost only a wait, so every 5xx and 408 is retried. 409 comes
 * from a receiver that still processes the same Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header, section 2.6).
 */
function failureAnswer(
  response: HttpResponse,
  at: string,
  context: PostContext & { readonly receiver: HttpReceiver },
): FailedAnswer {
  const { status } = response;
  const failure: MakeHttpError = (code, next) => {
    const said = context.explain?.(response) || receiverWords(response);
    const message = `${at} answered ${status}${said === '' ? '' : `: ${said}`}`;
    return new ExportError(code, message, { next, details: { status } });
  };
  const judged = context.judge?.(response, failure);
  if (judged !== undefined) return judged;
  if (status === 413) {
    const next = 'It was sent in halves; a smaller batch.bytes saves the second request.';
    return { outcome: 'too_large', cause: failure('record_refused', next) };
  }
  if (status === 400 || status === 422) {
    const next =
      'See why in the receiver’s log; an event that is refused by itself becomes a dead letter, and the rest is delivered.';
    return { outcome: 'refused', scope: 'batch', cause: failure('record_refused', next) };
  }
  if (status === 429 || status >= 500 || status === 408 || status === 409 || status === 425) {
    const code = status === 429 ? 'sink_throttled' : 'sink_unreachable';
    const next =
      status === 429
        ? `The receiver limits the rate; raise its limit if that lasts. ${heldNext}`
        : `Check the receiver’s log and its back-end services. ${heldNext}`;
    const cause = failure(code, next);
    const afterMs = boundedRetryAfterMs(response.headers, context.tools.clock.now());
    return { outcome: 'retry', cause, ...(afterMs === undefined ? {} : { afterMs }) };
  }
  return {
    outcome: 'refused',
    scope: 'sink',
    cause: failure('sink_refused', advice(status, context.receiver)),
  };
}

function advice(status: number, receiver: HttpReceiver): string {
  if (redirects.has(status)) {
    return 'Redirects are not followed: set url to where it points. Nothing was lost.';
  }
  if (status < 400) {
    return 'No receiver of events responds like that: check for a cache or proxy in between. Nothing was lost.';
  }
  if (status === 407 || status === 401 || status === 403) {
    return `${credentialAdvice(status, receiver)} Nothing was lost.`;
  }
  return 'Check the sink’s url and headers; nothing was lost.';
}

/** Statuses that redirect to another address (RFC 9110, section 15.4); 304 does not. */
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The next step for a status about credentials, by the credentials that the sink has. */
export function credentialAdvice(
  status: number,
  { headers, proxy }: Pick<HttpReceiver, 'headers' | 'proxy'>,
): string {
  if (status === 407) {
    return proxy === undefined
      ? 'A proxy in between requires credentials: set the sink’s proxy, as http://USER:PASSWORD@HOST:PORT.'
      : 'Check user and password in the sink’s proxy.';
  }
  const names = Object.keys(headers ?? {});
  return names.length === 0
    ? 'The sink sends no credentials: set those that the receiver requires, such as headers: { Authorization: "Bearer ${env:TOKEN}" }.'
    : `Check the credentials of the sink; it sends them in the headers ${names.join(', ')}.`;
}

function failureMeaning(
  error: unknown,
  at: string,
): Extract<Delivery, { readonly outcome: 'retry' | 'refused' }> {
  if (!(error instanceof HttpFailure)) {
    // For example a secret file that is being replaced: the next attempt reads it again.
    return { outcome: 'retry', cause: asExportError(error, at) };
  }
  const message = `${at}: ${error.message}`;
  switch (error.reason) {
    case 'unreachable':
    case 'cut':
    case 'timeout':
    case 'encoding': {
      const next = `Check that the receiver runs and listens there, and that no firewall or proxy is in the way. ${heldNext}`;
      const cause = new ExportError('sink_unreachable', message, { next, cause: error });
      return { outcome: 'retry', cause };
    }
    case 'tls':
    case 'too_large': {
      const next = 'Check the sink’s url and tls settings; nothing was lost.';
      const cause = new ExportError('sink_refused', message, { next, cause: error });
      return { outcome: 'refused', scope: 'sink', cause };
    }
  }
}
