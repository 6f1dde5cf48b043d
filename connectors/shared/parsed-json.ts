// An answer's body as JSON.

import type { Json } from '../../src/contracts/json.ts';

/** Undefined where it is none. */
export function parsedJson(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}
