// A cutover or rollback of a pair of sources on its way into the log: the process reports it as a condition, and the
// writer enters it after that page, with the present position of each stream of the pair.

import { z } from 'zod';
import { isObject, type Json } from '../contracts/index.ts';
import { parseBody } from '../tools/index.ts';

const count = z.int().min(0);

/** The entered facts. */
export const successionShape = z.object({
  predecessor: z.string(),
  successor: z.string(),
  /** From now on: `cut_over`: the successor delivers; `shadow`: the predecessor delivers again. */
  phase: z.enum(['shadow', 'cut_over']),
  /** Records that both sources have shown, and records that only one has. */
  matched: count,
  only_old: count,
  only_new: count,
});

const conditionDetails = successionShape.extend({
  streams_old: z.array(z.string()),
  streams_new: z.array(z.string()),
});

/** A change of the delivering source. */
export interface SuccessionEntry {
  readonly facts: z.output<typeof successionShape>;
  /** Streams of the predecessor and of the successor. */
  readonly streams: readonly { readonly side: 'old' | 'new'; readonly stream: string }[];
}

/** The change in a page of conditions; null: none. */
export function successionIn(body: Uint8Array): SuccessionEntry | null {
  const records: Json = parseBody(body);
  for (const record of Array.isArray(records) ? records : []) {
    if (!isObject(record) || record.condition !== 'source.cut_over') continue;
    const { data } = conditionDetails.safeParse(record.details);
    if (data === undefined) return null;
    const of = (side: 'old' | 'new', streams: readonly string[]) =>
      streams.map((stream) => ({ side, stream }));
    return {
      facts: successionShape.parse(data),
      streams: [...of('old', data.streams_old), ...of('new', data.streams_new)],
    };
  }
  return null;
}
