// The fingerprint of a config, which a process gives to the other processes of a state in Kafka: the names of its sinks
// and sources, each with a digest of its settings. Invariant: no setting can be derived from it, because it is made
// from the config without secrets, and digests are short.

import { isObject, type Json } from '../contracts/index.ts';
import { keptSha256 } from './kept.ts';

/** Enough to see a difference. */
const digits = 12;

/** The fingerprint of a stored config. */
export function printOf(kept: Json) {
  return { sinks: digestsOf(kept, 'sinks'), sources: digestsOf(kept, 'sources') };
}

function digestsOf(kept: Json, kind: string): Readonly<Record<string, string>> {
  const blocks = isObject(kept) ? kept[kind] : null;
  const entries = isObject(blocks ?? null) ? Object.entries(blocks as object) : [];
  return Object.fromEntries(
    entries.map(([name, block]) => [name, keptSha256(block as Json).slice(0, digits)]),
  );
}
