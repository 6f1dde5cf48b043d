// The `cef` format: ArcSight's Common Event Format, which most SIEMs parse.
// `CEF:0|vendor|product|version|class id|name|severity|extension`, always with the pipe after the
// severity. It is a projection of the OCSF event (see cef-extension.ts). Invariants: the complete
// uid is in `cs6` of every event, however short the line, so that a reader can find the full record
// and recognise a repeated event; no content can end the line, the header field or the pair that
// contains it (cef-escape.ts).

import { z } from 'zod';
import { defineFormat } from '../src/contracts/config.ts';
import type { CopiedValues, Event, Format } from '../src/contracts/index.ts';
import { type Pieces, Writer } from './cef-extension.ts';
import { headerLengths, ownLengthMax } from './cef-keys.ts';
import { restPair } from './cef-rest.ts';
import type { Pen } from './cef-values.ts';
import { cefDialect, type Dialect } from './dialect.ts';
import { part, severityOf, textOf } from './parts.ts';
import { cutEscaped, cutToBytes, fits } from './text.ts';

/** The settings of `cef`, also as the message of a syslog line. */
export const cefFields = {
  vendor: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('Device Vendor in the header; default: the upstream’s `vendor`, else sluice'),
  product: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe('Device Product in the header; default: the upstream’s `product`'),
  version: z.string().min(1).max(31).default('1.0').describe('Device Version in the header'),
  replace_pipe: z
    .boolean()
    .default(false)
    .describe('replaces `|` in extension values, for receivers that split on every pipe'),
  unmapped: z
    .boolean()
    .default(true)
    .describe(
      'also sends fields without a key in the dictionary, in sluice’s own keys and in `sluiceUnmapped`',
    ),
};

/** The parsed `cefFields`. */
type CefSettings = z.output<z.ZodObject<typeof cefFields>>;

/** The `cef` format. */
export const cef = defineFormat({
  type: 'cef',
  shape: 'lines',
  summary: 'ArcSight Common Event Format: the fields that SIEMs search, with the uid.',
  fields: cefFields,
  make(settings) {
    return {
      name: 'cef',
      contentType: 'text/plain; charset=utf-8',
      ...encodingOf(cefWriter(settings)),
    };
  },
});

/** The part of a writer that a line format needs. */
export function encodingOf({ write, copying }: PairWriter): Pick<Format, 'encode' | 'copying'> {
  if (copying === undefined) return { encode: write };
  return {
    encode: write,
    copying: { ...copying, lineBytesMax: Number.POSITIVE_INFINITY, write },
  };
}

/** Writes events as pairs of keys and values. */
interface PairWriter {
  /** How lines can be built by copying; undefined: not possible. */
  readonly copying: CopiedValues | undefined;
  /** The whole event. */
  write(event: Event): string;
  /**
   * The event in at most `bytesMax` bytes, marked. First `sluiceUnmapped` is shortened, then
   * sluice's own keys, then the longest values of dictionary keys; the uid stays.
   */
  shorten(event: Event, bytesMax: number): string;
}

// From the first length below the dictionary's own limits down to the uid alone.
const shorterLengths = [1024, 512, 256, 128, 64, 32, 16, 8, 0];
const baseEvent = 0;
const truncated = 'sluiceTruncated=true';

/** Creates a writer of CEF events. */
export function cefWriter(settings: CefSettings): PairWriter {
  return pairWriter('CEF:0', cefDialect, settings);
}

/** Creates the start of a line; the events of a source have one product, which is cached. */
function deviceHeader(
  version: string,
  dialect: Dialect,
  settings: CefSettings,
): (ocsf: Event['ocsf']) => string {
  const { header } = dialect;
  const end = `|${header(settings.version, headerLengths.deviceVersion)}|`;
  let known: unknown = null;
  let device = '';
  return ({ metadata }) => {
    const { product } = part(metadata);
    if (known === null || product !== known) {
      const { vendor_name, name } = part(product);
      const vendor = settings.vendor ?? textOf(vendor_name) ?? 'sluice';
      const called = settings.product ?? textOf(name) ?? 'sluice';
      known = product ?? null;
      device =
        `${version}|${header(vendor, headerLengths.deviceVendor)}` +
        `|${header(called, headerLengths.deviceProduct)}${end}`;
    }
    return device;
  };
}

/** Creates a writer of events whose header begins with `version`. */
export function pairWriter(version: string, dialect: Dialect, settings: CefSettings): PairWriter {
  const deviceOf = deviceHeader(version, dialect, settings);
  const penUpTo = (lengthMax: number): Pen => ({
    dialect,
    lengthMax,
    replacePipe: settings.replace_pipe,
  });
  const fullPen = penUpTo(Number.POSITIVE_INFINITY);
  const truncationMark = dialect.separator + truncated;
  const writer = new Writer(dialect);
  // A Base Event is useless without its unmapped part.
  const withRest = ({ ocsf }: Event) => settings.unmapped || ocsf.class_uid === baseEvent;
  const piecesOf = (event: Event) => writer.pieces(event, fullPen, withRest(event));
  const copying: CopiedValues = {
    form: dialect === cefDialect ? 'cef' : 'leef',
    looks: (event) => writer.looks(event, fullPen, withRest(event)),
  };
  const start = ({ classId, name, pairs }: Pieces, { uid, ocsf }: Event) =>
    dialect.start(deviceOf(ocsf), { classId, name, severity: severityOf(ocsf.severity_id), uid }) +
    pairs;
  return {
    copying: settings.replace_pipe ? undefined : copying,
    write: (event) => {
      const pieces = piecesOf(event);
      const rest = restPair(pieces.left, fullPen, { lengthMax: ownLengthMax });
      const mark = pieces.cut || !rest.whole ? truncationMark : '';
      let line = start(pieces, event);
      for (const pair of pieces.own) line += pair;
      return line + rest.pair + mark;
    },
    shorten: (event, bytesMax) => {
      const pieces = piecesOf(event);
      let line = start(pieces, event);
      let room = bytesMax - Buffer.byteLength(line) - truncationMark.length;
      if (room >= 0) {
        for (const pair of pieces.own) {
          const bytes = Buffer.byteLength(pair);
          if (bytes > room) continue;
          room -= bytes;
          line += pair;
        }
        const rest = restPair(pieces.left, fullPen, { lengthMax: ownLengthMax, bytesMax: room });
        return line + rest.pair + truncationMark;
      }
      for (const most of shorterLengths) {
        line = start(writer.pieces(event, penUpTo(most), false), event) + truncationMark;
        if (fits(line, bytesMax)) return line;
      }
      return cutEscaped(line, (text) => cutToBytes(text, bytesMax));
    },
  };
}
