// One event for the HTTP Event Collector at `/services/collector/event`: an envelope with its time,
// its destination in Splunk, and its uid as an indexed field, around the event in its format.
// Invariants: the envelope depends only on the event, so that a repeated event has the same uid and
// time; no hostile time moves an event to a period that is never searched.

import type { DocumentForm, Event, Format } from '../../../src/contracts/index.ts';
import { pageNames } from '../../shared/destination-names.ts';
import { linesOf } from '../../shared/lines.ts';
import { saneTimeMs } from '../../shared/sane-time.ts';

/** A name for all events, or one per source of the config; null or absent: Splunk's default. */
export type PerSource = string | Readonly<Record<string, string>> | undefined;

/** The events' destination in Splunk. */
export interface Belonging {
  readonly index?: PerSource;
  readonly sourcetype?: PerSource;
  readonly source?: string | undefined;
  readonly host?: string | undefined;
}

/** Requests of this format's events. */
export function envelopeForm(belonging: Belonging, format: Format): DocumentForm {
  const isJson = format.contentType.startsWith('application/json');
  const indexOf = splunkIndexes(belonging.index);
  let context: Event['context'] | undefined;
  let opening = '';
  return {
    contentType: 'application/json',
    encode(event) {
      if (event.context !== context) {
        context = event.context;
        opening = openingOf(event, belonging, { format, index: indexOf(event) });
      }
      const head = `{"time":${(saneTimeMs(event) / 1000).toFixed(3)},${opening}"fields":{"sluice_uid":"${event.uid}"},"event":`;
      const said = format.encode(event);
      if (typeof said === 'string') return `${head}${isJson ? said : JSON.stringify(said)}}`;
      const text = isJson ? said : Buffer.from(JSON.stringify(Buffer.from(said).toString('utf8')));
      return Buffer.concat([Buffer.from(head), text, Buffer.from('}')]);
    },
    join: linesOf,
  };
}

/** The patterns of `index`. */
export function indexesIn(index: PerSource): readonly string[] {
  if (index === undefined) return [];
  return typeof index === 'string' ? [index] : Object.values(index);
}

/** Returns the function from an event to its index; undefined: the token's. */
export function splunkIndexes(index: PerSource): (event: Event) => string | undefined {
  const names = new Map(indexesIn(index).map((pattern) => [pattern, pageNames(pattern)]));
  return (event) => {
    const pattern = nameFor(event.source, index);
    return pattern === undefined ? undefined : names.get(pattern)?.(event);
  };
}

/** The name for events of a source. */
function nameFor(source: string, names: PerSource): string | undefined {
  if (typeof names !== 'object') return names;
  return Object.hasOwn(names, source) ? names[source] : undefined;
}

function openingOf(
  event: Event,
  belonging: Belonging,
  { format, index }: { readonly format: Format; readonly index: string | undefined },
): string {
  const members = {
    host: belonging.host,
    source: belonging.source ?? event.stream,
    sourcetype: nameFor(event.source, belonging.sourcetype) ?? usualSourcetype(format),
    index,
  };
  return `${JSON.stringify(members).slice(1, -1)},`;
}

function usualSourcetype({ name, verbatim }: Format): string {
  if (name !== 'json') return `sluice:${name}`;
  return verbatim ? 'sluice:original' : 'sluice:ocsf';
}
