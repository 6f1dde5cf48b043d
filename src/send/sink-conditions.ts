// A sink's reports about itself, such as a checkpoint of the archive that it writes: stored as a
// condition like those of sources, so that it is delivered like any event and never lost.
// Invariant: it goes to every sink except those that take pages, whatever the routes; otherwise an
// archive would report its own checkpoints endlessly.

import { createHash } from 'node:crypto';
import type { ConditionRecord, NewPage, SinkReport } from '../contracts/index.ts';
import { timeText } from '../tools/index.ts';

/** The page of a report; `now`: epoch milliseconds. */
export function sinkConditionPage(
  sink: string,
  { about, ...reported }: SinkReport,
  now: number,
): NewPage {
  const record: ConditionRecord = {
    ...reported,
    source: sink,
    stream: sink,
    observed_at: timeText(now),
  };
  const identity = JSON.stringify(['told', sink, reported.condition, about]);
  return {
    context: { source: sink, stream: sink, kind: 'condition', fetchedAt: now, isOfSink: true },
    body: Buffer.from(JSON.stringify([record])),
    items: '',
    kept: null,
    uids: createHash('sha256').update(identity).digest(),
  };
}
