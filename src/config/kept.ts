// The copy of a config that is stored beside the state while it runs: as written, including references, but without
// plain-text secrets. Invariants: parsed again it is the same config; it contains no secret except the one for the
// status. That one stays, because a reader of the state directory can read everything that the status shows.

import { hash } from 'node:crypto';
import { isObject, type Json } from '../contracts/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import type { Reference, ReferenceText } from './references.ts';
import type { WrittenValue } from './written.ts';

/** Replaces a secret. */
const standIn = 'not-kept-here';

/** The written config as plain values. */
export function plainValueOf(top: WrittenValue): Json {
  return kept(top, false);
}

/**
 * The copy with the ids of companies files in place of their names: a command that inspects a running process sees the
 * companies that run, whatever the file holds by then.
 */
export function withCompanies(
  kept: Json,
  upstreams: Readonly<Record<string, Pick<UpstreamSettings, 'companies' | 'companiesFile'>>>,
): Json {
  const blocks = isObject(kept) ? kept.upstreams : null;
  if (!isObject(kept) || !isObject(blocks)) return kept;
  const listed = Object.entries(upstreams).flatMap(([name, { companies, companiesFile }]) =>
    companiesFile === undefined ? [] : [[name, { companies: companies.map(escaped) }] as const],
  );
  const whole = listed.map(([name, own]) => [name, Object.assign({}, blocks[name], own)]);
  return { ...kept, upstreams: { ...blocks, ...Object.fromEntries(whole) } };
}

/**
 * SHA-256 in hex over the copy's JSON with the keys of each object sorted, by which an archive identifies the config in
 * force. Comments, the order of keys and secrets do not change the digest.
 */
export function keptSha256(kept: Json): string {
  return hash('sha256', JSON.stringify(kept, inOrder), 'hex');
}

/** Enough to see a difference. */
const digits = 12;

/**
 * The fingerprint of a config, which a process gives to the other processes of a state in Kafka: the names of its sinks
 * and sources, each with a digest of its settings. No setting can be derived from it: the copy has no secrets, and the
 * digests are short.
 */
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
  if (reference.from === 'exec') return `\${exec:${reference.command.text}}`;
  const { name, fallback } = reference;
  return `\${env:${name}${fallback === null ? '' : `:-${fallback}`}}`;
}

/** Text that is no reference although it may look like one. */
function escaped(text: string): string {
  return text.replace(/\$+(?=\{)/g, (dollars) => dollars + dollars);
}
