// Writes one value under a key of the table: checked against the key's type, escaped, and cut to
// its length. A value that the key does not accept is not written under it, because decoders fail
// on values of another type and on empty ones.

import type { CefKey } from './cef-keys.ts';
import type { Dialect } from './dialect.ts';
import { countOf, portOf } from './parts.ts';
import { cutEscaped, cutToCodePoints, trimBlanks } from './text.ts';

/** How texts are written. */
export interface Pen {
  readonly dialect: Dialect;
  /** Maximum length of any value, whatever its key allows. */
  readonly lengthMax: number;
  /** Pipes become `%7C` in a URL and `¦` elsewhere: some receivers split at every pipe. */
  readonly replacePipe: boolean;
}

/** The written part of a value: nothing if it is empty; `cut` if incomplete. */
export interface CefText {
  text: string;
  cut: boolean;
}

const written: CefText = { text: '', cut: false };
const macAddress = /^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$/;

/** A value under a row's key. The next call overwrites the result. */
export function writeValue(row: CefKey, value: unknown, pen: Pen): CefText {
  switch (row.kind) {
    case 'text':
      return writeText(textOf(value), row, pen);
    case 'privilege': {
      const admin = value === 'Admin';
      writeText(admin ? 'Administrator' : textOf(value), row, pen);
      written.cut ||= admin;
      return written;
    }
    case 'header':
      written.text = pen.dialect.header(
        textOf(value),
        Math.min(row.length, Math.max(pen.lengthMax, 8)),
      );
      written.cut = written.text.length < textOf(value).length;
      return written;
    case 'whole':
      writeText(textOf(value), { key: row.key, length: ownLength }, pen);
      // Half an identifier would match the wrong record.
      return written.cut || cutToCodePoints(written.text, row.length) !== written.text
        ? writePlain('')
        : written;
    case 'address':
      return writePlain(typeof value === 'string' ? pen.dialect.address(value, row.key) : '');
    case 'mac':
      return writePlain(
        typeof value === 'string' && macAddress.test(value) ? value.replaceAll('-', ':') : '',
      );
    case 'port':
      return writePlain(portOf(numberOf(value)));
    case 'count':
      return writePlain(countOf(numberOf(value)));
    case 'several': {
      const count = countOf(value);
      return writePlain(count !== undefined && count > 1 ? count : '');
    }
    case 'time':
      return writePlain(pen.dialect.time(value));
    case 'direction':
      // CEF numbers inbound 0 and outbound 1, OCSF 1 and 2.
      return writePlain(value === 1 || value === 2 ? value - 1 : '');
  }
}

/** A text, escaped and within the limits of its key and the pen. */
export function writeText(
  text: string,
  { key, length }: { readonly key: string; readonly length: number },
  { lengthMax, replacePipe, dialect }: Pen,
): CefText {
  const plain =
    replacePipe && text.includes('|')
      ? text.replaceAll('|', key === 'request' ? '%7C' : '¦')
      : text;
  const escaped = dialect.value(plain, Number.POSITIVE_INFINITY);
  const most = length < lengthMax ? length : lengthMax;
  written.text =
    escaped.length <= most
      ? escaped
      : cutEscaped(escaped, (whole) => trimBlanks(cutToCodePoints(whole, most)));
  written.cut = written.text.length !== escaped.length;
  return written;
}

const ownLength = Number.POSITIVE_INFINITY;

/** A value that needs no escaping and is never cut. */
export function writePlain(value: string | number | undefined): CefText {
  written.text = value === undefined ? '' : String(value);
  written.cut = false;
  return written;
}

/** A text, or a number that parsing has not changed. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : '';
}

/** Some records have numbers as text. */
function numberOf(value: unknown): unknown {
  return typeof value === 'string' && /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : value;
}
