// Independent readers of what the formats write, made from the standards' texts and not from the formats: a CEF decoder
// (ArcSight CEF Implementation Standard, version 27), one of LEEF 2.0 (IBM's guide) and a strict RFC 5424 parser. decoders.test.ts holds them against
// other people's vectors first; only then do they judge sluice's output. Both throw on what the standard forbids.

import { isIP } from 'node:net';

/** A CEF event as a decoder sees it. */
export interface DecodedCef {
  readonly version: string;
  readonly deviceVendor: string;
  readonly deviceProduct: string;
  readonly deviceVersion: string;
  readonly deviceEventClassId: string;
  readonly name: string;
  readonly severity: string;
  /** In the order written; a key that stands twice is an error. */
  readonly extension: ReadonlyMap<string, string>;
}

/** Decodes a CEF event that starts at `CEF:`. */
export function decodeCef(text: string): DecodedCef {
  if (!text.startsWith('CEF:')) throw new Error('no CEF: at the start');
  const fields: string[] = [];
  let field = '';
  let at = 'CEF:'.length;
  while (fields.length < 7) {
    const char = text[at];
    if (char === undefined) throw new Error(`the header ends after ${fields.length} fields`);
    if (char === '\n' || char === '\r') throw new Error('line break in the header');
    if (char === '\\') {
      const escaped = text[at + 1];
      if (escaped !== '\\' && escaped !== '|') throw new Error(`\\${escaped} in the header`);
      field += escaped;
      at += 2;
      continue;
    }
    if (char === '|') {
      fields.push(field);
      field = '';
    } else {
      field += char;
    }
    at += 1;
  }
  const [version, vendor, product, deviceVersion, classId, name, severity] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    version,
    deviceVendor: vendor,
    deviceProduct: product,
    deviceVersion,
    deviceEventClassId: classId,
    name,
    severity,
    extension: decodeExtension(text.slice(at)),
  };
}

/** Pairs part at each blank that a key and an unescaped `=` follow. */
function decodeExtension(text: string): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  const equals: number[] = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '=') equals.push(at);
  }
  if (equals.length === 0 && text.trim() !== '') throw new Error('an extension without pairs');
  equals.forEach((equal, index) => {
    const keyStart = text.lastIndexOf(' ', equal) + 1;
    const key = text.slice(keyStart, equal);
    if (!/^[A-Za-z0-9_]+$/.test(key)) throw new Error(`key ${JSON.stringify(key)}`);
    if (index === 0 && text.slice(0, keyStart).trim() !== '') throw new Error('text before a key');
    const next = equals[index + 1];
    const end = next === undefined ? text.length : text.lastIndexOf(' ', next);
    if (end < equal + 1) throw new Error(`no blank before the key after ${key}`);
    if (pairs.has(key)) throw new Error(`key ${key} twice`);
    pairs.set(key, unescapeValue(text.slice(equal + 1, end)));
  });
  return pairs;
}

function unescapeValue(value: string): string {
  return value.replace(/\\([\s\S]?)|[\r\n]/g, (found, escaped: string | undefined) => {
    switch (escaped) {
      case '\\':
      case '=':
        return escaped;
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      default:
        throw new Error(`${JSON.stringify(found)} in a value`);
    }
  });
}

/** A LEEF event as a decoder sees it. */
export interface DecodedLeef {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly eventId: string;
  readonly attributes: ReadonlyMap<string, string>;
}

const addressKeys = /^(src|dst|identSrc|vSrc)$|(Pre|Post)NAT$/;
const numberKeys = /^(src|dst)(Port|Bytes|Packets)$|NATPort$/;

/** Decodes a LEEF 2.0 event; a pipe ends the header wherever it stands, since the standard escapes nothing. */
export function decodeLeef(text: string): DecodedLeef {
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) throw new Error('a control character');
  const [leef, vendor = '', product = '', version = '', eventId = '', delimiter, ...more] =
    text.split('|');
  if (leef !== 'LEEF:2.0' || more.length !== 1) throw new Error(`${more.length + 5} pipes`);
  if (delimiter?.length !== 1) throw new Error(`the delimiter ${delimiter}`);
  if (eventId === '' || [...eventId].length > 255) throw new Error(`the event id ${eventId}`);
  const attributes = new Map<string, string>();
  for (const pair of more.join().split(delimiter)) {
    const [, key = '', value = ''] = /^([^=]*)=(.*)$/s.exec(pair) ?? [];
    if (!/^[A-Za-z]\w*$/.test(key)) throw new Error(`key ${JSON.stringify(key)}`);
    if (attributes.has(key)) throw new Error(`key ${key} twice`);
    if (addressKeys.test(key) && isIP(value) === 0) throw new Error(`${key} is ${value}`);
    if (numberKeys.test(key) && !/^\d+$/.test(value)) throw new Error(`${key} is ${value}`);
    attributes.set(key, value);
  }
  if (!/^([1-9]|10)$/.test(attributes.get('sev') ?? ''))
    throw new Error('no severity from 1 to 10');
  const time = attributes.get('devTime');
  if (time !== undefined && !/^(\d{10}|\d{13})$/.test(time)) throw new Error(`devTime ${time}`);
  return { vendor, product, version, eventId, attributes };
}

