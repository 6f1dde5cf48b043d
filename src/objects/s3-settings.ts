// The keys of the config that say how a bucket is reached, for every sink that writes to one.

import { z } from 'zod';
import { duration, proxy, type Secret, secret, tls } from '../contracts/settings.ts';
import type { TlsSettings } from '../contracts/tools.ts';

/** `region`, `endpoint`, `credentials`, `timeout`, `tls` and `proxy`. */
export const bucketKeys = {
  region: z
    .string()
    .min(1)
    .optional()
    .describe(
      'the bucket’s region; left out: AWS_REGION or the profile’s, with an endpoint us-east-1',
    ),
  endpoint: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('address of a service other than AWS that speaks S3; buckets are in its path then'),
  credentials: z
    .strictObject({
      access_key_id: z.string().min(1).describe('the access key’s id'),
      secret_access_key: secret().describe('the access key itself'),
      session_token: secret().optional().describe('of temporary credentials'),
    })
    .optional()
    .describe(
      'left out: environment, shared profile, web identity, container, instance, whichever is first',
    ),
  timeout: duration()
    .prefault('60s')
    .describe('bound on one request, of which the longest carries 8 MiB'),
  tls: tls().describe('TLS of an https:// endpoint'),
  proxy: proxy(),
};

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
  /** Milliseconds. */
  readonly timeout?: number | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: Secret | undefined;
}

/** A bucket's name, as S3 allows it. */
export function bucketName() {
  return z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
      'expected a bucket’s name, without s3:// or a path',
    );
}
