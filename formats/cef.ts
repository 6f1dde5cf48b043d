// The `cef` format: ArcSight's Common Event Format, which most SIEMs read. `CEF:0|vendor|product|version|class
// id|name|severity|extension`, with the pipe after the severity always there. It is a projection of the OCSF event
// (cef-extension.ts says of what); the uid stands whole in `cs6` in every event, however short the line is made, so
// that a reader can find the full record and tell a repeat. No content can end the line, the header field or the pair
// that it stands in (cef-escape.ts).

import { z } from 'zod';
import { defineFormat } from '../src/contracts/definition.ts';
import type { Event } from '../src/contracts/event.ts';
import { escapeHeader } from './cef-escape.ts';
import { extensionOf } from './cef-extension.ts';
import { headerLengths, lengthsUpTo } from './cef-lengths.ts';
import { penOf } from './cef-pairs.ts';
import { countOf, part, severityOf, textOf } from './parts.ts';
import { cutEscaped, cutToBytes, fits } from './text.ts';

/** The settings of `cef`, also where it is the message of a syslog line. */
export const cefFields = {
  vendor: z.string().min(1).max(63).default('sluice').describe('Device Vendor in the header'),
  product: z.string().min(1).max(63).default('sluice').describe('Device Product in the header'),
  version: z.string().min(1).max(31).default('1.0').describe('Device Version in the header'),
  replace_pipe: z
    .boolean()
    .default(false)
    .describe('replaces `|` in extension values, for receivers that split on every pipe'),
  unmapped: z
    .boolean()
    .default(false)
    .describe(
      'adds what the mapping did not place, as JSON, in `sluiceUnmapped`; Base Events always have it',
    ),
};

/** What `cefFields` gives once parsed. */
type CefSettings = z.output<z.ZodObject<typeof cefFields>>;

/** The `cef` format. */
export const cef = defineFormat({
  type: 'cef',
  summary: 'ArcSight Common Event Format: what SIEMs search by, with the uid; a projection.',
  fields: cefFields,
  make(settings) {
    return {
      name: 'cef',
      contentType: 'text/plain; charset=utf-8',
      encode: cefWriter(settings).write,
    };
  },
});

/** Writes events as CEF. */
interface CefWriter {
  /** The whole event. */
  write(event: Event): string;
  /** The event in at most `bytesMax` bytes: the longest values give way first, the uid stays, and it is marked. */
  shorten(event: Event, bytesMax: number): string;
}

// From "nothing below the dictionary's own limits would help" down to "the uid alone".
const shorterLengths = [1024, 512, 256, 128, 64, 32, 16, 8, 0];
// A class id and a name that are shorter than this say nothing at all.
const headerLengthMin = 8;
const truncationMark = ' sluiceTruncated=true';

/** Makes a writer of CEF events. */
export function cefWriter(settings: CefSettings): CefWriter {
  const device =
    `CEF:0|${escapeHeader(settings.vendor, headerLengths.deviceVendor)}` +
    `|${escapeHeader(settings.product, headerLengths.deviceProduct)}` +
    `|${escapeHeader(settings.version, headerLengths.deviceVersion)}|`;
  const penUpTo = (lengthMax: number) => penOf(lengthsUpTo(lengthMax), settings);
  const full = penUpTo(Number.POSITIVE_INFINITY);
  const shorter = shorterLengths.map((lengthMax) => ({ lengthMax, pen: penUpTo(lengthMax) }));
  return {
    write: (event) =>
      device + description(event, headerLengths.deviceEventClassId) + extensionOf(event, full),
    shorten: (event, bytesMax) => {
      let line = '';
      for (const { lengthMax, pen } of shorter) {
        const what = description(event, Math.max(lengthMax, headerLengthMin));
        line = device + what + extensionOf(event, pen) + truncationMark;
        if (fits(line, bytesMax)) return line;
      }
      return cutEscaped(line, (text) => cutToBytes(text, bytesMax));
    },
  };
}

const severities = ['0|', '2|', '3|', '5|', '8|', '10|', '10|'];

/** The three header fields that tell what happened: class id, name and severity, each with its pipe. */
function description(event: Event, lengthMax: number): string {
  const { ocsf } = event;
  const classId =
    textOf(part(ocsf.metadata).event_code) ??
    `${countOf(ocsf.class_uid) ?? 0}:${countOf(ocsf.activity_id) ?? 0}`;
  const idLength = Math.min(lengthMax, headerLengths.deviceEventClassId);
  const nameLength = Math.min(lengthMax, headerLengths.name);
  return (
    `${escapeHeader(classId, idLength)}|${escapeHeader(nameOf(ocsf), nameLength)}|` +
    severities[severityOf(ocsf.severity_id)]
  );
}

/** What happened, readable and without particulars: a detection's title, else class and activity. */
function nameOf(ocsf: Event['ocsf']): string {
  const title = textOf(part(ocsf.finding_info).title);
  if (title !== undefined) return title;
  const activity = textOf(ocsf.activity_name) ?? 'Event';
  const className = textOf(ocsf.class_name);
  return className === undefined ? activity : `${className}: ${activity}`;
}
