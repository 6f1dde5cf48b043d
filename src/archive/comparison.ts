// What a comparison of an archive with what upstream serves now has come to, on its way into the
// log: the process tells it as a condition of the stream, and the writer enters it beside that page.

import { z } from 'zod';
import type { Json } from '../contracts/json.ts';
import { isObject } from '../contracts/json.ts';
import { parseBody } from '../tools/records.ts';

const count = z.int().min(0);
const uids = z.array(z.string().regex(/^[0-9a-f]{64}$/));

/** A comparison: what was compared, and the uids of the first records that differ. */
export const comparisonShape = z.object({
  /** The sink whose archive was compared. */
  archive: z.string(),
  /** Records that happened from then to then, both included; RFC 3339. */
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  /** How many of them upstream served, and how many the archive has. */
  upstream: count,
  archived: count,
  /** In the archive, and not served any more; served, and never archived; served with other content. */
  dropped: count,
  missing: count,
  changed: count,
  dropped_uids: uids,
  missing_uids: uids,
  changed_uids: uids,
});

/** What a comparison has come to. */
export type ArchiveComparison = z.output<typeof comparisonShape>;

/** Codes of the conditions that tell of a comparison. */
const comparisonConditions = ['archive.compared', 'archive.differs'] as const;

/** The comparison that a page of conditions tells of; null: none. */
export function comparisonIn(body: Uint8Array): ArchiveComparison | null {
  const records: Json = parseBody(body);
  for (const record of Array.isArray(records) ? records : []) {
    if (!isObject(record)) continue;
    if (!comparisonConditions.some((condition) => condition === record.condition)) continue;
    return comparisonShape.safeParse(record.details).data ?? null;
  }
  return null;
}
