// An event in one short line for a person at a terminal: time, severity, origin, actor and action.
// It is for watching, not for programs: those get JSON, syslog or CEF. Like every format it is pure
// and total. Invariant: each part is cleaned, so no event can write a second line or control the
// terminal.

import {
  type Event,
  type Format,
  isObject,
  type OcsfEvent,
  type OcsfUser,
} from '../contracts/index.ts';
import { cleanText } from '../tools/index.ts';

/** The format of the quickstart's screen. */
export const readable: Format = {
  name: 'readable',
  contentType: 'text/plain',
  encode: (event: Event) => readableLine(event),
};

/** As long as the quickstart's longest stream name. */
const streamWidth = 21;
const whoLengthMax = 40;
const whatLengthMax = 140;

function readableLine({ ocsf, stream }: Event): string {
  const at = new Date(ocsf.time);
  const time = Number.isNaN(at.getTime()) ? '-' : at.toISOString().slice(0, 19).replace('T', ' ');
  const severity = cleanText(ocsf.severity ?? String(ocsf.severity_id), 13);
  const who = cleanText(whoOf(ocsf), whoLengthMax);
  const what = cleanText(whatOf(ocsf), whatLengthMax);
  return `${time}  ${severity.padEnd(13)}  ${stream.padEnd(streamWidth)}  ${who === '' ? '' : `${who}: `}${what}`;
}

function whoOf({ actor, user, src_endpoint: from }: OcsfEvent): string {
  return nameOf(actor?.user) ?? actor?.app_name ?? nameOf(user) ?? from?.ip ?? '';
}

function nameOf(user: OcsfUser | undefined): string | undefined {
  return user?.email_addr ?? user?.name ?? user?.uid;
}

function whatOf(ocsf: OcsfEvent): string {
  const code = ocsf.metadata.event_code ?? ocsf.activity_name ?? '';
  if (ocsf.message !== undefined) return code === '' ? ocsf.message : `${code} (${ocsf.message})`;
  const entity = ocsf.entity?.name;
  if (typeof entity === 'string') return `${code} ${entity}`;
  // A log record without a mapping: its own plain values are the most informative.
  return isObject(ocsf.unmapped) ? plainValues(ocsf.unmapped) : code;
}

/** Values that are the same in every record of a stream, or in the line already. */
const dull = /^(id|uid|timestamp|time|created_at|log_type|company_id)$/;

function plainValues(record: object): string {
  return Object.entries(record)
    .filter(([name, value]) => !dull.test(name) && ['string', 'number'].includes(typeof value))
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
}
