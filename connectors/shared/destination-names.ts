// `{company}` and `{source}` in the name of a destination: an index, a topic, a service. Invariants: the name depends on
// the event's page alone; a value is made safe for every destination; two companies never share a name, also where
// upper and lower case are one, since a value that is changed gets a part of its hash; `none` stands for no company.

import { hash } from 'node:crypto';
import type { Event } from '../../src/contracts/index.ts';

const placeholder = /\{(company|source|class|date)\}/g;
/** Characters, beside a-z and 0-9, that the value of a placeholder can have. */
const marks = { company: '-_', source: '-_', class: '_', date: '.' } as const;
const plain = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const hashDigits = 16;
const hashEnd = new RegExp(`[-_][0-9a-f]{${hashDigits}}$`);
const slugLength = 32;
/** Maximum cached names; a platform has fewer companies. */
const keptMax = 20_000;

/** An event, as far as its destination depends on the page. */
interface OfPage {
  readonly context: Pick<Event['context'], 'source' | 'company'>;
}

/** True if names of this pattern differ by company or source. */
export function isPerPage(pattern: string): boolean {
  return /\{(company|source)\}/.test(pattern);
}

/** The flaw of a name without placeholders; null: none. A literal `{company}` would join all companies. */
export function fixedNameFlaw(key: string, name: string): string | null {
  const found = /\{(?:company|source)\}/.exec(name)?.[0];
  if (found === undefined) return null;
  return `${key}: ${found} is not replaced in this sink; write one sink for each, and select its events with routes, such as where: event.metadata.tenant_uid == "c-1"`;
}

/**
 * The part of a path before the first `/`-separated element with a placeholder, with its `/`, and the rest. The first part
 * is the same for all destinations.
 */
export function splitAtPlaceholder(path: string): readonly [fixed: string, pattern: string] {
  const at = /\{(?:company|source)\}/.exec(path)?.index ?? path.length;
  const cut = path.lastIndexOf('/', at) + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

/** The flaw of a pattern; null: none. A character of a-z or 0-9 between two values may belong to either. */
export function patternFlaw(key: string, pattern: string): string | null {
  if (!/\}(?:[a-z0-9][^{}]*)?\{/i.test(pattern) || !isPerPage(pattern)) return null;
  return `${key}: write one of - _ . directly after a placeholder that another one follows, such as {source}-{company}, so that two companies never share a name`;
}

/**
 * Returns the function from an event to the pattern with `{company}` and `{source}` replaced;
 * other placeholders stay.
 */
export function pageNames(pattern: string): (event: OfPage) => string {
  if (!isPerPage(pattern)) return () => pattern;
  const parts = [...pattern.matchAll(placeholder)].map(
    ({ 0: text, 1: kind = '', index }, at, all) => {
      const next = pattern[index + text.length] ?? '';
      const later = all.slice(at + 1).map(([, one]) => marks[one as keyof typeof marks]);
      // The first such character after the value must be the pattern's own.
      const excluded = later.some((own) => own.includes(next)) ? next : '';
      return { text, kind, excluded };
    },
  );
  const known = new Map<string, string>();
  let last: OfPage['context'] | null = null;
  let name = '';
  return ({ context }) => {
    if (context === last) return name;
    const { company = null, source } = context;
    const key = JSON.stringify([company, source]);
    let made = known.get(key);
    if (made === undefined) {
      made = pattern;
      for (const { text, kind, excluded } of parts) {
        if (kind === 'company') made = made.replace(text, safeName(company, excluded));
        if (kind === 'source') made = made.replace(text, safeName(source, excluded));
      }
      if (known.size >= keptMax) known.clear();
      known.set(key, made);
    }
    last = context;
    name = made;
    return made;
  };
}

/** A value for a name; null: no company. Different values have different names. */
function safeName(value: string | null, excluded: string): string {
  if (value === null || value === '') return 'none';
  const isPlain = plain.test(value) && value !== 'none' && !hashEnd.test(value);
  if (isPlain && (excluded === '' || !value.includes(excluded))) return value;
  const mark = excluded === '-' ? '_' : '-';
  const words = value
    .slice(0, 4 * slugLength)
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const slug = (words?.join(mark) ?? 'x').slice(0, slugLength);
  return `${slug}${mark}${hash('sha256', value, 'hex').slice(0, hashDigits)}`;
}
