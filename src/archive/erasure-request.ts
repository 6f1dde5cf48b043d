// A request of `archive erase` to the archive's writer: one record, by the uid of its event. It is an object of the
// archive, and is deleted when it is carried out. Invariant: the request is not trusted. Any writer to the store can
// create one, so it contains no hash, position or time that the archive's writer relies on; the writer finds the
// record, its pages and its lake objects in proven data.

import { z } from 'zod';
import { jsonIn } from './small-objects.ts';

/** Prefix of the names of requests. */
export const requestsPrefix = 'erase/';
/** Limit of a request in bytes. */
export const erasureRequestBytesMax = 64 * 1024;
const uid = z.string().regex(/^[0-9a-f]{64}$/);
const time = z.iso.datetime();

const requestShape = z.object({
  uid,
  reason: z.string().min(1).max(1_000),
  asked_at: time,
  /** Only pages read in this span, its end excluded, are searched; absent or null: all. RFC 3339. */
  from: time.nullable().optional(),
  to: time.nullable().optional(),
  /** Absent: unsigned (authority.ts). */
  signed: z.string().optional(),
});

/** A record to erase, and the span to search. */
export type ErasureRequest = z.output<typeof requestShape>;

/** Name of a request's object. */
export function requestPath(uid: string): string {
  return `${requestsPrefix}${uid}.json`;
}

/** The bytes of a request's object. */
export function encodeRequest(request: ErasureRequest): Buffer {
  return Buffer.from(`${JSON.stringify(request, null, 2)}\n`);
}

/** Parses a request; additional fields of older versions are ignored. Throws a SyntaxError. */
export function parseRequest(bytes: Uint8Array): ErasureRequest {
  const { data } = requestShape.safeParse(jsonIn(bytes));
  if (data === undefined) throw new SyntaxError('it does not have the form of a request');
  return data;
}
