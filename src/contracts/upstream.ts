// An upstream as sources see it: one base address with its credentials, throttles and TLS settings
// behind it. A source says which path and query it wants; whether, when and with which token the
// request goes out is not its concern.

import type { Answer } from './answer.ts';
import type { ErrorDetails } from './errors.ts';
import type { JsonObject } from './json.ts';
import type { HttpResponse } from './tools.ts';

/** One request that reads: a GET, or a POST where it has a body. It may be repeated. */
export interface UpstreamRequest {
  /** Path below the base address, ready to be sent: its parts are percent-encoded. */
  readonly path: string;
  /** The path with its variable parts named, `/companies/{company_id}/objects`, for throttles. */
  readonly template: string;
  /** Query parameters in order; values are percent-encoded once, byte for byte. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The company asked for, so that requests of many companies take turns. */
  readonly company?: string;
  /** Path and query as upstream named them, from its root: asked in place of `path` and `query`. */
  readonly address?: string;
  /** Parameters that are sent as a JSON body. */
  readonly body?: JsonObject;
  /** How the answer is written; left out: one JSON value. */
  readonly response?: 'ndjson';
  /** It registers something, once for each key, and any 2xx says that it has. */
  readonly idempotencyKey?: string;
}

/** A 200 whose body begins as JSON does, and is no error in disguise; of lines, none is empty. */
export interface Body {
  /** What was asked for, which relative addresses in the answer start from. */
  readonly url: string;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** Told what of a list it shows by who has read it, where answers are held (fetch/answers.ts). */
  readonly shows?: (shown: { readonly next?: string | null; readonly records: number }) => void;
  /** Describes what the members of an envelope report, without the secrets of the request. */
  readonly describe?: (members: JsonObject) => {
    readonly text: string;
    readonly details: ErrorDetails;
  };
}

/** Told of each whole answer as it came, also of one that comes to nothing. */
export type Received = (answer: HttpResponse & { readonly requestId?: string }) => void;

/** One upstream of the config. */
export interface Upstream {
  /** Its name in the config. */
  readonly name: string;
  readonly api: 'unified' | 'services';
  /** The base address, for fingerprints and messages. */
  readonly baseUrl: string;
  readonly companies: readonly string[];
  /** Asks once; rejects only with the signal's reason. */
  get(request: UpstreamRequest, signal: AbortSignal, received?: Received): Promise<Answer<Body>>;
}
