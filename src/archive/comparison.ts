// The result of comparing an archive with upstream's present data, on its way into the log: the process reports it as a
// condition of the stream, and the writer enters it beside that page.

import { z } from 'zod';
import { isObject, type Json } from '../contracts/index.ts';
import { parseBody } from '../tools/index.ts';

const count = z.int().min(0);
const uids = z.array(z.string().regex(/^[0-9a-f]{64}$/));

/** A comparison: its counts, and the uids of the first differing records. */
export const comparisonShape = z.object({
  /** The sink whose archive was compared. */
  archive: z.string(),
  /** Time span of the compared records, both ends included; RFC 3339. */
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  /** Number of records that upstream served, and that the archive has. */
  upstream: count,
  archived: count,
  /** `dropped`: archived, no longer served. `missing`: served, never archived. `changed`: served with other content. */
  dropped: count,
  missing: count,
  changed: count,
  dropped_uids: uids,
  missing_uids: uids,
  changed_uids: uids,
});

/** The result of a comparison. */
export type ArchiveComparison = z.output<typeof comparisonShape>;

/** Codes of the conditions with a comparison. */
const comparisonConditions = ['archive.compared', 'archive.differs'] as const;

/** The comparison in a page of conditions; null: none. */
export function comparisonIn(body: Uint8Array): ArchiveComparison | null {
  const records: Json = parseBody(body);
  for (const record of Array.isArray(records) ? records : []) {
    if (!isObject(record)) continue;
    if (!comparisonConditions.some((condition) => condition === record.condition)) continue;
    return comparisonShape.safeParse(record.details).data ?? null;
  }
  return null;
}
