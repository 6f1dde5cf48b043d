// The deliveries owed for records that come in versions: a content that both sides show is delivered once; one that a
// single side shows is delivered, too, or it is left out in favour of one that only the other side shows.

import type { Entry } from './ledger.ts';
import type { Side } from './traits.ts';

/** By mark, how often. */
type Times = ReadonlyMap<string, number>;

/** What of all records of the ledger is wrong in the end. */
export function flawsOfVersions(
  records: readonly Entry[],
  stored: Readonly<Record<Side, Times>>,
  delivered: Times,
): readonly string[] {
  const groups = Map.groupBy(records, ({ id, company }) => `${id} of ${company}`);
  return [...groups].flatMap(([name, group]) => {
    const marks = group.map(({ mark }) => mark);
    const both = marks.filter((mark) => stored.old.has(mark) && stored.new.has(mark));
    const old = marks.filter((mark) => stored.old.has(mark) && !stored.new.has(mark));
    const late = marks.filter((mark) => stored.new.has(mark) && !stored.old.has(mark));
    const times = (mark: string) => delivered.get(mark) ?? 0;
    const came = [...old, ...late].filter((mark) => times(mark) > 0).length;
    const least = Math.max(old.length, late.length);
    return [
      ...both.filter((mark) => times(mark) === 0).map((mark) => `lost: ${mark}`),
      ...marks.filter((mark) => times(mark) > 1).map((mark) => `delivered twice: ${mark}`),
      ...(came < least ? [`${name}: ${came} of ${least} one-sided versions delivered`] : []),
    ];
  });
}
