// The words for a sentence about a record without a mapping, found under the common names that CEF uses as well
// (cef-keys.ts). Upstream documents no fields of its logs, so without this a log would be "Base Event: Unknown" in
// every SIEM. Invariant: which value is chosen depends on the names in the record and on which values are texts, and on
// nothing else.

import { isObject } from '../src/contracts/index.ts';
import { cefKeys } from './cef-keys.ts';
import { textOf } from './parts.ts';

/** The parts of a sentence. */
export type WordOf = 'title' | 'action' | 'who' | 'from' | 'to' | 'on';
/** The found words; a missing one is unknown. */
export type RecordWords = Readonly<Partial<Record<WordOf, string>>>;

const keysOf: Readonly<Record<WordOf, readonly string[]>> = {
  title: ['name'],
  action: ['act'],
  who: ['suser', 'suid'],
  from: ['src', 'shost'],
  to: ['dhost', 'dst'],
  on: ['request', 'destinationDnsDomain', 'cs4', 'fname', 'cs1'],
};
/** Names that CEF does not need: its header has the class. */
const moreNames: Readonly<Partial<Record<WordOf, readonly string[]>>> = {
  title: ['alertname', 'findingtitle', 'title', 'rulename', 'alerttitle', 'eventtitle'],
  // The name of an event says more than its type, which may be a format's.
  action: 'eventname operationname operation activity verb eventtype logtype type kind'.split(' '),
  on: ['host', 'hostname', 'domain'],
};

/** By canonical name: the word, and its rank; less is better. */
const vocabulary: ReadonlyMap<string, readonly { word: WordOf; rank: number }[]> = vocabularyOf();
const wrappers: ReadonlySet<string> = new Set([
  'event',
  'attributes',
  'log',
  'data',
  'network',
  'alert',
]);
const depthMax = 3;
const nameLengthMax = 64;
const membersMax = 256;
const none: RecordWords = Object.freeze({});

function vocabularyOf(): ReadonlyMap<string, { word: WordOf; rank: number }[]> {
  const made = new Map<string, { word: WordOf; rank: number }[]>();
  for (const [word, keys] of Object.entries(keysOf) as [WordOf, readonly string[]][]) {
    const names = keys.flatMap((key) => cefKeys.find((row) => row.key === key)?.names ?? []);
    for (const [rank, name] of [...names, ...(moreNames[word] ?? [])].entries())
      made.set(name, [...(made.get(name) ?? []), { word, rank }]);
  }
  return made;
}

/** The words of a record's members without an attribute. */
export function recordWords(unmapped: unknown): RecordWords {
  if (!isObject(unmapped)) return none;
  const found = new Map<WordOf, { readonly text: string; readonly rank: number }>();
  let members = 0;
  const walk = (object: object, above: string, depth: number): void => {
    for (const [name, value] of Object.entries(object)) {
      members += 1;
      if (members > membersMax || name.length > nameLengthMax) continue;
      const canonical = canonicalOf(above, name);
      if (isObject(value)) {
        if (depth < depthMax) walk(value, canonical, depth + 1);
        continue;
      }
      const text = textOf(value);
      if (text === undefined) continue;
      for (const { word, rank } of vocabulary.get(canonical) ?? [])
        if (rank < (found.get(word)?.rank ?? Number.POSITIVE_INFINITY))
          found.set(word, { text, rank });
    }
  };
  walk(unmapped, '', 0);
  return Object.fromEntries([...found].map(([word, { text }]) => [word, text]));
}

/** Without case and separators; a member of a wrapper counts as one of the record. */
function canonicalOf(above: string, name: string): string {
  if (above === '' && wrappers.has(name)) return '';
  return above + name.toLowerCase().replace(/[^a-z0-9]/g, '');
}
