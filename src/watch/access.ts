// Who may read the status. On loopback whoever is on this machine may, and a web page must not: its
// requests would come from a browser on this machine, under a name of the attacker's that was made
// to lead here (DNS rebinding), so the Host header has to name loopback; or under our own name,
// which the browser itself tells (Sec-Fetch-Site). On any other address readers bring a bearer
// token, or a name and a password. What must stay true: no secret stands in a URL, a log or an
// answer, and the time a comparison takes says nothing about it.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIPv4 } from 'node:net';
import type { Secret } from '../contracts/secret.ts';

/** What readers bring, each where it is set; both null: nothing. */
export interface Credentials {
  /** RFC 6750 section 2.1. */
  readonly token: Secret | null;
  /** RFC 7617, which browsers ask for by themselves. */
  readonly basicAuth: { readonly username: string; readonly password: Secret } | null;
}

/** True for addresses that only this machine can reach, as a config writes them. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** True where a client addressed this machine as such: `localhost:8686`, `127.0.0.1`, `[::1]:1`. */
export function namesLoopback(hostHeader: string | undefined): boolean {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+))(?::\d{1,5})?$/i.exec(hostHeader ?? '');
  const host = match?.[1] ?? match?.[2];
  return host !== undefined && isLoopback(host.toLowerCase());
}

/**
 * True where a browser says that another site's page makes it ask
 * (https://www.w3.org/TR/fetch-metadata/). That page could not read the answer, yet making one
 * costs us.
 */
export function isForeign(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/**
 * True where a request that has something done comes from our own page, or from a program that
 * brings credentials. A browser names the page in Origin, and would send a name and a password it
 * knows along with a request of any other page.
 */
export function isOwn(headers: IncomingHttpHeaders, { token, basicAuth }: Credentials): boolean {
  const { origin, host = '' } = headers;
  if (isForeign(headers)) return false;
  if (origin !== undefined) return URL.parse(origin)?.host === host.toLowerCase();
  return token !== null || basicAuth !== null || headers['sec-fetch-site'] === 'same-origin';
}

/** True where the request brings what readers must bring. */
export function isTrusted(headers: IncomingHttpHeaders, credentials: Credentials): boolean {
  const { token, basicAuth } = credentials;
  if (token === null && basicAuth === null) return true;
  const [, scheme = '', brought = ''] = /^(\w+) +(\S+)$/.exec(headers.authorization ?? '') ?? [];
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return token !== null && isSame(brought, token.reveal());
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

/** What to bring, for who is turned away. Only for name and password does a browser ask itself. */
export function challengeOf({ basicAuth }: Credentials): string {
  return basicAuth === null ? 'Bearer realm="sluice"' : 'Basic realm="sluice", charset="UTF-8"';
}

/** Digests have the same length whatever was brought, as the comparison needs. */
function isSame(brought: string, requested: string): boolean {
  return timingSafeEqual(digest(brought), digest(requested));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Sent with every answer: nothing is kept, framed, sniffed, or loaded from elsewhere. */
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
