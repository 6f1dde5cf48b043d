// One event in the form of `_bulk`: a line with the action, and the document in the next line.
// Invariant: the name of the index depends only on the event (its class, its time, its read time,
// its company and source),
// never on the send time, so that a repeated event reaches the same index and is recognised by
// `_id`. A hostile time creates no index of its own.

import type { DocumentForm, Event, Format } from '../../../src/contracts/index.ts';
import { pageNames } from '../../shared/destination-names.ts';
import { linesOf } from '../../shared/lines.ts';
import { withShortTerms } from './long-values.ts';

const dayMs = 86_400_000;
const firstDay = Date.UTC(2000, 0, 1) / dayMs;
const classLengthMax = 64;

/** The index and the action for events. */
export interface BulkTarget {
  /** The name of the index, with `{class}` and `{date}` in it. */
  readonly index: string;
  readonly op: 'create' | 'index';
}

/** Bulk requests of this format's documents. */
export function bulkForm({ index, op }: BulkTarget, format: Format): DocumentForm {
  const indexOf = indexNames(index);
  let opening = '';
  let openingFor = '';
  return {
    contentType: 'application/x-ndjson',
    encode(event) {
      const name = indexOf(event);
      if (name !== openingFor) {
        openingFor = name;
        opening = `{"${op}":{"_index":${JSON.stringify(name)},"_id":"`;
      }
      const document = withShortTerms(format.encode(event));
      const action = `${opening}${event.uid}"}}\n`;
      if (typeof document === 'string') return action + document;
      return Buffer.concat([Buffer.from(action), document]);
    },
    join: linesOf,
  };
}

/** True if the index depends only on the event; any other may be rolled over. */
export function isDaily(pattern: string): boolean {
  return pattern.includes('{date}');
}

/** Returns the function from an event to its index. */
export function indexNames(pattern: string): (event: Event) => string {
  let className: unknown;
  let day: number | null = null;
  let name: string | undefined;
  const ofPage = pageNames(pattern);
  let forPage = pattern;
  return (event) => {
    const { ocsf, context } = event;
    const itsPage = ofPage(event);
    const itsDay = dayOf(ocsf.time, context.fetchedAt);
    if (
      name === undefined ||
      itsDay !== day ||
      ocsf.class_name !== className ||
      itsPage !== forPage
    ) {
      forPage = itsPage;
      className = ocsf.class_name;
      day = itsDay;
      name = forPage
        .replaceAll('{class}', classText(className))
        .replaceAll('{date}', dateText(day));
    }
    return name;
  };
}

/** Days since 1970; null if the time is before 2000, or after the day following the read. */
function dayOf(timeMs: number, readAtMs: number): number | null {
  const day = Math.floor(timeMs / dayMs);
  return day >= firstDay && day <= Math.floor(readAtMs / dayMs) + 1 ? day : null;
}

function dateText(day: number | null): string {
  if (day === null) return 'undated';
  return new Date(day * dayMs).toISOString().slice(0, 10).replaceAll('-', '.');
}

/** The class in lower_snake_case; names of indices are lower case. */
function classText(name: unknown): string {
  if (typeof name !== 'string') return 'event';
  const words = name
    .slice(0, classLengthMax)
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  return words?.join('_') ?? 'event';
}
