// Pages as a test wants them: n records with ids, and everything else defaulted.

import { createHash } from 'node:crypto';
import type { Append, NewPage } from '../../src/contracts/spool.ts';

/** What a page under test is about; the rest is made up. */
export interface PageParts {
  readonly stream?: string;
  readonly source?: string;
  readonly ids: readonly string[];
  readonly pad?: number;
}

/** A page of audit records with these ids. */
export function aPage({ stream = 'audit', source = 'audit', ids, pad = 0 }: PageParts): NewPage {
  const records = ids.map((id) => ({
    id,
    timestamp: '2026-11-01T00:00:00Z',
    pad: 'x'.repeat(pad),
  }));
  return {
    context: { source, stream, kind: 'audit', fetchedAt: 1_793_491_200_000 },
    body: Buffer.from(JSON.stringify({ data: records, next_cursor: null })),
    items: 'data',
    kept: null,
    uids: Buffer.concat(ids.map((id) => createHash('sha256').update(`${stream}/${id}`).digest())),
  };
}

/** An append of one such page with a checkpoint that names its last id. */
export function anAppend(parts: PageParts): Append {
  const page = aPage(parts);
  return {
    stream: page.context.stream,
    pages: [page],
    checkpoint: { last: parts.ids.at(-1) ?? null },
  };
}
