// The part of the transcoder that is compiled: what is committed is what its source says, and where it cannot do its part
// the rest does. That its lines are right is shown by all tests of the transcoder, which write with it (transcode.test.ts).

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Copying } from '../../src/contracts/copying.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import { compileNormaliser } from '../../src/normalise/normalise.ts';
import { LineWriter } from '../../src/send/encode.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { Credit, Transcoder } from '../../src/transcode/transcoder.ts';
import { openWasm, sharedMemory } from '../../src/transcode/wasm-memory.ts';
import { makeFormat } from '../formats/make-format.ts';
import { isAsBuilt } from '../support/wasm-build.ts';

const fetchedAt = 1_790_000_000_000;
const room = join(import.meta.dirname, '../../src/transcode');

test('lines.wasm is the output of `npm run wasm` from its source', { tags: ['long'] }, async () => {
  expect(await isAsBuilt(room, 'lines.wasm')).toBe(true);
});

test('a runtime that cannot have it does without', () => {
  expect(openWasm(new URL('./absent.wasm', import.meta.url))).toBeNull();
  expect(openWasm(new URL(import.meta.url))).toBeNull();
});

/** Writes pages of records that are alike, with or without calls that write many, and counts their lines. */
function written(pages: readonly (readonly string[])[], calls: 'many' | 'one', between = () => {}) {
  const tally = { written: 0, unknown: 0, refused: 0 };
  const normalise = compileNormaliser('audit', { id: 'id', time: ['timestamp'] });
  const { copying } = makeFormat('json') as Format & { copying: Copying };
  const context = { source: 'audit', stream: 'audit', kind: 'audit', fetchedAt } as const;
  const transcoder = new Transcoder({ normalise, copying, context }, tally, new Credit());
  const lines: string[] = [];
  let together = 0;
  for (const records of pages) {
    const body = Buffer.from(`{"data":[${records}]}`);
    const { starts, ends } = cutRecords(body, 'data');
    const places = { events: records, startOf: (i: number) => starts[i] ?? 0 };
    const page = { body, uids: Buffer.alloc(records.length * 32, body), context };
    const writer = new LineWriter({ encode: () => 'missed' }, records.length, 0);
    transcoder.begin(page);
    for (let i = 0; i < records.length; ) {
      const whole = { ...places, endOf: (at: number) => ends[at] ?? 0 };
      const many = calls === 'many' ? transcoder.writeMany(whole, i, writer).length : 0;
      together += many;
      i += many;
      if (many > 0) continue;
      const fate = transcoder.write(starts[i] ?? 0, ends[i] ?? 0, i, writer);
      if (fate === 'missed') writer.add({} as Event);
      i += 1;
    }
    transcoder.end();
    const { bytes } = writer.lines();
    lines.push(...Buffer.from(bytes).toString().trimEnd().split('\n'));
    between();
  }
  return { lines, together, tally };
}

const record = (page: number, i: number, rest = '') =>
  `{"id":"e${page}-${i}","timestamp":"2026-11-23T12:34:56Z","action":"a.${i % 3}","n":${i}${rest}}`;
const page = (count: number, at: number, rest?: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => record(at, i, rest?.(i)));

test('it writes all but the first lines of records that are alike', () => {
  const pages = [0, 1, 2].map((at) => page(300, at));
  const many = written(pages, 'many');
  expect(many.lines).toEqual(written(pages, 'one').lines);
  expect(many.tally).toEqual({ written: 896, unknown: 4, refused: 0 });
  expect(many.together).toBeGreaterThan(850);
});

test('tables are rebuilt after all were released', () => {
  const pages = [0, 1, 2, 3].map((at) => page(100, at));
  const many = written(pages, 'many', () => sharedMemory()?.clear());
  expect(many.lines).toEqual(written(pages, 'one').lines);
  expect(many.together).toBeGreaterThan(350);
});

test('content larger than its memory is written one by one', () => {
  // Each shape takes its key's bytes as a piece, and once more for the line of its kind.
  const key = 'k'.repeat(30_000);
  const pages = Array.from({ length: 12 }, (_, at) =>
    page(80, at, (i) => `,"${key}${i % 40}":true`),
  );
  const many = written(pages, 'many');
  const one = written(pages, 'one');
  expect(many.lines).toEqual(one.lines);
  expect(many.tally).toEqual(one.tally);
  expect(one.tally.written).toBeGreaterThan(250);
});
