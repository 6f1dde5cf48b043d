// A response's body as JSON, and the token in it.

import { type GrantedToken, isObject, type Json, tokenIn } from '../../src/contracts/index.ts';

/** Undefined if it is not JSON. */
export function parsedJson(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The token in the response of a token endpoint; null: it has none. */
export function grantedIn(body: Uint8Array): GrantedToken | null {
  const said = parsedJson(body);
  return isObject(said) ? tokenIn(said) : null;
}
