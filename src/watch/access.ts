// Access control for the status. On loopback any local user may read it; a cross-origin web page must not. That page's
// requests come from a browser on this machine: under the attacker's host name, made to resolve here (DNS rebinding),
// so the Host header must name loopback; or under sluice's own name, which the browser reports in Sec-Fetch-Site. On
// any other address, readers present a bearer token, or a name and a password. Invariants: no secret is in a URL, a log
// or a response; the time of a comparison reveals nothing about a secret.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '../contracts/config.ts';
import type { Secret } from '../contracts/index.ts';

/** What a reader may do: see the page and the figures; also see events; also act. */
export type Role = 'view' | 'events' | 'act';

/** From the least to the most: a role may do all that an earlier one may. */
const roles: readonly Role[] = ['view', 'events', 'act'];

/** The credentials that readers must present; all null: none. */
export interface Credentials {
  /** Allows everything. RFC 6750 section 2.1. */
  readonly token: Secret | null;
  /** By role; null: none. */
  readonly tokens?: { readonly [R in Role]?: Secret | undefined } | null;
  /** Allows everything. RFC 7617, for which browsers prompt. */
  readonly basicAuth: { readonly username: string; readonly password: Secret } | null;
}

/** True if a client addressed this machine as loopback: `localhost:8686`, `127.0.0.1`, `[::1]:1`. */
export function namesLoopback(hostHeader: string | undefined): boolean {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+))(?::\d{1,5})?$/i.exec(hostHeader ?? '');
  const host = match?.[1] ?? match?.[2];
  return host !== undefined && isLoopback(host.toLowerCase());
}

/**
 * True if a browser reports that another site's page made the request (https://www.w3.org/TR/fetch-metadata/). That
 * page could not read the response, but building one costs time.
 */
export function isForeign(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/**
 * True if a state-changing request comes from sluice's own page, or from a program with credentials. A browser names
 * the page in Origin, and would send a known name and password with a request of any page.
 */
export function isOwn(headers: IncomingHttpHeaders, credentials: Credentials): boolean {
  const { origin, host = '' } = headers;
  if (isForeign(headers)) return false;
  if (origin !== undefined) return URL.parse(origin)?.host === host.toLowerCase();
  return !isOpen(credentials) || headers['sec-fetch-site'] === 'same-origin';
}

/** True if no credentials are required. */
export function isOpen({ token, tokens = null, basicAuth }: Credentials): boolean {
  return token === null && tokens === null && basicAuth === null;
}

/** True if the request has credentials that allow this role. */
export function isTrusted(
  headers: IncomingHttpHeaders,
  credentials: Credentials,
  role: Role,
): boolean {
  const { basicAuth } = credentials;
  if (isOpen(credentials)) return true;
  const [, scheme = '', brought = ''] = /^(\w+) +(\S+)$/.exec(headers.authorization ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return isOneOf(brought, tokensFor(credentials, role));
    case 'basic': {
      if (basicAuth === null) return false;
      const { username, password } = basicAuth;
      return isSame(
        Buffer.from(brought, 'base64').toString('utf8'),
        `${username}:${password.reveal()}`,
      );
    }
    default:
      return false;
  }
}

/** The tokens that allow a role. */
function tokensFor({ token, tokens }: Credentials, role: Role): readonly Secret[] {
  const enough = roles.slice(roles.indexOf(role)).map((one) => tokens?.[one]);
  return [token ?? undefined, ...enough].filter((one) => one !== undefined);
}

/** A token that cannot be read now refuses no reader with another one. Throws its error if no other one is the same. */
function isOneOf(brought: string, tokens: readonly Secret[]): boolean {
  let unreadable: { readonly error: unknown } | null = null;
  for (const token of tokens) {
    try {
      if (isSame(brought, token.reveal())) return true;
    } catch (error) {
      unreadable = { error };
    }
  }
  if (unreadable !== null) throw unreadable.error;
  return false;
}

/** The challenge for a rejected reader. A browser prompts only for name and password. */
export function challengeOf({ basicAuth }: Credentials): string {
  return basicAuth === null ? 'Bearer realm="sluice"' : 'Basic realm="sluice", charset="UTF-8"';
}

/** The comparison needs equal lengths, and digests have equal lengths. */
function isSame(brought: string, requested: string): boolean {
  return timingSafeEqual(digest(brought), digest(requested));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Sent with every response: no caching, framing, sniffing, or foreign content. */
export const safeHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=()',
  'cache-control': 'no-store',
};
