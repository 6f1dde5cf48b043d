// Reports to sinks that the log of the state has lost pages they had not received: its topic was truncated, by age or
// by hand. Invariant: a sink never resumes after the lost pages without a report. The streams of the lost pages are
// unknown, so each stream reports the loss.

import type { Append, ConditionRecord } from '../contracts/index.ts';
import type { Rebuilt } from '../hold/open.ts';
import type { Plan } from '../pipeline.ts';
import { conditionPage } from './condition-page.ts';

/** The streams that report, and the time. */
interface Telling {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly found: (condition: ConditionRecord) => void;
}

/** A page for each stream with the lost numbers. */
export function cutLogPages(
  { sources }: Plan,
  { from, until }: NonNullable<Rebuilt['missing']>,
  { now, found }: Telling,
): readonly Append[] {
  const streams = sources.flatMap((source) => source.streams);
  return streams.map((stream) => {
    const { name } = stream;
    const finding = {
      condition: 'source.gap',
      message: `events ${from} to ${until - 1} are gone from Kafka and were not at every sink; some may be of ${name}`,
      details: { reason: 'log_cut', first: from, last: until - 1 },
    } as const;
    const about = ['log_cut', from, until];
    const page = conditionPage(stream, { finding, about, now, found });
    return { stream: name, pages: [page] };
  });
}
