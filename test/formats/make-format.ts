// Makes a format from config as the engine does: the settings parsed by the format's own fields first.

import { z } from 'zod';
import { formats } from '../../formats/index.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import { encodeLines } from '../../src/send/encode.ts';

/** The format of this type; throws where the settings are not valid. */
export function makeFormat(type: string, settings: Readonly<Record<string, unknown>> = {}): Format {
  const definition = formats.find((format) => format.type === type);
  if (!definition) throw new Error(`no format ${type}`);
  return definition.make({ type, ...z.strictObject(definition.fields).parse(settings) });
}

/** The document of these events, put together from their records; null where the format has no documents. */
export function documentOf(format: Format, events: readonly Event[]): Uint8Array | null {
  const { document } = format;
  if (document === undefined) return null;
  return document.join(encodeLines(events, document), { from: 0, to: events.length });
}

/** Encodes events as text, whatever the format gives. */
export function textEncoder(
  type: string,
  settings: Readonly<Record<string, unknown>> = {},
): (event: Event) => string {
  const format = makeFormat(type, settings);
  return (event) => {
    const encoded = format.encode(event);
    return typeof encoded === 'string' ? encoded : Buffer.from(encoded).toString('utf8');
  };
}
