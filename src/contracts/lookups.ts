// The look-ups of the services API: names of numbers assigned by IANA. A source requests look-ups
// (`enrich`), fetch stores them, and normalise adds a name to each number.

import { z } from 'zod';

/** The available look-ups. */
export const lookupNames = ['ip_protocols', 'icmp_types', 'icmpv6_types'] as const;

/** One of them. */
export type LookupName = (typeof lookupNames)[number];

/** Names by number, per look-up; an absent look-up gives no names. */
export type NumberNames = Readonly<Partial<Record<LookupName, ReadonlyMap<number, string>>>>;

const requested = z.array(z.enum(lookupNames));

/** The key `enrich` of a source. */
export function enrichField() {
  return requested
    .refine((names) => new Set(names).size === names.length, 'each look-up may be here once')
    .default([])
    .describe('look-ups of the upstream that add names to numbers');
}

/** The look-ups that a source's settings request. */
export function requestedLookups({
  enrich,
}: {
  readonly [setting: string]: unknown;
}): readonly LookupName[] {
  return requested.safeParse(enrich).data ?? [];
}
