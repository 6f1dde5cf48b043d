// An upstream as sources see it: one base address with its credentials, throttles and TLS settings.
// A source gives path and query; the time, the permission and the token of a request are the
// upstream's concern.

import type { Answer } from './answer.ts';
import type { ErrorDetails } from './errors.ts';
import type { JsonObject } from './json.ts';
import type { HttpResponse } from './tools.ts';

/** One reading request: a GET, or a POST if it has a body. It may be repeated. */
export interface UpstreamRequest {
  /** Path below the base address, percent-encoded. */
  readonly path: string;
  /** The path with named variable parts, `/companies/{company_id}/objects`, for throttles. */
  readonly template: string;
  /** Query parameters in order; values are percent-encoded once, byte for byte. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The requested company, so that requests of many companies alternate. */
  readonly company?: string;
  /**
   * Path and query as upstream named them, from its root: requested in place of `path` and `query`.
   */
  readonly address?: string;
  /** Parameters sent as a JSON body. */
  readonly body?: JsonObject;
  /** The body's format. Default: one JSON value. */
  readonly response?: 'ndjson';
  /** The request registers something once per key; any 2xx confirms it. */
  readonly idempotencyKey?: string;
}

/**
 * The body of a 200 that begins as JSON and is not an error in disguise; of NDJSON, no line is
 * empty.
 */
export interface Body {
  /** The requested URL: the base of relative addresses in the response. */
  readonly url: string;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Called by the reader with the position and count of a list page, if responses are stored
   * (fetch/answers.ts).
   */
  readonly shows?: (shown: { readonly next?: string | null; readonly records: number }) => void;
  /** Describes the members of an envelope, without the secrets of the request. */
  readonly describe?: (members: JsonObject) => {
    readonly text: string;
    readonly details: ErrorDetails;
  };
}

/** Called with each complete response as received, also if it gives no result. */
export type Received = (answer: HttpResponse & { readonly requestId?: string }) => void;

/** One upstream of the config. */
export interface Upstream {
  /** Its name in the config. */
  readonly name: string;
  readonly api: 'unified' | 'services';
  /** The base address, for fingerprints and messages. */
  readonly baseUrl: string;
  readonly companies: readonly string[];
  /** Sends one request; rejects only with the signal's reason. */
  get(request: UpstreamRequest, signal: AbortSignal, received?: Received): Promise<Answer<Body>>;
}
