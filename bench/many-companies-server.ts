// The upstream and receiver of bench/companies.ts in a process of its own, so that its CPU is counted apart. Started with
// fork and the options of startManyCompanies as JSON; `broken` has a trouble by company. Sends its URL and the company ids
// when it is ready, and its facts for each message: `begin` also deletes the ages so far.

import { startManyCompanies, type Trouble } from '../test/support/many-companies.ts';

/** What the process sends first. */
export interface ManyCompaniesReady {
  readonly url: string;
  readonly ids: readonly string[];
}

/** What the process sends for each message. */
export interface ManyCompaniesFacts {
  /** Ages in milliseconds, of the records of all companies that are not broken. */
  readonly ages: readonly number[];
  /** Lists of the other companies from which a record has arrived. */
  readonly seen: number;
  /** Requests so far, by broken company. */
  readonly requests: Readonly<Record<string, number>>;
}

const options = JSON.parse(process.argv[2] ?? '{}') as {
  readonly companies: number;
  readonly recordEveryMs: number;
  readonly broken: Readonly<Record<string, Trouble>>;
};
const { upstream, url } = await startManyCompanies(options);
for (const [company, trouble] of Object.entries(options.broken)) {
  upstream.broken.set(company, trouble);
}
process
  .on('message', (message) => {
    const requests = Object.fromEntries(
      [...upstream.broken.keys()].map((company) => [company, upstream.requests.get(company) ?? 0]),
    );
    process.send?.({ ages: upstream.ages, seen: upstream.seen.size, requests });
    if (message === 'begin') upstream.ages = [];
  })
  .once('disconnect', () => process.exit(0));
process.send?.({ url, ids: upstream.ids });
