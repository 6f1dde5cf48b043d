// What holds for every format in the list, as a receiver sees it: however hostile the events of a batch are, a
// decoder that others' rules made finds exactly those events, each with its own uid, in order. A format that is
// listed and has no decoder here fails the suite. That each shape of each format is total and keeps to a line is in
// test/formats/formats.test.ts.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formats } from '../../formats/index.ts';
import type { Event, Uid } from '../../src/contracts/event.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { hostileEvent } from '../formats/arbitrary-events.ts';
import { decodeCef, decodeLeef, parse5424, readGelf } from '../formats/decoders.ts';
import { readEcs } from '../formats/ecs-reader.ts';
import { documentOf, makeFormat } from '../formats/make-format.ts';
import { readRequest } from '../formats/otlp-reader.ts';
import { anEvent } from '../support/an-event.ts';

/** Finds the uids in what a format made of a batch, as its receivers would. Throws on what the standard forbids. */
interface Decoder {
  readonly name: string;
  readonly type: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  uids(encoded: Uint8Array): readonly unknown[];
}

const linesOf = (encoded: Uint8Array) =>
  Buffer.from(encoded).toString('utf8').split('\n').slice(0, -1);

const syslogUid = (line: string) => parse5424(line).structuredData?.get('sluice@32473')?.get('uid');

const decoders: readonly Decoder[] = [
  {
    name: 'json',
    type: 'json',
    uids: (encoded) => linesOf(encoded).map((line) => JSON.parse(line).metadata.uid),
  },
  {
    name: 'leef',
    type: 'leef',
    uids: (encoded) => linesOf(encoded).map((line) => decodeLeef(line).attributes.get('uid')),
  },
  {
    name: 'gelf',
    type: 'gelf',
    uids: (encoded) => linesOf(encoded).map((line) => readGelf(line)._uid),
  },
  {
    name: 'ecs',
    type: 'ecs',
    uids: (encoded) => linesOf(encoded).map((line) => readEcs(line).fields.get('event.id')),
  },
  {
    name: 'cef',
    type: 'cef',
    uids: (encoded) => linesOf(encoded).map((line) => decodeCef(line).extension.get('cs6')),
  },
  {
    name: 'syslog',
    type: 'syslog',
    uids: (encoded) => linesOf(encoded).map(syslogUid),
  },
  {
    name: 'syslog with short CEF',
    type: 'syslog',
    settings: { message: 'cef', max_message: 480 },
    uids: (encoded) => linesOf(encoded).map(syslogUid),
  },
  {
    name: 'otel',
    type: 'otel',
    uids: (encoded) =>
      readRequest(encoded)
        .groups.flatMap(({ records }) => records)
        .map(({ attributes }) => attributes['log.record.uid']),
  },
];

test('every listed format has a decoder here', () => {
  // Rows are decoded by the object, in test/parquet.
  const listed = formats.flatMap(({ type, shape }) => (shape === 'rows' ? [] : type));

  expect(new Set(decoders.map((decoder) => decoder.type)), 'add one to `decoders`').toEqual(
    new Set(listed),
  );
});

/** Hostile events with distinct uids, as real ones have. */
const hostileBatch: fc.Arbitrary<readonly Event[]> = fc
  .array(hostileEvent, { minLength: 1, maxLength: 6 })
  .map((events) => events.map((event, offset) => renamed(event, anEvent({ offset }).uid)));

function renamed(event: Event, uid: Uid): Event {
  return { ...event, uid, ocsf: { ...event.ocsf, metadata: { ...event.ocsf.metadata, uid } } };
}

describe.each(decoders)('format $name', ({ type, settings, uids }) => {
  const format = makeFormat(type, settings);
  const encoded = (events: readonly Event[]) =>
    documentOf(format, events) ?? encodeLines(events, format).bytes;

  test('gives a decoder exactly the events of the batch, whatever they hold', () => {
    fc.assert(
      fc.property(hostileBatch, (events) => {
        expect(uids(encoded(events))).toEqual(events.map(({ uid }) => uid));
      }),
      { numRuns: 150 },
    );
  });
});
