// A response's body as JSON.

import type { Json } from '../../src/contracts/index.ts';

/** Undefined if it is not JSON. */
export function parsedJson(body: Uint8Array): Json | undefined {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return undefined;
  }
}
