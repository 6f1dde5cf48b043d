// The lake in tests: events of pages, and cuts that the lake's own sink writes.

import { expect } from 'vitest';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anEvent } from '../support/an-event.ts';
import { openSink, testTools } from '../support/sink-opening.ts';
import { aSigningKey } from './a-writer.ts';

const hour = 3_600_000;

/** The events of pages, of two classes and two days. */
export function eventsOf(pages: readonly HeldPage[]): readonly Event[] {
  return pages.flatMap(({ first, count, uids, context }) =>
    Array.from({ length: count }, (_, i) => {
      const offset = first + i;
      const uid = Buffer.from(uids).toString('hex', i * 32, (i + 1) * 32);
      const time = Date.UTC(2026, 2, 3 + (offset % 2), 12) + offset;
      const class_uid = offset % 3 === 0 ? 3002 : 6003;
      return { ...anEvent({ offset, uid, ocsf: { class_uid, time } }), context };
    }),
  );
}

/** Has the lake write a cut of these events. `now` returns epoch milliseconds. */
export async function cut(
  location: string,
  events: readonly Event[],
  now = () => Date.now(),
): Promise<void> {
  const tools = testTools({ ...systemClock(), now });
  const settings = { location, every: hour, signing_key: aSigningKey() };
  const { sink, batch } = await openSink(lakeSink, settings, { tools });
  const signal = new AbortController().signal;
  await sink.committed?.(signal);
  const sending = sink.send(batch(events), signal);
  sink.flush?.();
  expect((await sending).outcome).toBe('delivered');
  await sink.close();
}
