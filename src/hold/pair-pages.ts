// Pages of a pair's records: the rest of a page if some of its records are not delivered, and the
// pages built from records that have waited.

import { type NewPage, uidBytes } from '../contracts/index.ts';
import type { WaitingRow } from './pair-rows.ts';

/** The page with some of its kept records; null: nothing is stored. */
export function pageWith(page: NewPage, delivered: readonly number[]): NewPage | null {
  return delivered.length === 0 ? answerOf(page) : without(page, delivered);
}

function without(page: NewPage, delivered: readonly number[]): NewPage {
  const kept = Uint32Array.from(delivered, (at) => page.kept?.[at] ?? at);
  const uids = new Uint8Array(delivered.length * uidBytes);
  for (const [to, at] of delivered.entries()) {
    uids.set(page.uids.subarray(at * uidBytes, (at + 1) * uidBytes), to * uidBytes);
  }
  return { ...page, kept, uids };
}

/** A page without any event, as a response for sinks that prove upstream's responses. */
function answerOf(page: NewPage): NewPage | null {
  const { answer } = page.context;
  if (answer === undefined) return null;
  const context = { ...page.context, kind: 'answer' as const };
  return { ...page, context, items: '', kept: null, uids: new Uint8Array(uidBytes), onlySink: '' };
}

/** Records that have waited: neighbours from one page form one page again. */
export function* pagesOf(
  waiting: readonly WaitingRow[],
): Iterable<{ readonly page: NewPage; readonly rows: readonly WaitingRow[] }> {
  for (let from = 0; from < waiting.length; ) {
    let to = from + 1;
    while (waiting[to]?.context === waiting[from]?.context) to += 1;
    const rows = waiting.slice(from, to);
    yield { page: pageOf(rows), rows };
    from = to;
  }
}

/** Records with their own bytes and their original uids. */
function pageOf(rows: readonly WaitingRow[]): NewPage {
  const records = rows.flatMap(({ record }, at) => (at === 0 ? [record] : [comma, record]));
  return {
    context: JSON.parse(rows[0]?.context ?? '{}') as NewPage['context'],
    body: new Uint8Array(Buffer.concat([open, ...records, close])),
    ...{ items: '', kept: null },
    uids: new Uint8Array(Buffer.concat(rows.map(({ uid }) => uid))),
  };
}

const [open, comma, close] = [Buffer.from('['), Buffer.from(','), Buffer.from(']')];

/** True for a record of upstream, which may have versions; a change of a collection has none. */
export function hasVersions({ context }: Pick<WaitingRow, 'context'>): boolean {
  const { kind } = JSON.parse(context) as NewPage['context'];
  return kind === 'audit' || kind === 'log';
}
