// Records built from a batch, and cut into requests that a broker accepts.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  aloneBytes,
  type KeyChoice,
  RecordMaker,
  requestsOf,
} from '../../../connectors/sinks/kafka/records.ts';
import type { Batch } from '../../../src/contracts/sink.ts';
import { KafkaRecord } from '../../../src/kafka/port.ts';
import { anEvent } from '../../support/an-event.ts';

const uid = 'a'.repeat(64);

function recordOf(valueBytes: number): KafkaRecord {
  return new KafkaRecord(Buffer.from('audit'), Buffer.alloc(valueBytes), uid);
}

function batchOf(lines: readonly string[]): Batch {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  const ends = Uint32Array.from(lines, (_, i) =>
    Buffer.byteLength(lines.slice(0, i + 1).join('\n')),
  );
  const starts = Uint32Array.from(lines, (_, i) => (i === 0 ? 0 : (ends[i - 1] ?? 0) + 1));
  const events = lines.map((_, i) =>
    anEvent({ offset: i, source: 'audit', stream: `audit/${i % 2}` }),
  );
  return {
    id: 'b',
    events,
    lines: { bytes, starts, ends, length: lines.length },
    pages: [],
    start: 0,
    end: lines.length,
  };
}

describe('RecordMaker', () => {
  test('makes one record an event: its line without LF, and its uid', () => {
    const batch = batchOf(['{"a":1}', '', 'ü']);

    const records = new RecordMaker('none').recordsOf(batch);

    expect(records.map(({ value }) => String(Buffer.from(value)))).toEqual(['{"a":1}', '', 'ü']);
    expect(records.map((record) => record.uid)).toEqual(batch.events.map((event) => event.uid));
  });

  test.each<[KeyChoice, (string | null)[]]>([
    ['stream', ['audit/0', 'audit/1', 'audit/0']],
    ['source', ['audit', 'audit', 'audit']],
    ['uid', batchOf(['', '', '']).events.map((event) => event.uid)],
    ['none', [null, null, null]],
  ])('key: %s', (choice, keys) => {
    const records = new RecordMaker(choice).recordsOf(batchOf(['x', 'y', 'z']));

    expect(records.map(({ key }) => key?.toString() ?? null)).toEqual(keys);
  });
});

describe('requestsOf', () => {
  test('keeps each record once, in order, and each request within the bound', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 3000 })), (sizes) => {
        const records = sizes.map(recordOf);
        const bytesMax = aloneBytes(recordOf(3000));

        const requests = requestsOf(records, bytesMax);

        expect(requests.flat()).toEqual(records);
        for (const request of requests) {
          const bytes = request.reduce((sum, { value }) => sum + value.length, 0);
          expect(request.length).toBeGreaterThan(0);
          expect(bytes).toBeLessThan(bytesMax);
        }
      }),
    );
  });

  test('needs one request where everything fits', () => {
    expect(requestsOf([recordOf(10), recordOf(10)], 10_000)).toHaveLength(1);
  });

  test('makes no request of nothing', () => {
    expect(requestsOf([], 10_000)).toEqual([]);
  });
});
