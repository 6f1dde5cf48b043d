// What `archive erase` asks of whoever writes the archive: one record, and where it was found. It is an
// object of the archive, and goes when it is carried out.

import { z } from 'zod';

/** What names of requests begin with. */
export const requestsPrefix = 'erase/';
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const place = z.int().min(0);

const requestShape = z.object({
  uid: sha256,
  /** Of the record's exact bytes. */
  sha256,
  reason: z.string().min(1).max(1_000),
  asked_at: z.iso.datetime(),
  /** The pages that have it: their entries, and where their bodies are now. */
  pages: z.array(
    z.object({
      index: place,
      body: z.object({ sha256, bytes: place, segment: z.string(), at: place, length: place }),
    }),
  ),
  /** The objects of the lake that have its events, which, their cuts, and when pages of these were read. */
  lake: z.array(
    z.object({
      cut: z.string(),
      object: z.string(),
      uids: z.array(sha256),
      read: z.tuple([z.int(), z.int()]),
    }),
  ),
});

/** What was asked to be erased, and where it is. */
export type ErasureRequest = z.output<typeof requestShape>;

/** Name of a request's object. */
export function requestPath(uid: string): string {
  return `${requestsPrefix}${uid}.json`;
}

/** The bytes of a request's object. */
export function encodeRequest(request: ErasureRequest): Buffer {
  return Buffer.from(`${JSON.stringify(request, null, 2)}\n`);
}

/** A request as it was written. Throws a SyntaxError. */
export function parseRequest(bytes: Uint8Array): ErasureRequest {
  const { data } = requestShape.safeParse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  if (data === undefined) throw new SyntaxError('it is not what a request is written as');
  return data;
}
