// The request to a token endpoint and its response (RFC 6749, section 5.1), for upstreams and sinks. Invariant: a text
// that could forge a header is no token.

import type { JsonObject } from './json.ts';

/** A lifetime below a second would mean a token request per page. */
const lifeMsMin = 1_000;

/** A bearer token. */
export interface GrantedToken {
  readonly token: string;
  /** Milliseconds from the request; null: the response has no valid `expires_in`. */
  readonly lifeMs: number | null;
}

/** The token in a response's object; null: it has no bearer token of visible ASCII characters. */
export function tokenIn(body: JsonObject): GrantedToken | null {
  const { access_token: token, token_type: type, expires_in: life } = body;
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) return null;
  if (typeof type === 'string' && type.toLowerCase() !== 'bearer') return null;
  return { token, lifeMs: lifeOf(life) };
}

/** A text as in a form (`application/x-www-form-urlencoded`), in which clients write their id and secret. */
export function formEncoded(text: string): string {
  return new URLSearchParams({ v: text }).toString().slice(2);
}

/** Microsoft's metadata service writes the number as text. */
function lifeOf(expiresIn: unknown): number | null {
  const seconds =
    typeof expiresIn === 'string' && /^\d{1,10}$/.test(expiresIn.trim())
      ? Number(expiresIn)
      : expiresIn;
  const isUsable = typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0;
  return isUsable ? Math.max(seconds * 1_000, lifeMsMin) : null;
}
