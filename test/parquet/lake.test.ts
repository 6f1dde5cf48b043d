// The parts of a lake that are read to find events: names exclude classes and times, and so do the statistics and bloom
// filters at an object's end. Objects are counted as they are read.

import { beforeAll, expect, test } from 'vitest';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { lakeEvents } from '../../src/parquet/lake.ts';
import { valuesNeeded } from '../../src/tools/filter.ts';
import { aWriter } from '../archive/a-writer.ts';
import { anEvent } from '../support/an-event.ts';
import { openSink } from '../support/sink-opening.ts';
import { tempDir } from '../support/temp.ts';

const classes = [3002, 3004, 6003];
const days = 4;
const perObject = 50;
const dayMs = 86_400_000;
const start = Date.UTC(2026, 1, 26);
const location = tempDir();

/** Objects: one of each class and day; an actor and an address are each in one of them only. */
beforeAll(async () => {
  await (await aWriter({ store: openDirectory(location) })).close();
  const { sink, batch } = await openSink(lakeSink, { location, every: 3_600_000 });
  const events = Array.from({ length: classes.length * days * perObject }, (_, offset) => {
    const part = Math.floor(offset / perObject);
    const class_uid = classes[part % classes.length] ?? 0;
    const time = start + Math.floor(part / classes.length) * dayMs + offset * 1_000;
    const actor = { user: { name: `user ${part} ${offset % 3}`, uid: `u-${offset % 5}` } };
    const src_endpoint = { ip: `198.51.100.${part}` };
    const severity_id = part === 7 ? 5 : 1;
    return anEvent({ offset, ocsf: { class_uid, time, actor, src_endpoint, severity_id } });
  });
  const sending = sink.send(batch(events), new AbortController().signal);
  sink.flush?.();
  expect((await sending).outcome).toBe('delivered');
  await sink.close();
});

/** What is found, and of how many objects anything, or more than their ends, was read. */
async function searched(
  where: string,
  span: { readonly from?: number; readonly to?: number } = {},
) {
  const reads = new Map<string, number>();
  const store: ObjectStore = openDirectory(location);
  const counting: ObjectStore = {
    ...store,
    read(name, range) {
      reads.set(name, (reads.get(name) ?? 0) + 1);
      return store.read(name, range);
    },
  };
  const listed = await Array.fromAsync(store.list('lake/'), ({ name }) => name);
  const objects = new Set(listed.filter((name) => name.endsWith('.parquet')));
  let found = 0;
  const passes = where === '' ? {} : { values: valuesNeeded(where) };
  const reading = {
    ...{ store: counting, objects, skipsNothing: false },
    whole: async (name: string) => (await store.read(name))?.body ?? new Uint8Array(0),
  };
  for await (const _ of lakeEvents(reading, { ...span, ...passes })) found += 1;
  const least = Math.min(...reads.values(), Number.POSITIVE_INFINITY);
  const whole = [...reads.values()].filter((count) => count > least).length;
  return { found, opened: reads.size, whole };
}

test('everything is read if everything is requested', async () => {
  const { found, opened } = await searched('');
  expect({ found, opened }).toEqual({ found: 600, opened: 12 });
});

test('a class is looked for in its objects alone', async () => {
  expect(await searched('event.class_uid == 6003')).toMatchObject({ found: 200, opened: 4 });
  expect(await searched('event.class_uid in [3002, 3004]')).toMatchObject({ opened: 8 });
  expect(await searched('event.class_uid == 1')).toMatchObject({ found: 0, opened: 0 });
});

test('a time is looked for in the objects of its day alone', async () => {
  const day = { from: start + dayMs, to: start + 2 * dayMs };
  expect(await searched('', day)).toMatchObject({ found: 150, opened: 3 });
  expect(await searched('event.class_uid == 3002', day)).toMatchObject({ found: 50, opened: 1 });
});

test.each([
  ['event.actor.user.name == "user 5 1"', 17],
  ['event.src_endpoint.ip == "198.51.100.8"', 50],
  ['event.severity_id == 5 && event.activity_id == 3', 50],
])('%s: of other objects no more than their ends is read', async (where, count) => {
  const { found, opened, whole } = await searched(where);
  expect(opened).toBe(12);
  expect(whole).toBe(1);
  expect(found).toBe(count);
});

test.each([
  'event.actor.user.name == "nobody"',
  'event.src_endpoint.ip in ["192.0.2.1", "192.0.2.2"]',
  'event.severity_id == 4',
])('%s: nothing is read but ends', async (where) => {
  expect(await searched(where)).toMatchObject({ found: 0, whole: 0 });
});
