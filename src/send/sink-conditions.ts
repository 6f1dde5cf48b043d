// What a sink has to tell of itself, such as a checkpoint of the archive that it writes: held as a
// condition like those of sources, so that it is delivered like any event and nothing of it is lost.
// What must stay true: it goes to every sink but those that take pages, whatever the routes are, or
// an archive would tell of its checkpoints for ever.

import { createHash } from 'node:crypto';
import type { ConditionRecord } from '../contracts/change.ts';
import type { ReportSink } from '../contracts/sink.ts';
import type { NewPage } from '../contracts/spool.ts';
import { timeText } from '../tools/time-text.ts';

/** The page of it; `now`: epoch milliseconds. */
export function conditionPage(
  sink: string,
  { about, ...reported }: ReportSink,
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
