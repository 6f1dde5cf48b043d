// The config keys of a bucket connection, and the SDK options made from them.

import { z } from 'zod';
import { duration, proxy, secret, tls } from '../contracts/config.ts';
import { proxyOfEnvironment, type Secret, type TlsSettings } from '../contracts/index.ts';
import { environmentProxy, tlsAgent } from '../tools/index.ts';

const connectMsMax = 10_000;
const requestMsMax = 60_000;
/** Connections to one address, as the SDK's own agent has them. */
const maxSockets = 50;

/** `region`, `endpoint`, `credentials`, `timeout`, `checksums`, `tls` and `proxy`. */
export const bucketKeys = {
  region: z
    .string()
    .min(1)
    .optional()
    .describe(
      'region of the bucket; default: AWS_REGION or the profile’s, with an endpoint us-east-1',
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
      'default: the first of environment, shared profile, web identity, container, instance',
    ),
  timeout: duration()
    .prefault('60s')
    .describe('bound on one request, of which the longest carries 8 MiB'),
  checksums: z
    .enum(['always', 'when_required'])
    .default('always')
    .describe(
      'always: each write carries a checksum header; when_required: only where S3 demands one, for services that answer 501 to it',
    ),
  tls: tls().describe('TLS of an https:// endpoint'),
  proxy: proxy(),
};

/** The settings of a bucket connection. */
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
  /** Default: `always`. */
  readonly checksums?: 'always' | 'when_required' | undefined;
  /**
   * False: the service lacks `If-None-Match`; an object's existence is checked before it is
   * written.
   */
  readonly conditional_writes?: boolean | undefined;
  readonly tls?: TlsSettings | undefined;
  readonly proxy?: Secret | undefined;
}

/** The options of the SDK's client, which does not retry by itself. */
export function clientConfig({
  region,
  endpoint,
  credentials,
  timeout,
  checksums = 'always',
  tls,
  proxy,
}: BucketSettings) {
  const checksumsWhen =
    checksums === 'always' ? ('WHEN_SUPPORTED' as const) : ('WHEN_REQUIRED' as const);
  const given = proxy?.reveal();
  // NO_PROXY as every other sink reads it: Node's own reading has no CIDR blocks and no subdomains.
  const address =
    given === proxyOfEnvironment
      ? environmentProxy(endpoint ?? addressOf(region), process.env)?.address
      : given;
  const proxyEnv = address && { HTTP_PROXY: address, HTTPS_PROXY: address };
  const through = { keepAlive: true, maxSockets, ...(proxyEnv && { proxyEnv }) };
  return {
    ...(region === undefined && endpoint === undefined ? {} : { region: region ?? 'us-east-1' }),
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials === undefined
      ? {}
      : {
          credentials: async () => ({
            accessKeyId: credentials.access_key_id,
            secretAccessKey: credentials.secret_access_key.reveal(),
            ...(credentials.session_token && {
              sessionToken: credentials.session_token.reveal(),
            }),
            // Short, so that they are read again and renewed ones apply.
            expiration: new Date(Date.now() + 60_000),
          }),
        }),
    maxAttempts: 1,
    // Through a forwarding proxy, Node would send a request with Expect: 100-continue directly.
    ...(proxy !== undefined && { expectContinueHeader: false }),
    requestChecksumCalculation: checksumsWhen,
    responseChecksumValidation: checksumsWhen,
    requestHandler: {
      connectionTimeout: connectMsMax,
      requestTimeout: timeout ?? requestMsMax,
      throwOnRequestTimeout: true,
      httpAgent: through,
      httpsAgent: tlsAgent(tls, through),
    },
  };
}

/** The address of S3 in a region; buckets are names below it. */
function addressOf(region = 'us-east-1'): string {
  return `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
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
