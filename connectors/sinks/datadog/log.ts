// One event as a Datadog log: Datadog's own attributes at the top, and the event itself below a
// separate name, because some of OCSF's names (`status`, `time`) have another meaning in Datadog.

import { flatFactsOf, wholeSentence } from '../../../formats/texts.ts';
import type { DocumentForm, Event, Format } from '../../../src/contracts/index.ts';
import { pageNames } from '../../shared/destination-names.ts';
import { jsonArrayOf } from '../../shared/lines.ts';
import { saneTimeMs } from '../../shared/sane-time.ts';

const hourMs = 3_600_000;
/** Older events get a new timestamp. */
const ageMsMax = 18 * hourMs;

/** Datadog's levels by OCSF's severity. */
const levels = ['info', 'info', 'notice', 'warning', 'error', 'critical', 'emergency'];

/** Attributes that all logs of a sink have. */
export interface LogNames {
  readonly service?: string | undefined;
  readonly ddsource: string;
  readonly ddtags?: string | undefined;
  readonly hostname?: string | undefined;
}

/** True if Datadog replaces the event's time by its arrival time. */
export function isRestamped(event: Event, nowMs: number): boolean {
  return saneTimeMs(event) < nowMs - ageMsMax;
}

/** Logs of this format's events. */
export function datadogForm(names: LogNames, format: Format): DocumentForm {
  const isJson = format.contentType.startsWith('application/json');
  const key = format.name === 'json' ? (format.verbatim ? 'original' : 'ocsf') : format.name;
  const serviceOf = pageNames(names.service ?? '');
  let context: Event['context'] | undefined;
  let opening = '';
  return {
    contentType: 'application/json',
    encode(event) {
      if (event.context !== context) {
        context = event.context;
        const { ddsource, hostname, ddtags } = names;
        const service = names.service === undefined ? event.source : serviceOf(event);
        const tags = [`stream:${event.stream}`, ddtags].filter(Boolean).join();
        opening = JSON.stringify({ ddsource, service, hostname, ddtags: tags }).slice(0, -1);
      }
      const { severity_id: severity } = event.ocsf;
      const head = `${opening},"timestamp":${saneTimeMs(event)},"status":"${levels[severity] ?? 'info'}","uid":"${event.uid}",`;
      const facts = `"sluice":${JSON.stringify(factsOf(event))},`;
      const said = format.encode(event);
      const text = typeof said === 'string' ? said : Buffer.from(said).toString('utf8');
      if (!isJson) return `${head}${facts}"message":${JSON.stringify(text)}}`;
      return `${head}${facts}"message":${JSON.stringify(wholeSentence(event))},"${key}":${text}}`;
    },
    join: jsonArrayOf,
  };
}

/** The facts that detection rules search: Datadog compares each member of a list. */
function factsOf({ ocsf }: Event): object {
  const { change, state, ...facts } = flatFactsOf(ocsf);
  const listed = (text: unknown) => (typeof text === 'string' ? text.split('\n') : undefined);
  return { ...facts, change: listed(change), state: listed(state) };
}
