// The upstream and receiver of bench/companies.ts in a process of its own, so that its CPU is counted apart. Started with
// fork and the options of startManyCompanies as JSON; `broken` has a trouble by company. Sends its URL and the company ids
// when it is ready, and its facts for each message: `begin` also deletes the ages so far. Only for `end` are they sorted, so
// that the other looks do not delay its responses.

import { startManyCompanies, type Trouble } from '../test/support/many-companies.ts';

/** What the process sends first. */
export interface ManyCompaniesReady {
  readonly url: string;
  readonly ids: readonly string[];
}

/** What the process sends for each message. */
export interface ManyCompaniesFacts {
  /** Records of all companies that are not broken. */
  readonly records: number;
  /** Their ages on arrival, milliseconds; NaN without a record or before `end`. */
  readonly ages: { readonly p50: number; readonly p99: number; readonly most: number };
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
    const { ages, seen } = upstream;
    const sorted = message === 'end' ? Float64Array.from(ages).sort() : new Float64Array();
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
    const shown = { p50: at(0.5), p99: at(0.99), most: sorted.at(-1) ?? Number.NaN };
    process.send?.({ records: ages.length, ages: shown, seen: seen.size, requests });
    if (message === 'begin') upstream.ages = [];
  })
  .once('disconnect', () => process.exit(0));
process.send?.({ url, ids: upstream.ids });
