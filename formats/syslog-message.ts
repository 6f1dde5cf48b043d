// The message part of a syslog line: another format's text. Each kind writes an event in full, and
// shorter in a way that its readers still understand; the line decides which is needed. Invariant:
// neither form contains a control character, because receivers break, escape or drop lines at them.

import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import type { CopiedValues, Event } from '../src/contracts/index.ts';
import { cefFields, cefWriter } from './cef.ts';
import { ecsEvent, ecsFormatFields, ecsLooks } from './ecs.ts';
import { jsonFields, rawText, withRawData } from './json.ts';
import { jsonText, visibleJson } from './json-text.ts';
import { leefFields, leefWriter } from './leef.ts';
import { PlainBytes } from './plain-bytes.ts';
import { sentence } from './sentence.ts';
import { shortEcs, shortOcsf, shortOriginal } from './short-json.ts';
import { cutToBytes, oneLine } from './text.ts';

/** `message: cef`, or `message: { type: cef, … }` with that format's own settings. */
export const messageField = z.union(
  [
    z.enum(['json', 'ecs', 'cef', 'leef', 'text', 'original']),
    z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('json'), ...jsonFields }),
      z.strictObject({ type: z.literal('ecs'), ...ecsFormatFields }),
      z.strictObject({ type: z.literal('cef'), ...cefFields }),
      z.strictObject({ type: z.literal('leef'), ...leefFields }),
      z.strictObject({ type: z.literal('text') }),
    ]),
  ],
  {
    error:
      'expected json, ecs, cef, leef, text, original, or { type: json | ecs | cef | leef | text, … }',
  },
);

/** The parsed `messageField`. */
type MessageChoice = z.output<typeof messageField>;

/** Writes the message of a syslog line. Both forms are total and free of control characters. */
interface MessageWriter {
  /** How it can be built by copying; undefined: not possible. */
  readonly copying?: CopiedValues | undefined;
  /** True if the message has its own tag in the RFC 3164 form, as `CEF:` does. */
  readonly tagged: boolean;
  write(event: Event): string;
  /** The bytes of `write`, if available without it; null: not available. */
  readonly bytes?: (event: Event) => Uint8Array | null;
  /** The bytes of a message that is not UTF-8; null: it is, and `write` gives it. */
  readonly octets?: (event: Event) => Uint8Array | null;
  /**
   * The event in at most `bytesMax` bytes, marked as shortened; `full` is the result of `write`.
   */
  shorten(event: Event, full: string, bytesMax: number): string;
}

/** The writer of a chosen message. */
export function messageWriter(choice: MessageChoice): MessageWriter {
  const chosen = typeof choice === 'string' ? spelledOut(choice) : choice;
  switch (chosen.type) {
    case 'json':
      if (chosen.schema === 'original') return original();
      return {
        tagged: false,
        copying: chosen.raw_data ? undefined : { form: 'visible json' },
        write: chosen.raw_data
          ? (event) => visibleJson(jsonText(withRawData(event)))
          : (event) => visibleJson(jsonText(event.ocsf)),
        shorten: shortOcsf,
      };
    case 'ecs':
      return {
        tagged: false,
        copying: chosen.raw_data ? undefined : { form: 'visible json', looks: ecsLooks },
        write: (event) => visibleJson(jsonText(ecsEvent(event, chosen.raw_data))),
        shorten: (event, _full, bytesMax) => shortEcs(event, bytesMax),
      };
    case 'cef':
    case 'leef': {
      const writer = chosen.type === 'cef' ? cefWriter(chosen) : leefWriter(chosen);
      return {
        tagged: true,
        copying: writer.copying,
        write: writer.write,
        shorten: (event, _full, bytesMax) => writer.shorten(event, bytesMax),
      };
    }
    case 'text':
      return text;
  }
}

function spelledOut(short: Extract<MessageChoice, string>): Exclude<MessageChoice, string> {
  switch (short) {
    case 'json':
      return { type: 'json', schema: 'ocsf', raw_data: false };
    case 'ecs':
      return { type: 'ecs', raw_data: false };
    case 'original':
      return { type: 'json', schema: 'original', raw_data: false };
    case 'cef':
      return { type: 'cef', ...z.object(cefFields).parse({}) };
    case 'leef':
      return { type: 'leef', ...z.object(leefFields).parse({}) };
    case 'text':
      return { type: 'text' };
  }
}

/**
 * Between JSON tokens a tab or line break is equivalent to a blank, and in strings both are
 * escaped.
 */
function original(): MessageWriter {
  const plain = new PlainBytes();
  return {
    tagged: false,
    copying: { form: 'record' },
    write: (event) => oneLine(visibleJson(rawText(event))),
    bytes({ raw }) {
      return plain.has(raw) ? raw : null;
    },
    octets: ({ raw }) => (isUtf8(raw) ? null : visibleBytes(raw)),
    shorten: (event, _full, bytesMax) => shortOriginal(event, bytesMax),
  };
}

/** C0 and DEL, and in UTF-8 the C1 controls and the line separators, as Latin-1 text. */
const invisible = /[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]/g;

/**
 * The bytes that `oneLine` and `visibleJson` would give, for a text that is not UTF-8; undecodable
 * bytes are kept.
 */
function visibleBytes({ buffer, byteOffset, byteLength }: Uint8Array): Uint8Array {
  const latin = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
  const visible = latin.replace(invisible, (found) => {
    if (found < ' ') return ' ';
    const unit = Buffer.from(found, 'latin1').toString().charCodeAt(0);
    return `\\u${unit.toString(16).padStart(4, '0')}`;
  });
  return Buffer.from(visible, 'latin1');
}

const text: MessageWriter = {
  tagged: false,
  copying: { form: 'text' },
  write: (event) => `${sentence(event)} uid=${oneLine(event.uid)}`,
  shorten: (event, full, bytesMax) => {
    const end = ` [truncated] uid=${oneLine(event.uid)}`;
    const room = bytesMax - Buffer.byteLength(end);
    return cutToBytes(cutToBytes(full, Math.max(0, room)) + end, bytesMax);
  },
};
