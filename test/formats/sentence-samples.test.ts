// The first line of events in every format, on 100 real records of each kind: one line, the same everywhere, without traces of
// the program, and with what the record says.

import { describe, expect, test } from 'vitest';
import { datadogForm } from '../../connectors/sinks/datadog/log.ts';
import { udmForm } from '../../connectors/sinks/google-secops/udm.ts';
import { rowForm } from '../../connectors/sinks/sentinel/rows.ts';
import { samples, sentenceOf } from '../../docs/generate/sentences.ts';
import { recordWords } from '../../formats/record-words.ts';
import { sentence } from '../../formats/sentence.ts';
import type { Event, RecordKind } from '../../src/contracts/event.ts';
import { isObject } from '../../src/contracts/json.ts';
import { compileNormaliser, type Mapping } from '../../src/normalise/normalise.ts';
import {
  aContext,
  aUid,
  hasShared,
  loadSamples,
  sampleNames,
  sharedNote,
} from '../normalise/ocsf.ts';
import { anEvent } from '../support/an-event.ts';
import { sampleMappings } from '../support/sample-mappings.ts';
import { makeFormat } from './make-format.ts';

const count = 100;
/** Of a hundred; records of many products, some with one deep object only. */
const tellingMin: Readonly<Record<string, number>> = { audit: 75, ids: 60 };

/** A hundred records of a file, from its whole length, as events. */
function eventsOf(name: string, kind: RecordKind, mapping?: Mapping): readonly Event[] {
  const records = loadSamples(name);
  const normalise = compileNormaliser(kind, { time: [], id: null, ...(mapping && { mapping }) });
  return Array.from({ length: count }, (_, at) => {
    const record = records[Math.floor((at * records.length) / count)] ?? null;
    const raw = Buffer.from(JSON.stringify(record));
    return { ...anEvent({ kind, offset: at }), raw, ocsf: normalise(record, aUid, aContext(kind)) };
  });
}

const [json, ecs, gelf, cef, leef] = ['json', 'ecs', 'gelf', 'cef', 'leef'].map((type) =>
  makeFormat(type),
);
const syslog = makeFormat('syslog', { message: 'text', hostname: 'h' });
const otel = makeFormat('otel', { encoding: 'json', body: 'message' });

/** The text that each receiver shows first. */
function shownOf(event: Event): Readonly<Record<string, string>> {
  const read = (format = json) => JSON.parse(String(format?.encode(event)));
  const message = read(gelf);
  return {
    syslog: String(syslog.encode(event)).replace(/^.*?\] (?:\ufeff)?|\suid=\w+$/g, ''),
    ecs: read(ecs).message,
    gelf: message.full_message ?? message.short_message,
    otel: read(otel).resourceLogs[0].scopeLogs[0].logRecords[0].body.stringValue,
    datadog: JSON.parse(String(datadogForm({ ddsource: 's' }, makeFormat('json')).encode(event)))
      .message,
    sentinel: JSON.parse(String(rowForm(makeFormat('json'), 'dead_letter').encode(event)))
      .EventMessage,
    secops: JSON.parse(String(udmForm.encode(event))).udm.metadata.description,
  };
}

const mapped = sampleNames.map((name) => [name, 'log', sampleMappings[name]] as const);
const plain = sampleNames.map((name) => [name, 'log', undefined] as const);
const kinds = [...mapped, ...plain, ['audit', 'audit', undefined] as const];

describe.skipIf(!hasShared)(`on real records${sharedNote}`, () => {
  test.each(kinds)('%s as %s: one line, the same in every format', (name, kind, mapping) => {
    for (const event of eventsOf(name, kind, mapping)) {
      const line = sentence(event);
      expect(line).toMatch(/^[A-Z][A-Za-z]+(?: [A-Z][A-Za-z]+)*: \S/);
      expect(line).not.toMatch(
        /[\x00-\x1f\x7f]|undefined|\[object |: Unknown$|, ,| {2}(?:by|from|to|on) | - $/,
      );
      expect(String(cef?.encode(event))).not.toMatch(/[\r\n]/);
      expect(String(leef?.encode(event))).not.toMatch(/[\r\n]/);
      for (const [receiver, text] of Object.entries(shownOf(event))) {
        // A record's message may have several lines, and a receiver may cut a long text.
        const whole = text.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, ' ');
        expect(line.startsWith(whole.slice(0, 200)), `${receiver}: ${whole} | ${line}`).toBe(true);
      }
    }
  });

  test.each(mapped)(
    '%s as %s, mapped: the addresses of the event are in the line',
    (name, kind, mapping) => {
      for (const event of eventsOf(name, kind, mapping)) {
        const { src_endpoint: from, dst_endpoint: to } = event.ocsf;
        if (from?.ip) expect(sentence(event)).toContain(` from ${from.ip}`);
        if (to?.hostname ?? to?.ip)
          expect(sentence(event)).toContain(` to ${to?.hostname ?? to?.ip}`);
      }
    },
  );

  test.each(plain)(
    '%s as %s, without a mapping: most lines say more than the class',
    (name, kind) => {
      const telling = eventsOf(name, kind).filter(
        ({ ocsf }) => Object.keys(recordWords(ocsf.unmapped)).length > 0,
      );

      expect(telling.length).toBeGreaterThanOrEqual(tellingMin[name] ?? 90);
    },
  );
});

test('the table of the documentation has every kind of record, and class and source are not all it says', () => {
  const ofKind = new Set(samples.map(({ of }) => of));
  expect([...ofKind].toSorted()).toEqual(['audit', 'condition', 'drift', 'log']);

  for (const sample of samples) {
    const named = isObject(sample.record) && Object.keys(sample.record).length > 1;
    if (named) expect(sentenceOf(sample).split(' ').length, sample.kind).toBeGreaterThan(4);
  }
});

describe('the words of a record', () => {
  test('the name of an event wins over its type, and an empty or other value over nothing', () => {
    expect(
      recordWords({ eventType: 'AwsApiCall', eventName: 'DeleteRole', user: '', src_ip: 5 }),
    ).toEqual({
      action: 'DeleteRole',
    });
    expect(recordWords({ event: { action: 'login' }, network: { client_ip: '10.1.1.1' } })).toEqual(
      {
        action: 'login',
        from: '10.1.1.1',
      },
    );
  });

  test('a hostile record has an end', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`);
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, 'v']));

    expect(recordWords({ ...wide, deep, __proto__: { user: 'x' } })).toEqual({});
    expect(recordWords(JSON.parse('{"__proto__":{"user":"x"},"constructor":"y"}'))).toEqual({});
    expect(recordWords('text')).toEqual({});
  });
});
