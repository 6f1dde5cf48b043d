// Reads the bodies of requests that anybody can send, within a bound on all of them together. Where
// that is passed, the one that has been under way for longest goes, never the one that has just
// come: whoever sends slowly, or much, cannot keep upstream out. What must stay true: a body counts
// from its first byte until what became of it is answered, and one whose signature was right is
// not ended for another's sake.

import type { IncomingMessage } from 'node:http';
import { GrowingBody } from '../../tools/growing-body.ts';
import type { DeliveryRefusal } from './delivery.ts';

/** Of all bodies together, and what a request costs besides its body. */
const bytesTogetherMax = 32 * 1024 * 1024;
const bytesEach = 4_096;

/** The part of one request. */
export interface Share {
  /** False where there is no room. */
  grow(bytes: number): boolean;
  /** Its signature was right: it stays until it is released. */
  prove(): void;
  release(): void;
}

/** What all bodies under way hold. */
export class BodyBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  /** Those that may be ended, in the order they came. */
  readonly #unproven = new Set<() => void>();

  constructor(bytesMax = bytesTogetherMax) {
    this.#bytesMax = bytesMax;
  }

  /** `end` is called where this one has to make room; it releases its share. */
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

/** A body with its share, which is the reader's to release; why it is refused; or `gone`. */
export type BodyRead =
  | { readonly body: Uint8Array; readonly share: Share }
  | DeliveryRefusal
  | 'gone';

/** Reads a request's body. */
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
  // After its end this changes nothing any more.
  request.once('close', () => {
    if (!request.readableEnded) end('gone');
  });
  request.once('error', () => end('gone'));
  if (!share.grow(bytesEach)) end('too_many');
  return promise;
}
