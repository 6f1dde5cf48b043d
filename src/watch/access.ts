// Who may read the status. On loopback whoever is on this machine may, and a web page must not: its requests would come from a
// browser on this machine, under a name of the attacker's that was made to lead here (DNS rebinding), so the
// Host header has to name loopback. On any other address readers bring a token. What must stay true: the token stands
// in no URL, no log and no answer, and the time a comparison takes says nothing about it.

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** True for addresses that only this machine can reach, as a config writes them. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** True where a browser or client addressed this machine as such: `localhost:8686`, `127.0.0.1`, `[::1]:1`. */
export function namesLoopback(hostHeader: string | undefined): boolean {
  const match = /^(?:\[([0-9a-f:]+)\]|([^:[\]]+))(?::\d{1,5})?$/i.exec(hostHeader ?? '');
  const host = match?.[1] ?? match?.[2];
  return host !== undefined && isLoopback(host.toLowerCase());
}

/** True where the request brings this token (RFC 6750 section 2.1). */
export function bringsToken(headers: IncomingHttpHeaders, token: string): boolean {
  const brought = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1];
  // Digests have the same length whatever was brought, as the comparison needs.
  return brought !== undefined && timingSafeEqual(digest(brought), digest(token));
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
