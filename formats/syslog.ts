// The `syslog` format: complete syslog lines, RFC 5424 by default and RFC 3164 for receivers that
// need it, without framing, which belongs to the sink. The message is another format's text: JSON,
// CEF, the record as sent, or a sentence. Invariants: a line never exceeds `max_message` bytes,
// because receivers split or drop longer ones (rsyslog emits the rest as further records, syslog-ng
// drops the line): it is shortened here, stays valid, is marked and keeps its uid. A line contains
// no control character, so content cannot break either framing. A record that is not UTF-8 keeps
// its bytes.

import { hostname } from 'node:os';
import { z } from 'zod';
import { count, defineFormat, timeZone } from '../src/contracts/config.ts';
import { type Event, ExportError } from '../src/contracts/index.ts';
import { facilities, header3164, header5424, isUtc, tagOf } from './syslog-header.ts';
import { messageField, messageWriter } from './syslog-message.ts';
import { fits } from './text.ts';

// The length that every receiver must accept (RFC 5424 section 6.1): header, uid and a minimal
// message fit.
const lineBytesMin = 480;
const lineBytesMax = 16 * 1024 * 1024;
const byteOrderMark = '\uFEFF';

function asciiName(lengthMax: number) {
  return z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'expected printable ASCII without blanks')
    .max(lengthMax);
}

const timezoneFlaw = 'timezone needs protocol: rfc3164; times of rfc5424 are UTC, and say so';

/** The settings of `syslog`. */
const syslogFields = {
  protocol: z
    .enum(['rfc5424', 'rfc3164'])
    .default('rfc5424')
    .describe(
      '`rfc5424` carries uid, source and stream in structured data; `rfc3164` is the older form',
    ),
  timezone: timeZone()
    .optional()
    .describe('with `protocol: rfc3164`: time zone of the times, which have no zone; default: UTC'),
  message: messageField
    .default('json')
    .describe(
      'content of the line: `json`, `ecs`, `cef`, `leef`, `text`, `original`, or `{ type: cef, … }`',
    ),
  facility: z.enum(facilities).default('local0').describe('syslog facility by name'),
  app_name: asciiName(48).default('sluice').describe('APP-NAME; in RFC 3164 the tag'),
  hostname: asciiName(255).optional().describe('HOSTNAME; default: this machine’s name'),
  enterprise: count(1, 4_294_967_295)
    .default(32_473)
    .describe('private enterprise number in the structured data’s name'),
  max_message: count(lineBytesMin, lineBytesMax)
    .default(8000)
    .describe('most bytes in a line; longer events are shortened and marked'),
  bom: z
    .boolean()
    .default(false)
    .describe(
      'starts an RFC 5424 message with a byte order mark, which some receivers keep as text',
    ),
};

/** The `syslog` format. */
export const syslog = defineFormat({
  type: 'syslog',
  shape: 'lines',
  summary: 'Complete syslog lines (RFC 5424 or 3164) around JSON, CEF, a sentence or the record.',
  fields: syslogFields,
  make(settings) {
    const bytesMax = settings.max_message;
    const { timezone = 'UTC', protocol } = settings;
    if (settings.timezone !== undefined && protocol === 'rfc5424') {
      throw new ExportError('config_invalid', timezoneFlaw, { next: 'Leave timezone out.' });
    }
    const message = messageWriter(settings.message);
    const sender = {
      facility: settings.facility,
      hostname: settings.hostname ?? hostname(),
      appName: settings.app_name,
      enterprise: settings.enterprise,
      bytesMax,
    };
    const header = {
      rfc5424: () => header5424(sender),
      rfc3164: () => header3164(sender, message.tagged ? '' : tagOf(sender.appName), timezone),
    }[protocol]();
    const mark = settings.bom && protocol === 'rfc5424' ? byteOrderMark : '';
    const encode = (event: Event): string | Uint8Array => {
      const head = header(event);
      const octets = message.octets?.(event) ?? null;
      if (octets !== null) {
        // A byte order mark would declare UTF-8 (RFC 5424 section 6.4, MSG-ANY).
        const room = Buffer.byteLength(head);
        if (room + octets.length <= bytesMax) return joined(head, room, octets);
      }
      const before = head + mark;
      const asItCame = message.bytes?.(event) ?? null;
      if (asItCame !== null) {
        const room = Buffer.byteLength(before);
        if (room + asItCame.length <= bytesMax) return joined(before, room, asItCame);
      }
      const full = message.write(event);
      if (fits(full, bytesMax - before.length * 3)) return before + full;
      const room = bytesMax - Buffer.byteLength(before);
      return before + (fits(full, room) ? full : message.shorten(event, full, room));
    };
    const made = { name: 'syslog', contentType: 'text/plain; charset=utf-8', encode };
    // Local times cannot be copied from the times of a record.
    if (message.copying === undefined || !isUtc(timezone)) return made;
    const write = (event: Event) => header(event) + mark + message.write(event);
    return { ...made, copying: { ...message.copying, lineBytesMax: bytesMax, write } };
  },
});

function joined(before: string, length: number, message: Uint8Array): Uint8Array {
  const line = Buffer.allocUnsafe(length + message.length);
  line.write(before);
  line.set(message, length);
  return line;
}
