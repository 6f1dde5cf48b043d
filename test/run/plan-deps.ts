// The dependencies of a plan, for tests that check its requests without a server.

import type { Clock, Log } from '../../src/contracts/tools.ts';
import type { PlanDeps } from '../../src/run/plan.ts';
import { EndsByUpstream } from '../../src/upstream/announced-ends.ts';
import { openThrottles } from '../../src/upstream/throttles.ts';
import { openTokens } from '../../src/upstream/tokens.ts';
import { manualClock } from '../support/manual-clock.ts';

/** What differs from means that no one answers. */
export interface MeansParts {
  readonly clock?: Clock;
  readonly answer?: (url: string) => {
    readonly status: number;
    readonly body: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
}

/** Deps with an HTTP client that sends nothing: `answer` returns the response; without it every request fails. */
export function planMeans({ clock = manualClock(), answer }: MeansParts = {}): PlanDeps {
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error() {},
    with: () => log,
  };
  const http: PlanDeps['http'] = {
    async request({ url }) {
      if (answer === undefined) throw new Error(`nothing was to be asked, and ${url} was`);
      const { status, body, headers } = answer(url);
      const type = { 'content-type': 'application/json' };
      return { status, headers: { ...type, ...headers }, body: Buffer.from(body) };
    },
    async close() {},
  };
  const random = () => 0.5;
  return {
    clock,
    log,
    http,
    throttles: openThrottles({ clock, random }),
    tokens: openTokens({ clock, http, log, random }),
    ends: new EndsByUpstream(clock),
  };
}
