// A spool in memory for tests of what is read from one: pages in a row, no thread, no disk. Each read gives the same
// page objects, as the real one does while it remembers them.

import type { HeldPage, NewPage, Spool } from '../../src/contracts/spool.ts';
import { uidBytes } from '../../src/contracts/spool.ts';

/** Pages that can be read, and how often they were. */
export interface PageSpool {
  readonly spool: Spool;
  readonly held: readonly HeldPage[];
}

/** A spool that holds these pages. */
export function pageSpool(pages: readonly NewPage[]): PageSpool {
  let first = 0;
  const held = pages.map((page): HeldPage => {
    const count = page.uids.length / uidBytes;
    first += count;
    return { ...page, first: first - count, count };
  });
  const end = first;
  const read: Spool['read'] = async (from, bytesMax) => {
    const found: HeldPage[] = [];
    let bytes = 0;
    for (const page of held) {
      if (page.first + page.count <= from || bytes >= bytesMax) continue;
      found.push(page);
      bytes += page.body.length;
    }
    return found;
  };
  // Only what an outlet uses is there.
  return { spool: { gauge: { bytes: 0, oldest: 0, end }, read } as unknown as Spool, held };
}
