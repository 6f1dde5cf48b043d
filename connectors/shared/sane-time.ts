// The time under which a receiver indexes an event. Invariant: it depends only on the event, and no
// hostile time moves an event to a period that is never searched.

import type { Event } from '../../src/contracts/index.ts';

const dayMs = 86_400_000;
const timeMsMin = Date.UTC(2000, 0, 1);

/** Epoch milliseconds; the read time if the event's own time is before 2000 or after tomorrow. */
export function saneTimeMs({ ocsf: { time }, context: { fetchedAt } }: Event): number {
  return time >= timeMsMin && time < fetchedAt + dayMs ? time : fetchedAt;
}
