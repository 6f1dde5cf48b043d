// A request of `archive erase` to the process that writes the archive: one record, by the uid of its event. It is an
// object of the archive, and goes when it is carried out. What must stay true: it is a wish. Whoever can write to the
// store can write one, so it names no hash, position or time that the writer would believe; the writer finds the
// record, its pages and its objects of the lake in what is proven.

import { z } from 'zod';
import { jsonIn } from './small-objects.ts';

/** What names of requests begin with. */
export const requestsPrefix = 'erase/';
/** No request is longer. */
export const erasureRequestBytesMax = 64 * 1024;
const uid = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();

const requestShape = z.object({
  uid,
  reason: z.string().min(1).max(1_000),
  asked_at: time,
  /** Only pages read from then on and before are searched; absent or null: all. RFC 3339. */
  from: time.nullable().optional(),
  to: time.nullable().optional(),
  /** Absent: it is unsigned (authority.ts). */
  signed: z.string().optional(),
});

/** A record to be erased, and where it is searched for. */
export type ErasureRequest = z.output<typeof requestShape>;

/** Name of a request's object. */
export function requestPath(uid: string): string {
  return `${requestsPrefix}${uid}.json`;
}

/** The bytes of a request's object. */
export function encodeRequest(request: ErasureRequest): Buffer {
  return Buffer.from(`${JSON.stringify(request, null, 2)}\n`);
}

/** A request as it was written; those of older versions say more, which is ignored. Throws a SyntaxError. */
export function parseRequest(bytes: Uint8Array): ErasureRequest {
  const { data } = requestShape.safeParse(jsonIn(bytes));
  if (data === undefined) throw new SyntaxError('it does not have the form of a request');
  return data;
}
