// The compared parts of records of a pair, which are added to each page on its way into the spool. The engines are unaware
// of this. Invariant: a stream without a pair pays one look-up per append and no more.

import { hash } from 'node:crypto';
import type { Append, Json, NewPage, PairRecord, PairStore, Stream } from '../contracts/index.ts';
import { objectDigest } from '../parents/index.ts';
import { cutRecords, idDigest, sourceTextAt, valueAt } from '../tools/index.ts';
import { companyIn, pairChange } from './changes.ts';
import { foldRecord, happenedAt } from './fold.ts';
import type { SideOfPair } from './pairing.ts';

/** Longest id in a report. */
const idCharsMax = 64;
const keyBytes = 16;

/** True if a source delivers its records now: as the old side of a pair before the cutover, or as the new one after it. */
export function delivers(
  of: SideOfPair | null,
  pairs: Pick<PairStore, 'isCutOver'> | undefined,
): boolean {
  if (of === null) return true;
  const isCutOver = pairs?.isCutOver(of.pairing.plan.successor) === true;
  return isCutOver === (of.side === 'new');
}

/** The entry of a stream with the compared parts of its records, if its source is a side of a pair. */
export function pairedEntry(entry: Append, stream: Stream, of: SideOfPair | null): Append {
  if (of === null) return entry;
  const kinds = stream.kind === 'collection' ? ['drift'] : ['audit', 'log'];
  const isCompared = ({ context: { kind } }: NewPage) => kinds.includes(kind);
  if (!entry.pages.some(isCompared)) return entry;
  const pages = entry.pages.map((page) => (isCompared(page) ? pairedPage(page, of) : page));
  return { ...entry, pages };
}

/** The page with the compared parts of its kept records. */
export function pairedPage(page: NewPage, { pairing, side }: SideOfPair): NewPage {
  const { body, items, kept, context } = page;
  const slices = page.slices ?? cutRecords(body, items);
  const { paths, rules, changes } = pairing.sides[side];
  const company = context.company ?? null;
  const count = kept?.length ?? slices.length;
  const records = Array.from({ length: count }, (_, index): PairRecord => {
    const at = kept?.[index] ?? index;
    const [start, end] = [slices.starts[at] ?? 0, slices.ends[at] ?? 0];
    const raw = body.subarray(start, end);
    const record = JSON.parse(textOf(raw)) as Json;
    if (context.kind === 'drift') return { ...pairChange(record, changes), start, end };
    const time = happenedAt(record, paths.time);
    const source = paths.id === null ? null : idSource(raw, record, paths.id);
    // An object belongs to its parent, even if it has no id.
    const parent = pairing.sides[side].object === null ? undefined : context.parent;
    const id = source === null ? (parent ?? null) : idText(source);
    const fields = JSON.stringify(foldRecord(record, rules));
    return {
      key: keyOf(context.parent ?? null, id === null ? ['at', time ?? fields] : ['id', id]),
      company: company ?? companyIn(record),
      id: id === null ? null : id.slice(0, idCharsMax),
      happenedAt: time,
      fields,
      before: source === null || paths.otherId === null ? [] : digestsOf(paths.otherId, source),
      ...(parent !== undefined && objectOf(body, parent, { company, pairing, side })),
      ...{ start, end },
    };
  });
  return { ...page, pair: { pair: pairing.plan.successor, side, records } };
}

/** The other side's digest of an object; `body`: an array that contains only the object. */
function objectOf(
  body: Uint8Array,
  parent: string,
  { company, pairing, side }: SideOfPair & { readonly company: string | null },
): Pick<PairRecord, 'object'> {
  const other = side === 'old' ? 'new' : 'old';
  const rules = pairing.sides[other].object;
  if (rules === null) return {};
  const streams = pairing.streams[other].filter(
    (one) => company === null || one.company === undefined || one.company === company,
  );
  const digest = objectDigest(Buffer.from(body), rules);
  return { object: { streams: streams.map(({ name }) => name), parent, digest } };
}

function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('utf8');
}

function keyOf(parent: string | null, who: readonly (string | number)[]): Uint8Array {
  const text = JSON.stringify([parent, ...who]);
  return new Uint8Array(hash('sha256', text, 'buffer').subarray(0, keyBytes));
}

/** The source text of an id; null: the record has no usable one. */
function idSource(raw: Uint8Array, record: Json, path: string): string | null {
  const value = valueAt(record, path);
  if (typeof value === 'string') return value === '' ? null : JSON.stringify(value);
  // Only the source text keeps all digits of a number.
  return typeof value === 'number' ? sourceTextAt(raw, path) : null;
}

function idText(source: string): string {
  return source.startsWith('"') ? (JSON.parse(source) as string) : source;
}

/** The possible identities of the other side: as text, and as a number if it can be one. */
function digestsOf(path: string, source: string): PairRecord['before'] {
  const text = idText(source);
  const isNumber = /^-?(0|[1-9]\d*)$/.test(text);
  return [idDigest(path, JSON.stringify(text)), ...(isNumber ? [idDigest(path, text)] : [])];
}
