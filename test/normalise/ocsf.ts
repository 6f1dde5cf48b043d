// Loads the official OCSF facts from beside the checkout, where they are present: the dependency-free validator, the
// compact schema and the sample records. Tests that need them say so when they are not there.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { PageContext, RecordKind } from '../../src/contracts/event.ts';
import type { Json } from '../../src/contracts/json.ts';

/** Where the shared material is when it is. */
const shared = fileURLToPath(new URL('../../../shared/data/', import.meta.url));

/** True where `../shared` stands beside the checkout. */
export const hasShared = existsSync(`${shared}ocsf/strict-check.mjs`);

/** For test titles. */
export const sharedNote = hasShared ? '' : ' (skipped: ../shared is not beside the checkout)';

/** The official validator's verdict on an event. */
export interface Verdict {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** The validator, as `node strict-check.mjs` runs it. */
export async function loadCheck(): Promise<(event: unknown) => Verdict> {
  const module: unknown = await import(pathToFileURL(`${shared}ocsf/strict-check.mjs`).href);
  return (module as { check: (event: unknown) => Verdict }).check;
}

/** The schema in compact form. */
export function loadSchema(): CompactSchema {
  return JSON.parse(readFileSync(`${shared}ocsf/ocsf-1.8.0.compact.json`, 'utf8')) as CompactSchema;
}

/** An attribute in the compact schema: type, requirement, object, array, profiles, sibling, enum, deprecated. */
export interface CompactAttribute {
  readonly t: string;
  readonly r: string;
  readonly o?: number;
  readonly a?: number;
  readonly p?: readonly string[];
  readonly s?: string;
  readonly e?: Readonly<Record<string, string>>;
  readonly d?: string;
}

/** A class or object in the compact schema. */
export interface CompactItem {
  readonly uid?: number;
  readonly caption: string;
  readonly attributes: Readonly<Record<string, CompactAttribute>>;
  readonly constraints?: {
    readonly at_least_one?: readonly string[];
    readonly just_one?: readonly string[];
  };
}

/** The compact schema. */
export interface CompactSchema {
  readonly types: Readonly<
    Record<string, { readonly type?: string; readonly regex?: string; readonly max_len?: number }>
  >;
  readonly classes: Readonly<Record<string, CompactItem>>;
  readonly objects: Readonly<Record<string, CompactItem>>;
}

/** The sample records of one file. */
export function loadSamples(name: string): readonly Json[] {
  return readFileSync(`${shared}samples/${name}.ndjson`, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Json);
}

/** The samples' file names. */
export const sampleNames = ['audit', 'auth', 'dns', 'firewall', 'ids', 'web'] as const;

/** A uid as the spool makes them. */
export const aUid = '5f'.repeat(32);

/** A page's context; `company` unless it is null. */
export function aContext(kind: RecordKind, company: string | null = 'c-1'): PageContext {
  const context = { source: 'audit', stream: 'audit', kind, fetchedAt: 1_755_800_000_000 };
  return company === null ? context : { ...context, company };
}
