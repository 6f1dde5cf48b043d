// The events of an archive that a command is for: a filter and a span of event times.

import { errorText, UsageError } from '../../contracts/index.ts';
import { cleanText, compileFilter, type Filter } from '../../tools/index.ts';
import { timeTyped } from '../shared/typed.ts';

const shownMax = 200;
const dayMs = 24 * 60 * 60 * 1000;

/** The options for the filter and the span. */
export const askedOptions = {
  where: { value: 'filter', about: "CEL over the event, such as 'event.severity_id >= 4'" },
  from: { value: 'time', about: 'events from this time on (RFC 3339)' },
  to: { value: 'time', about: 'events before this time' },
} as const;

/** The events that were requested. */
export interface AskedEvents {
  /** Epoch milliseconds; undefined: no bound. */
  readonly from?: number;
  readonly to?: number;
  readonly where: string | undefined;
  /** True where nothing is left out. */
  readonly isAll: boolean;
  /** True for a requested event; false if the filter fails on the event. */
  readonly passes: Filter;
  /** False for a page that was read before any requested event can have happened. */
  mayBeIn(page: { readonly fetched_at: string }): boolean;
}

/** Reads the options. Throws a UsageError. */
export function eventsAsked(given: {
  readonly where?: string;
  readonly from?: string;
  readonly to?: string;
}): AskedEvents {
  const { where } = given;
  const span = {
    ...(given.from === undefined ? {} : { from: timeTyped('from', given.from) }),
    ...(given.to === undefined ? {} : { to: timeTyped('to', given.to) }),
  };
  const { from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY } = span;
  if (to <= from) throw new UsageError('--to: expected a time after --from');
  const filter = filterOf(where);
  return {
    ...span,
    where,
    isAll: where === undefined && given.from === undefined && given.to === undefined,
    passes: (event) => event.ocsf.time >= from && event.ocsf.time < to && filter(event),
    // An event time more than a day after the page was read comes from a wrong clock.
    mayBeIn: ({ fetched_at: at }) => Date.parse(at) + dayMs >= from,
  };
}

function filterOf(where: string | undefined): Filter {
  if (where === undefined) return () => true;
  let failed = false;
  try {
    const filter = compileFilter(where, () => {
      failed = true;
    });
    return (event) => {
      failed = false;
      return filter(event) && !failed;
    };
  } catch (error) {
    throw new UsageError(`--where: ${cleanText(errorText(error), shownMax)}`);
  }
}
