// An archive with everything that one can have: several days with manifests, a lake, a hold, a removed segment and an
// erased record. Attacks are tried on it.

import { join } from 'node:path';
import { encodeRequest, requestPath } from '../../src/archive/erasure-request.ts';
import { encodeHold, holdPath } from '../../src/archive/holds.ts';
import { encodeWish, prunePath } from '../../src/archive/retention.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { tempDir } from '../support/temp.ts';
import { cut, eventsOf } from './a-lake.ts';
import { archived, aWriter, heldPages, type State, uidsOfPages } from './a-writer.ts';

const dayMs = 86_400_000;

/** Where it is, and what its writer remembers. */
export interface FullArchive {
  readonly place: string;
  readonly state: State;
  /** Number of the next event. */
  readonly next: number;
  /** Uids of the pages that are not pruned, also of the erased record. */
  readonly uids: readonly string[];
}

/** Makes one. Its pages were read 40, 20, 2, 1 and 0 days ago, in two streams; its key is that of `aSigner()`. */
export async function fullArchive(): Promise<FullArchive> {
  const place = join(tempDir(), 'archive');
  const store = openDirectory(place);
  const state: State = { mark: null };
  let now = 0;
  const writer = await aWriter({ store, state, now: () => now });
  let next = 0;
  const kept: HeldPage[] = [];
  for (const days of [40, 20, 2, 1, 0]) {
    now = Date.now() - days * dayMs;
    const pages = pagesAt(now, next);
    next += pages.length * 3;
    if (days < 40) kept.push(...pages);
    if (days === 20) {
      await store.put(prunePath, [encodeWish(now - 10 * dayMs, now)]);
      const span = { from: timeText(now - dayMs), to: timeText(now + dayMs) };
      await archived(writer, pages);
      await cut(place, eventsOf(pages), () => now);
      // The record goes with the checkpoint after that of its cut.
      const [uid = ''] = uidsOfPages(pages);
      const request = { uid, reason: 'a case', asked_at: timeText(now), ...span };
      await store.put(requestPath(uid), [encodeRequest(request)]);
      continue;
    }
    if (days === 2) {
      const hold = { id: 'case-1', from: timeText(now - 5 * dayMs), to: null, reason: 'a case' };
      const placed = { placed_at: timeText(now), released_at: null };
      await store.put(holdPath(hold.id) ?? '', [encodeHold({ ...hold, ...placed })]);
    }
    await archived(writer, pages);
    await cut(place, eventsOf(pages), () => now);
  }
  const last = pagesAt(now, next);
  await archived(writer, last);
  await writer.close();
  return { place, state, next: next + 18, uids: uidsOfPages([...kept, ...last]) };
}

function pagesAt(fetchedAt: number, first: number): readonly HeldPage[] {
  return [...heldPages(4, first), ...heldPages(2, first + 12, 'logs/a')].map((page) => ({
    ...page,
    context: { ...page.context, fetchedAt },
  }));
}
