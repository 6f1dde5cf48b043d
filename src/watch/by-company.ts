// Groups ailments into the lines of attention: those alike are one line, and so are all ailing streams of one company, whose
// lists may fail in different ways for one cause.

import type { Ailment } from './health.ts';

/** Ailments of one line. */
export interface AilmentGroup {
  readonly ailments: readonly [Ailment, ...Ailment[]];
  /** The company, if its streams fail in different ways; null: the ailments are alike. */
  readonly company: string | null;
}

/** The groups, in the order of their first ailments. */
export function ailmentGroups(ailments: readonly Ailment[]): readonly AilmentGroup[] {
  const alike = [
    ...Map.groupBy(ailments, ({ part, reason, error }) =>
      JSON.stringify([part, reason, error?.code, error?.next]),
    ).values(),
  ] as [Ailment, ...Ailment[]][];
  const byCompany = Map.groupBy(alike, onlyCompany);
  const seen = new Set<string>();
  return alike.flatMap((group): AilmentGroup[] => {
    const company = onlyCompany(group);
    const all = byCompany.get(company) ?? [];
    if (company === null || all.length === 1) return [{ ailments: group, company: null }];
    if (seen.has(company)) return [];
    seen.add(company);
    return [{ ailments: all.flat() as [Ailment, ...Ailment[]], company }];
  });
}

/** The company to which all streams of a group belong; null: none, or several. */
function onlyCompany(group: readonly Ailment[]): string | null {
  const companies = new Set(
    group.map(({ part, name }) => (part === 'stream' ? companyIn(name) : null)),
  );
  const [company = null] = companies;
  return companies.size === 1 ? company : null;
}

/** The company in the name of a stream, such as `c-1` of `web_logs/c-1`; null: none. */
function companyIn(stream: string): string | null {
  return /^[^/]+\/([^/]+)/.exec(stream)?.[1] ?? null;
}
