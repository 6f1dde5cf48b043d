// Tokens for a test broker, which accepts unsigned ones that have not expired (RFC 7515, algorithm "none").

import type { HttpAnswer, HttpReceiver } from './http-receiver.ts';

/** An unsigned token, valid from now for so many seconds; its text contains `token-canary` in base64url. */
function tokenFor(seconds: number): string {
  const now = Math.floor(Date.now() / 1_000);
  const part = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url');
  const claims = { sub: 'sluice', iat: now - 7_200, exp: now + seconds, note: 'token-canary' };
  return `${part({ alg: 'none' })}.${part(claims)}.`;
}

/** The response of a token endpoint. */
export function grant(seconds: number, expiresIn = seconds): HttpAnswer {
  const body = JSON.stringify({ access_token: tokenFor(seconds), expires_in: expiresIn });
  return { answer: 'reply', status: 200, body };
}

/** Lets a receiver answer with tokens of so many seconds; returns the setting `sasl` for it. */
export function tokenEndpoint(receiver: HttpReceiver, seconds: number) {
  receiver.answer(() => grant(seconds));
  return saslFor(receiver);
}

/** The setting `sasl` for a token endpoint. */
export function saslFor(endpoint: { readonly url: string }, clientSecret = 'secret-canary') {
  const client = { client_id: 'me', client_secret: clientSecret, scope: 'kafka' };
  return { mechanism: 'oauthbearer', token_url: `${endpoint.url}/token`, ...client };
}
