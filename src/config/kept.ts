// A config as it is kept beside the state while it runs: as it was written, references and all, but
// for secrets that stand in it in plain text. What must stay true: read again it is the same
// config, and no secret that unlocks anything but the status is in it. That one stays: who may read
// the state directory may read all that the status tells.

import { hash } from 'node:crypto';
import { isObject, type Json } from '../contracts/json.ts';
import type { Reference, ReferenceText } from './references.ts';
import type { WrittenValue } from './written.ts';

/** Stands in for a secret. */
const standIn = 'not-kept-here';

/** What is written, as plain values. */
export function plainValueOf(top: WrittenValue): Json {
  return kept(top, false);
}

/**
 * SHA-256 of it, by which an archive says what config was in force, in hex: of its JSON, the keys of
 * each object in order. Comments, the order of keys and secrets make no difference.
 */
export function keptSha256(kept: Json): string {
  return hash('sha256', JSON.stringify(kept, inOrder), 'hex');
}

function inOrder(_: string, value: Json): Json {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function kept(written: WrittenValue, isOfStatus: boolean): Json {
  const { value, template, children, isSecret } = written;
  if (children !== null) {
    if (Array.isArray(value)) return Array.from(children.values(), (one) => kept(one, isOfStatus));
    const entries = Array.from(children, ([key, one]): [string, Json] => [
      String(key),
      kept(one, isOfStatus || (written.keyAt === null && key === 'status')),
    ]);
    return Object.fromEntries(entries);
  }
  if (template !== null) return textOf(template);
  if (isSecret && !isOfStatus) return standIn;
  return typeof value === 'string' ? escaped(value) : ((value ?? null) as Json);
}

function textOf(template: ReferenceText): string {
  return template
    .map((part) => (typeof part === 'string' ? escaped(part) : referenceText(part)))
    .join('');
}

function referenceText(reference: Reference): string {
  if (reference.from === 'file') return `\${file:${reference.path}}`;
  const { name, fallback } = reference;
  return `\${env:${name}${fallback === null ? '' : `:-${fallback}`}}`;
}

/** A text that is no reference, though it may look like one. */
function escaped(text: string): string {
  return text.replace(/\$+(?=\{)/g, (dollars) => dollars + dollars);
}
