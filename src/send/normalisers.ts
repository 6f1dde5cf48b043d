// The normaliser of each source and record kind, compiled on first use.

import type { NumberNames, RecordReading } from '../contracts/config.ts';
import type { PageContext } from '../contracts/index.ts';
import { compileNormaliser, type Normalise, withNumberNames } from '../normalise/index.ts';

/** How the records of a source are normalised. */
export interface ReadSource {
  readonly name: string;
  readonly reading: RecordReading;
  /** Names to add to numbers, as far as known when an event is made. */
  readonly lookups?: { readonly names: NumberNames };
}

const commonReading: RecordReading = { id: 'id', time: ['timestamp', 'time', 'created_at'] };

/**
 * Returns the normaliser of a page's source; a source outside the config is normalised by common
 * names.
 */
export function normalisersOf(sources: readonly ReadSource[]): (context: PageContext) => Normalise {
  const known = new Map(sources.map((source) => [source.name, source]));
  const compiled = new Map<string, Normalise>();
  return ({ source, kind }) => {
    const key = `${kind} ${source}`;
    let normalise = compiled.get(key);
    if (normalise === undefined) {
      const unknown = kind === 'drift' ? { id: null, time: [] } : commonReading;
      const { reading = unknown, lookups } = known.get(source) ?? {};
      const plain = compileNormaliser(kind, reading);
      normalise =
        lookups === undefined
          ? plain
          : (record, uid, context) => withNumberNames(plain(record, uid, context), lookups.names);
      compiled.set(key, normalise);
    }
    return normalise;
  };
}
