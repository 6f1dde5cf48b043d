// The normaliser of each source and kind of record, compiled when it is first needed.

import type { RecordReading } from '../contracts/definition.ts';
import type { PageContext } from '../contracts/event.ts';
import { compileNormaliser } from '../normalise/normalise.ts';
import type { Normalise } from './held-event.ts';

/** How the records of a source are read. */
export interface ReadSource {
  readonly name: string;
  readonly reading: RecordReading;
}

const commonReading: RecordReading = { id: 'id', time: ['timestamp', 'time', 'created_at'] };

/** For each page the normaliser of its source; one that is not in the config is read by common names. */
export function normalisersOf(sources: readonly ReadSource[]): (context: PageContext) => Normalise {
  const readings = new Map(sources.map((source) => [source.name, source.reading]));
  const compiled = new Map<string, Normalise>();
  return ({ source, kind }) => {
    const key = `${kind} ${source}`;
    let normalise = compiled.get(key);
    if (normalise === undefined) {
      const unknown = kind === 'drift' ? { id: null, time: [] } : commonReading;
      normalise = compileNormaliser(kind, readings.get(source) ?? unknown);
      compiled.set(key, normalise);
    }
    return normalise;
  };
}
