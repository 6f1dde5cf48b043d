// Tables of which each run of the suite tries a part, and `npm run test:long` the rest. A single test that is long has the
// tag `long` itself. Rule: of each mechanism something stays in each run.
import { test } from 'vitest';

type Args<T> = [T] extends [readonly unknown[]] ? [...T] : [T];

/** As `test.each(table)`; the cases after the first `count` have the tag `long`. */
export function testSome<const T>(count: number, table: readonly T[]) {
  return (name: string, work: (...args: Args<T>) => Promise<void>): void => {
    test.each(table.slice(0, count))(name, (...args) => work(...(args as unknown as Args<T>)));
    test.each(table.slice(count))(name, { tags: ['long'] }, (...args) =>
      work(...(args as unknown as Args<T>)),
    );
  };
}
