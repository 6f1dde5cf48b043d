// Companies that a changed companies file no longer has. A file may be cut, emptied or exchanged by mistake, so a reload
// refuses a removal of many companies at once; fewer may leave at any time. At a start the file applies, with a warning.
// Invariant: nothing of a removed company's state is deleted, so a company that returns resumes at its checkpoint.

import type { Config } from '../config/index.ts';
import { ExportError, isObject, type Json, type Log } from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';
import type { WholePlan } from './plan.ts';

/** The removal of more companies than this, and of more than this share, needs `--allow-removal`. */
const countMax = 10;
const shareMax = 0.3;
/** More names than these are counted. */
const namesMax = 5;
const idLengthMax = 80;

/** What a companies file removes from one upstream. */
interface CompanyRemoval {
  readonly upstream: string;
  readonly file: string;
  /** The companies before. */
  readonly before: number;
  readonly removed: ReadonlySet<string>;
}

/** What the companies files of a config remove, compared with the companies before. */
export function companyRemovals(
  companiesBefore: (upstream: string) => readonly string[],
  { upstreams }: Pick<Config, 'upstreams'>,
): readonly CompanyRemoval[] {
  return Object.entries(upstreams).flatMap(([upstream, { companies, companiesFile }]) => {
    if (companiesFile === undefined) return [];
    const before = companiesBefore(upstream);
    const now = new Set(companies);
    const removed = new Set(before.filter((company) => !now.has(company)));
    const one = { upstream, file: companiesFile.path, before: before.length, removed };
    return removed.size === 0 ? [] : [one];
  });
}

/** Throws an ExportError if a file removes too many companies at once. */
export function refuseManyRemoved(removals: readonly CompanyRemoval[]): void {
  const many = removals.filter(isMany);
  if (many.length === 0) return;
  throw new ExportError('config_invalid', `reloading the config: ${many.map(text).join('; ')}`, {
    next: `Restore the file; sluice then reads it again. If these companies are to leave, restart sluice to apply. With --allow-removal, a reload may remove more than ${countMax} companies and more than ${shareMax * 100} % at once.`,
  });
}

/** The streams of removed companies. A stream whose source left too is not among them. */
export function streamsOfRemoved(
  removals: readonly CompanyRemoval[],
  before: Pick<WholePlan, 'sources'>,
  after: Pick<WholePlan, 'sources'>,
): ReadonlySet<string> {
  const stays = new Map(after.sources.map(({ name, upstream }) => [name, upstream]));
  const removed = new Map(removals.map((one) => [one.upstream, one.removed]));
  return new Set(
    before.sources.flatMap(({ name, upstream, streams }) => {
      if (stays.get(name) !== upstream) return [];
      return streams.flatMap(({ name: stream, company }) =>
        company !== undefined && removed.get(upstream)?.has(company) ? [stream] : [],
      );
    }),
  );
}

/** Warns at a start about companies that the last run from this state directory still had. */
export function warnOfRemoved(kept: Json | null, config: Config, log: Log): void {
  for (const removal of companyRemovals((upstream) => companiesIn(kept, upstream), config)) {
    const { upstream, file, before, removed } = removal;
    log.warn('companies_removed', 'companies left the companies file since the last run', {
      ...{ upstream, file, removed: removed.size, before, companies: names(removed) },
      next: 'Their stored events are delivered and their checkpoints stay. If they are to stay, add them to the file again: each resumes at its checkpoint.',
    });
  }
}

/** The companies of an upstream in a stored config. */
function companiesIn(kept: Json | null, upstream: string): readonly string[] {
  const upstreams = isObject(kept) ? kept.upstreams : null;
  const block = isObject(upstreams) ? upstreams[upstream] : null;
  const companies = isObject(block) ? block.companies : null;
  if (!Array.isArray(companies)) return [];
  // `$${` is a literal `${`, as in the config.
  return companies.map((id) => String(id).replace(/(\$+)\1(?=\{)/g, '$1'));
}

function isMany({ before, removed }: CompanyRemoval): boolean {
  return removed.size > countMax && removed.size > before * shareMax;
}

function text({ upstream, file, before, removed }: CompanyRemoval): string {
  return `upstreams.${upstream}.companies.file: ${file} would remove ${removed.size} of ${before} companies at once (${names(removed)})`;
}

function names(ids: ReadonlySet<string>): string {
  const shown = [...ids].slice(0, namesMax).map((id) => cleanText(id, idLengthMax));
  const more = ids.size - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}
