// Reads the bodies of requests that any client can send, within one bound on all of them together. If the bound is
// exceeded, the request that has been under way longest is ended, never the newest: a slow or large sender cannot keep
// upstream out. Invariants: a body counts from its first byte until its response is sent; a body with a valid signature
// is not ended for another request.

import type { IncomingMessage } from 'node:http';
import { GrowingBody } from '../tools/index.ts';
import type { DeliveryRefusal } from './delivery.ts';

/** Bound in bytes of all bodies together, and the fixed cost of a request. */
const bytesTogetherMax = 32 * 1024 * 1024;
const bytesEach = 4_096;

/** The share of one request. */
export interface Share {
  /** False if there is no room. */
  grow(bytes: number): boolean;
  /** Its signature is valid: it stays until it is released. */
  prove(): void;
  release(): void;
}

/** The memory of all bodies under way. */
export class BodyBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  /** Requests that may be ended, in order of arrival. */
  readonly #unproven = new Set<() => void>();

  constructor(bytesMax = bytesTogetherMax) {
    this.#bytesMax = bytesMax;
  }

  /** `end` is called if this request must make room; it releases its share. */
  share(end: () => void): Share {
    let own = 0;
    this.#unproven.add(end);
    return {
      grow: (bytes) => {
        own += bytes;
        this.#bytes += bytes;
        for (const oldest of this.#unproven) {
          if (this.#bytes <= this.#bytesMax || oldest === end) break;
          oldest();
        }
        return this.#bytes <= this.#bytesMax;
      },
      prove: () => void this.#unproven.delete(end),
      release: () => {
        this.#bytes -= own;
        own = 0;
        this.#unproven.delete(end);
      },
    };
  }
}

/** A body with its share, which the caller must release; the reason for a rejection; or `gone`. */
export type BodyRead =
  | { readonly body: Uint8Array; readonly share: Share }
  | DeliveryRefusal
  | 'gone';

/** Reads the body of a request. */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  bytesMax: number,
): Promise<BodyRead> {
  const { promise, resolve } = Promise.withResolvers<BodyRead>();
  const gathered = new GrowingBody(bytesMax, bytesEach);
  const end = (how: DeliveryRefusal | 'gone') => {
    request.off('data', add);
    share.release();
    gathered.drop();
    resolve(how);
  };
  const share = budget.share(() => end('too_many'));
  const add = (chunk: Buffer) => {
    if (gathered.length + chunk.length > bytesMax) end('too_large');
    else if (share.grow(chunk.length)) gathered.add(chunk);
    else end('too_many');
  };
  request.on('data', add);
  request.once('end', () => resolve({ body: gathered.take(), share }));
  // After the end of the request this changes nothing.
  request.once('close', () => {
    if (!request.readableEnded) end('gone');
  });
  request.once('error', () => end('gone'));
  if (!share.grow(bytesEach)) end('too_many');
  return promise;
}
