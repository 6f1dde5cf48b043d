// The config keys of an `upstreams` block: the API, its address, the credential, and the request
// limits. One declaration gives validation, types, defaults and the reference page. Flaws that
// concern several keys (a plain http address, half a credential) are in `upstreamFlaws`.

import { z } from 'zod';
import { count, duration, proxy, residency, secret, size, tls } from '../contracts/config.ts';
import type { TlsSettings } from '../contracts/index.ts';
import { parseEnds } from './ends.ts';

const headerName = () =>
  z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, 'expected a header name')
    .optional();

/** An address without credentials, query or fragment; a trailing slash is dropped. */
function address() {
  return z
    .string()
    .refine((text) => {
      const url = URL.parse(text);
      return url !== null && (url.protocol === 'https:' || url.protocol === 'http:');
    }, 'expected an address such as https://api.example.com/v1')
    .refine((text) => {
      const url = URL.parse(text);
      return !url?.username && !url?.password;
    }, 'credentials belong under auth, not into the address')
    .refine((text) => !/[?#]/.test(text), 'expected an address without ? or #')
    .transform((text) => text.replace(/\/+$/, ''));
}

/** The keys of an upstream block. */
export const upstreamFields = {
  api: z
    .enum(['unified', 'services'])
    .describe('API: unified (one /v1), or services (one version per service)'),
  base_url: address().describe('base address of the API; for unified its path ends in /v1'),
  auth: z
    .strictObject({
      client_id: secret().optional().describe('OAuth client'),
      client_secret: secret().optional().describe('OAuth client’s secret'),
      scope: z
        .string()
        .min(1)
        .optional()
        .describe('scopes to request, separated by spaces; for services the public API’s URN'),
      api_key: secret()
        .optional()
        .describe('long-lived API key, instead of client_id and client_secret'),
      token_url: address()
        .optional()
        .describe('token endpoint, if not the documented one under base_url'),
      basic_encoding: z
        .enum(['raw', 'rfc6749'])
        .default('raw')
        .describe(
          'encoding of client_id and client_secret in HTTP Basic: raw: unchanged; rfc6749: form-encoded first',
        ),
    })
    .describe('credential: client_id, client_secret and scope, or api_key'),
  tls: tls().describe('TLS; default of min_version: TLSv1.3 for unified, TLSv1.2 for services'),
  proxy: proxy(),
  allow_http: z.boolean().default(false).describe('accept http:// for a loopback address'),
  throttle: z
    .array(
      z.strictObject({
        path: z
          .string()
          .startsWith('/', 'expected a path such as /audit/events')
          .optional()
          .describe(
            'path or path template that the limit applies to; default: all requests with this credential',
          ),
        requests: count(1, 100_000).describe('requests'),
        per: duration()
          .refine((ms) => ms > 0, 'expected a duration above 0')
          .describe('length of the time span; no span of this length has more requests'),
      }),
    )
    .default([])
    .describe('your own ceilings; upstream’s limits always apply as well'),
  rate_limit_headers: z
    .strictObject({
      limit: headerName().describe('header with the size of the budget'),
      remaining: headerName().describe('header with the remaining requests'),
      reset: headerName().describe('header with the reset of the budget: seconds, epoch or a date'),
    })
    .optional()
    .describe('names of rate limit headers, if upstream uses none of the usual ones'),
  rate_limit_pause: duration()
    .prefault('30s')
    .describe('wait if upstream reports no remaining request and no reset'),
  companies: z
    .union([
      z
        .array(z.string().min(1).refine(isSegment, 'expected a company id'))
        .refine((ids) => new Set(ids).size === ids.length, 'each company may be here once'),
      z.strictObject({
        file: z
          .string()
          .min(1)
          .describe(
            'file with one company id per line and `#` comments, read again when it changes; a relative path starts at the working directory',
          ),
      }),
    ])
    .default([])
    .describe(
      'company ids that replace {company_id} in paths: a list, or `{ file: PATH }` with one id per line',
    ),
  vendor: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('vendor of the platform, shown in events and formats; default: none'),
  product: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('name of the platform, shown in events and formats; default: the name of `api`'),
  ends: z
    .string()
    .refine((text) => parseEnds(text) !== null, {
      error: ({ input }) =>
        `expected never, a date such as 2026-12-31 (the end of that day, UTC), or an RFC 3339 time such as 2026-12-31T12:00:00Z, found ${JSON.stringify(input)}; set the date that the vendor names, or remove ends`,
    })
    .transform((text): number | 'never' => parseEnds(text) ?? 'never')
    .optional()
    .describe(
      'when this API ends: a date (the end of that day, UTC), an RFC 3339 time, or never. sluice reports the end and stops nothing. Default: the date in `Sunset` headers, else a future date in `Deprecation` headers, else 2026-12-31 for unified and never for services',
    ),
  residency: residency().describe(
    'label of where the data may be stored, such as eu; a route to a sink with another label is refused',
  ),
  shard: count(0, 999)
    .optional()
    .describe(
      'with `state.kafka.shards`: the shard that reads this upstream, from 0; a start is refused if its sources have their state in another shard. Default: determined by the name',
    ),
  timeout: duration()
    .refine((ms) => ms > 0, 'expected a duration above 0')
    .prefault('60s')
    .describe('limit for one request and its whole response'),
  max_body: size()
    .refine((bytes) => bytes > 0 && bytes <= 1024 ** 3, 'expected a size of at most 1GiB')
    .prefault('64MiB')
    .describe('limit for one decompressed response; a larger one is an error, never truncated'),
};

/** An upstream block as written. */
export type UpstreamBlock = z.output<z.ZodObject<typeof upstreamFields>>;

/** A companies file as it was read. */
export interface CompaniesFile {
  /** As written. */
  readonly path: string;
  /** SHA-256 of its content. */
  readonly digest: string;
}

/** A parsed upstream block, with the companies of its list or file. */
export interface UpstreamSettings extends Omit<UpstreamBlock, 'companies'> {
  /** Each once. */
  readonly companies: readonly string[];
  /** Absent: the companies are a list in the config. */
  readonly companiesFile?: CompaniesFile;
}

/** Flaws in keys that are valid each by itself; invalid keys are absent. */
export function upstreamFlaws(settings: Partial<UpstreamBlock>): readonly string[] {
  return [addressFlaw(settings), credentialFlaw(settings)].filter((flaw) => flaw !== null);
}

function addressFlaw({ base_url, auth, allow_http }: Partial<UpstreamBlock>): string | null {
  for (const address of [base_url, auth?.token_url]) {
    const url = address === undefined ? null : URL.parse(address);
    if (url?.protocol !== 'http:' || allow_http === undefined) continue;
    if (!allow_http) {
      return 'http:// sends credentials in the clear: use https://, or for a loopback address allow_http: true';
    }
    if (!isLoopback(url.hostname))
      return 'allow_http holds for loopback addresses only: use https://';
  }
  return null;
}

function credentialFlaw({ api, auth }: Partial<UpstreamBlock>): string | null {
  if (auth === undefined) return null;
  const oauth = auth.client_id !== undefined || auth.client_secret !== undefined;
  if (auth.api_key !== undefined) {
    return oauth ? 'auth holds an api_key or a client_id and client_secret, not both' : null;
  }
  if (auth.client_id === undefined || auth.client_secret === undefined) {
    return 'auth needs client_id and client_secret, or api_key';
  }
  if (api === 'services' && auth.scope === undefined) {
    return 'auth.scope is required: the services API accepts one fixed URN such as urn:vendor:api:public';
  }
  return null;
}

/** The block's TLS settings, with the API's own minimum version by default. */
export function upstreamTls(settings: Pick<UpstreamSettings, 'api' | 'tls'>): TlsSettings {
  const lowest = settings.api === 'unified' ? 'TLSv1.3' : 'TLSv1.2';
  return { ...settings.tls, min_version: settings.tls?.min_version ?? lowest };
}

/** The token endpoint: the configured one, or the one in the API's document. */
export function tokenUrl(settings: Pick<UpstreamSettings, 'api' | 'base_url' | 'auth'>): string {
  if (settings.auth.token_url !== undefined) return settings.auth.token_url;
  switch (settings.api) {
    case 'unified':
      return `${settings.base_url}/oauth/token`;
    case 'services':
      return `${settings.base_url}/api/auth/v1/oauth/v2/token`;
  }
}

/** True if the value can be one segment of a path: `.` and `..` are resolved away. */
function isSegment(value: string): boolean {
  return value !== '' && value !== '.' && value !== '..' && value.isWellFormed();
}

/** True if a line of a companies file can be an id. */
export function isCompanyId(value: string): boolean {
  return isSegment(value) && !/\p{Cc}/u.test(value);
}

/** For a host as normalised by the URL parser: an IPv4 address has four numbers. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}