/** Reads a message of GELF 1.1 (Graylog's specification); throws on what that forbids. */
export function readGelf(text: string): { readonly [name: string]: string | number } {
  const message = JSON.parse(text);
  const {
    version,
    host,
    short_message: short,
    full_message: full,
    timestamp,
    level,
    ...more
  } = message;
  if (version !== '1.1' || typeof host !== 'string' || host === '') throw new Error('no head');
  if (typeof short !== 'string' || short.trim() === '') throw new Error('no short_message');
  if (full !== undefined && typeof full !== 'string') throw new Error('full_message is no text');
  if (timestamp !== undefined && typeof timestamp !== 'number')
    throw new Error('timestamp is no number');
  if (!Number.isInteger(level) || level < 0 || level > 7) throw new Error(`level ${level}`);
  for (const [name, value] of Object.entries(more)) {
    if (!/^_[\w.-]+$/.test(name) || name === '_id') throw new Error(`the field ${name}`);
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new Error(`${name} is ${value}`);
  }
  return message;
}

/** A syslog line of RFC 5424; NILVALUEs are null. */
export interface Syslog5424 {
  readonly facility: number;
  readonly severity: number;
  readonly version: number;
  readonly timestamp: string | null;
  readonly hostname: string | null;
  readonly appName: string | null;
  readonly procId: string | null;
  readonly msgId: string | null;
  readonly structuredData: ReadonlyMap<string, ReadonlyMap<string, string>> | null;
  readonly message: string | null;
}

const header5424 =
  /^<(0|[1-9]\d{0,2})>([1-9]\d{0,2}) (\S+) ([\x21-\x7e]{1,255}) ([\x21-\x7e]{1,48}) ([\x21-\x7e]{1,128}) ([\x21-\x7e]{1,32}) /;
const timestamp5424 =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

/** Parses a line by RFC 5424 section 6. */
export function parse5424(line: string): Syslog5424 {
  const header = header5424.exec(line);
  if (!header) throw new Error('no RFC 5424 header');
  const [whole, pri, version, timestamp, hostname, appName, procId, msgId] = header;
  const priority = Number(pri);
  if (priority > 191) throw new Error(`priority ${priority}`);
  if (timestamp !== '-') checkTimestamp(timestamp ?? '');
  const data = parseStructuredData(line.slice(whole.length));
  return {
    facility: priority >> 3,
    severity: priority & 7,
    version: Number(version),
    timestamp: nil(timestamp),
    hostname: nil(hostname),
    appName: nil(appName),
    procId: nil(procId),
    msgId: nil(msgId),
    structuredData: data.elements,
    message: data.rest.length <= 1 ? null : data.rest.slice(1),
  };
}

function nil(field: string | undefined): string | null {
  return field === undefined || field === '-' ? null : field;
}

function checkTimestamp(timestamp: string): void {
  const parts = timestamp5424.exec(timestamp);
  if (!parts) throw new Error(`timestamp ${timestamp}`);
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])];
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) {
    throw new Error(`day out of range in ${timestamp}`);
  }
}

function parseStructuredData(text: string): {
  elements: ReadonlyMap<string, ReadonlyMap<string, string>> | null;
  rest: string;
} {
  if (text.startsWith('-')) return { elements: null, rest: checkedRest(text.slice(1)) };
  const elements = new Map<string, ReadonlyMap<string, string>>();
  let rest = text;
  do {
    const opening = /^\[([\x21\x23-\x3c\x3e-\x5c\x5e-\x7e]{1,32})/.exec(rest);
    const id = opening?.[1];
    if (!opening || id === undefined) throw new Error('no structured data');
    if (elements.has(id)) throw new Error(`element ${id} twice`);
    rest = rest.slice(opening[0].length);
    const params = new Map<string, string>();
    for (;;) {
      const param = /^ ([\x21\x23-\x3c\x3e-\x5c\x5e-\x7e]{1,32})="((?:[^"\\\]]|\\["\\\]])*)"/.exec(
        rest,
      );
      if (!param) break;
      params.set(param[1] ?? '', (param[2] ?? '').replace(/\\(["\\\]])/g, '$1'));
      rest = rest.slice(param[0].length);
    }
    if (!rest.startsWith(']')) throw new Error(`element ${id} does not end: ${rest.slice(0, 40)}`);
    elements.set(id, params);
    rest = rest.slice(1);
  } while (rest.startsWith('['));
  return { elements, rest: checkedRest(rest) };
}

function checkedRest(rest: string): string {
  if (rest !== '' && !rest.startsWith(' ')) throw new Error('no blank after structured data');
  return rest;
}
