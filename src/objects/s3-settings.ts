// How a bucket is reached, for everything that writes to one or reads it.

import type { Secret } from '../contracts/settings.ts';
import type { TlsSettings } from '../contracts/tools.ts';

/** How a bucket is reached. */
export interface BucketSettings {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly credentials?:
    | {
        readonly access_key_id: string;
        readonly secret_access_key: Secret;
        readonly session_token?: Secret | undefined;
      }
    | undefined;
  readonly tls?: TlsSettings | undefined;
}
