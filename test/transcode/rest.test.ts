// A transcoder rests while records are never alike, and copies again afterwards. The lines are those of the ordinary
// path at any time.

import { expect, test } from 'vitest';
import { Rest } from '../../src/transcode/rest.ts';
import { makeFormat } from '../formats/make-format.ts';
import { compare } from './differences.ts';

const context = { source: 'audit', stream: 'audit' };

/** Pages of records; `strange(i)`: record i has a key of its own. */
function pages(count: number, of: number, strange: (i: number) => boolean, from = 0) {
  return Array.from({ length: count }, (_, page) => {
    const records = Array.from({ length: of }, (_, record) => {
      const i = from + page * of + record;
      const own = strange(i) ? `,"k${i}":1` : '';
      return `{"id":"e${i}","timestamp":"2026-11-23T12:34:56Z","action":"policy.update"${own}}`;
    });
    return Buffer.from(`{"data":[${records.join(',')}]}`);
  });
}

const always = () => true;
const never = () => false;
const format = () => makeFormat('syslog', { message: 'cef', hostname: 'h' });

test('after 1,024 records without a copied line it leaves 4,096 to the format, and then tries again', async () => {
  const strange = pages(8, 128, always);
  const resting = await compare([...strange, ...pages(32, 128, never, 1024)], format(), context);
  expect(resting.differences).toEqual([]);
  expect(resting.written).toBe(0);
  const rested = await compare([...strange, ...pages(40, 128, never, 1024)], format(), context);
  expect(rested.differences).toEqual([]);
  expect(rested.written).toBeGreaterThan(1000);
});

test('rests become longer, up to 65,536 records', () => {
  const rest = new Rest();
  const lengths = Array.from({ length: 7 }, () => {
    rest.count(1024, 0);
    let records = 0;
    for (; rest.isOn; records += 64) rest.count(64, 0);
    return records;
  });
  expect(lengths).toEqual([4096, 8192, 16_384, 32_768, 65_536, 65_536, 65_536]);
  // An eighth of the records is enough, and the next rest is a short one.
  rest.count(1024, 128);
  expect(rest.isOn).toBe(false);
  rest.count(1024, 127);
  rest.count(4095, 0);
  expect(rest.isOn).toBe(true);
  rest.count(1, 0);
  expect(rest.isOn).toBe(false);
});

test('pages of one record are judged together', async () => {
  const strange = pages(1024, 1, always);
  const found = await compare([...strange, ...pages(100, 1, never, 1024)], format(), context);
  expect(found.written).toBe(0);
});

test('it does not rest while a fourth of the records is copied', async () => {
  const mixed = pages(60, 128, (i) => i % 4 !== 0);
  const found = await compare(mixed, format(), context);
  expect(found.differences).toEqual([]);
  expect(found.written).toBeGreaterThan(found.records / 5);
});
