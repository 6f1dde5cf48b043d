// The print of a config, which a process gives to the other processes of a state in Kafka: the names
// of its sinks and sources, each with a digest of its settings. What must stay true: no setting can
// be read from it, since it is made of the config without its secrets, and digests are short.

import { isObject, type Json } from '../contracts/json.ts';
import { keptSha256 } from './kept.ts';

/** Enough to see that two differ. */
const digits = 12;

/** The print of a config as it is kept. */
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
