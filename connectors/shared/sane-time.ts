// The time under which a receiver is to file an event. What must stay true: it follows from the event
// alone, and no hostile time files it where nobody searches.

import type { Event } from '../../src/contracts/event.ts';

const dayMs = 86_400_000;
const timeMsMin = Date.UTC(2000, 0, 1);

/** Epoch milliseconds; when it was read, where its own time is before 2000 or after tomorrow. */
export function saneTimeMs({ ocsf: { time }, context: { fetchedAt } }: Event): number {
  return time >= timeMsMin && time < fetchedAt + dayMs ? time : fetchedAt;
}
