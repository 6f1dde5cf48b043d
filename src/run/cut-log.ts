// What sinks are told where the log of the state has lost pages that they had not had: its topic
// was cut, by age or by hand. What must stay true: a sink never goes on behind what is gone as if
// nothing had been there; which streams it was of nobody can say any more, so each one says it.

import type { Append, ConditionRecord } from '../contracts/index.ts';
import type { Rebuilt } from '../hold/open.ts';
import type { Plan } from '../pipeline.ts';
import { conditionPage } from './condition-page.ts';

/** Who is told, and when. */
interface Telling {
  /** Epoch milliseconds. */
  readonly now: number;
  readonly found: (condition: ConditionRecord) => void;
}

/** A page for each stream that says which numbers are gone. */
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
