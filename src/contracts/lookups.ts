// The look-ups of the services API: names of numbers that IANA assigns. Sources name those they
// want (`enrich`), fetch holds them, and normalising puts a name beside its number.

import { z } from 'zod';

/** What can be looked up. */
export const lookupNames = ['ip_protocols', 'icmp_types', 'icmpv6_types'] as const;

/** One of them. */
export type LookupName = (typeof lookupNames)[number];

/** Names by number; a look-up that is not there names nothing. */
export type NumberNames = Readonly<Partial<Record<LookupName, ReadonlyMap<number, string>>>>;

const requested = z.array(z.enum(lookupNames));

/** The key of a source that wants some. */
export function enrichField() {
  return requested
    .refine((names) => new Set(names).size === names.length, 'each look-up may be here once')
    .default([])
    .describe('look-ups of the upstream whose names are put beside numbers');
}

/** What a source's settings want looked up. */
export function requestedLookups({
  enrich,
}: {
  readonly [setting: string]: unknown;
}): readonly LookupName[] {
  return requested.safeParse(enrich).data ?? [];
}
