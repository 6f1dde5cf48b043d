// The `json` format: one OCSF event per line, or the record exactly as upstream sent it. Every
// other format is a projection of the OCSF form, so this one loses nothing: values outside the
// mapping are in `unmapped`, and with `raw_data` the record itself is included. `original` never
// parses: the bytes are copied, except that line breaks between JSON tokens become blanks, so that
// a line stays one line.

import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import type { Copying, Event } from '../src/contracts/index.ts';
import { jsonText } from './json-text.ts';

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const blank = 0x20;

/** The settings of `json`, also as the message of a syslog line. */
export const jsonFields = {
  schema: z
    .enum(['ocsf', 'original'])
    .default('ocsf')
    .describe('`ocsf`: one OCSF 1.8.0 event a line; `original`: the original record of upstream'),
  raw_data: z
    .boolean()
    .default(false)
    .describe(
      'adds the original record of upstream to the OCSF event, as the text `raw_data`; as base64 if not UTF-8',
    ),
};

const copying: Copying = {
  form: 'json',
  lineBytesMax: Number.POSITIVE_INFINITY,
  write: (event) => jsonText(event.ocsf),
};

/** The `json` format. */
export const json = defineFormat({
  type: 'json',
  shape: 'json',
  summary:
    'One JSON object a line: the OCSF event, or the original record of upstream, byte for byte.',
  fields: jsonFields,
  make(settings) {
    const contentType = 'application/json';
    switch (settings.schema) {
      case 'original':
        return { name: 'json', contentType, encode: originalLine, verbatim: true };
      case 'ocsf':
        return settings.raw_data
          ? { name: 'json', contentType, encode: (event: Event) => jsonText(withRawData(event)) }
          : { name: 'json', contentType, encode: copying.write, copying };
    }
  },
});

/** The OCSF event with the record in `raw_data` and its length in bytes in `raw_data_size`. */
export function withRawData(event: Event): object {
  return { ...event.ocsf, raw_data_size: event.raw.byteLength, raw_data: rawData(event) };
}

/** The record as sent: its text, or its bytes as base64 if they are not UTF-8. */
export function rawData(event: Event): string {
  if (isUtf8(event.raw)) return rawText(event);
  const { buffer, byteOffset, byteLength } = event.raw;
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

/** The record as sent, decoded as UTF-8. */
export function rawText(event: Event): string {
  const { buffer, byteOffset, byteLength } = event.raw;
  return Buffer.from(buffer, byteOffset, byteLength).toString('utf8');
}

/**
 * The record's own bytes. A raw CR or LF is only between JSON tokens, where a blank is equivalent.
 */
function originalLine(event: Event): Uint8Array {
  const { raw } = event;
  if (!raw.includes(lineFeed) && !raw.includes(carriageReturn)) return raw;
  return raw.map((byte) => (byte === lineFeed || byte === carriageReturn ? blank : byte));
}
