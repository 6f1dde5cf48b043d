// The ledger's records in pages: which records a page shows, and in which side's form.

import type { NewPage } from '../../../src/contracts/spool.ts';
import { uidBytes } from '../../../src/contracts/spool.ts';
import { cutRecords } from '../../../src/tools/record-list.ts';
import type { Side } from './traits.ts';

/** A record of the ledger in a page. */
export interface Marked {
  readonly side: Side;
  readonly mark: string;
  readonly id: string | null;
  /** Epoch milliseconds, by its side's clock. */
  readonly happenedAt: number;
}

/** The kept records of a page; none where it holds something else than records. */
export function marksIn(page: NewPage): readonly Marked[] {
  const { body, items, kept, uids, slices, context } = page;
  if (context.kind !== 'audit' && context.kind !== 'log') return [];
  const { starts, ends } = slices ?? cutRecords(body, items);
  return Array.from({ length: uids.length / uidBytes }, (_, n) => {
    const at = kept === null ? n : (kept[n] ?? 0);
    return markedIn(Buffer.from(body.subarray(starts[at], ends[at])).toString());
  });
}

function markedIn(text: string): Marked {
  const { mark, event_time, eventTime, id = null, eventId = id } = JSON.parse(text);
  const side = event_time === undefined ? 'old' : 'new';
  const time = event_time ?? eventTime;
  const isSeconds = typeof time === 'number' && time < 1e11;
  const happenedAt = isSeconds ? time * 1_000 : new Date(time).getTime();
  return { side, mark, id: eventId === null ? null : String(eventId), happenedAt };
}
