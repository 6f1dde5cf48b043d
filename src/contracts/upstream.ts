// An upstream as sources see it: one base address with its credentials, throttles and TLS settings behind it. A source
// says which path and query it wants; whether, when and with which token the request goes out is not its concern.

import type { ExportError } from './errors.ts';
import type { Wait } from './wait.ts';

/** One GET request. */
export interface UpstreamRequest {
  /** Path below the base address, ready to be sent: its parts are percent-encoded. */
  readonly path: string;
  /** The path with its variable parts named, e.g. `/companies/{company_id}/objects`: what the throttle counts by. */
  readonly template: string;
  /** Query parameters in order; values are percent-encoded once, byte for byte. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The company asked for, so that requests of many companies take turns. */
  readonly company?: string;
}

/**
 * The answer, a closed union. `ok`: 200 with a JSON body. `retry`: nothing is known (429, 5xx, no answer, nonsense).
 * `refused`: any other status, with upstream's own code and field where it names them. `denied`: 401 with a new token, or 403.
 */
export type UpstreamAnswer =
  | {
      readonly outcome: 'ok';
      readonly body: Uint8Array;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly outcome: 'retry'; readonly wait?: Wait; readonly cause: ExportError }
  | {
      readonly outcome: 'refused';
      readonly status: number;
      readonly code?: string;
      readonly field?: string;
      readonly cause: ExportError;
    }
  | {
      readonly outcome: 'denied';
      readonly status: number;
      readonly wait?: Wait;
      readonly cause: ExportError;
    };

/** One upstream of the config. */
export interface Upstream {
  /** Its name in the config. */
  readonly name: string;
  readonly api: 'unified' | 'services';
  /** The base address, for fingerprints and messages. */
  readonly baseUrl: string;
  readonly companies: readonly string[];
  get(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
}
