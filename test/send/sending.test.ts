// Sinks that are opened and stopped one by one: what they have in common follows the ways of the moment.

import { expect, test } from 'vitest';
import { defineSink } from '../../src/contracts/definition.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { Format } from '../../src/contracts/format.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { type PlannedSink, Senders } from '../../src/send/sending.ts';
import { anAppend } from '../support/a-page.ts';
import { testTools } from '../support/sink-opening.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

/** A sink whose lines are kept in `got`; its format is that of all others. */
function aSink(name: string, got: string[], format: Format): PlannedSink {
  return {
    name,
    definition: defineSink({
      type: 'kept',
      summary: '',
      fields: {},
      carries: ['json'],
      usualFormat: 'json',
      sample: { to: null, lines: () => [] },
      inFlightMax: 1,
      assurance: () => 'answered',
      open: async () => ({
        send: async ({ lines }) => {
          for (let i = 0; i < lines.length; i += 1) {
            got.push(Buffer.from(lines.bytes.subarray(lines.starts[i], lines.ends[i])).toString());
          }
          return { outcome: 'delivered' };
        },
        close: async () => undefined,
      }),
      probe: async () => undefined,
    }),
    settings: { type: 'kept' },
    format,
    formatKey: 'same',
    bounds: { eventsMax: 10, bytesMax: 1e6 },
    waitMs: 0,
    retry: { minMs: 1, maxMs: 1 },
  };
}

/** Upstream's id of an event, or none, as its source is read. */
const format: Format = {
  name: 'id',
  contentType: 'text/plain',
  encode: ({ ocsf }: Event) => String(ocsf.metadata?.original_event_uid ?? 'none'),
};

test('a sink opened after a change reads remembered pages as the source is read now', async () => {
  const spool = await openSpool({
    ...{ dir: tempDir(), sync: 'normal', keepMs: 1e9, bytesMax: 1e9 },
    sinks: ['first', 'later'],
  });
  const readBy = (id: string) => ({
    sources: [{ name: 'audit', reading: { id, time: ['timestamp'] } }],
    routes: [],
  });
  const deps = { spool, tools: testTools(), random: () => 0 };
  const sending = new Senders(deps, readBy('id'));
  const before: string[] = [];
  const after: string[] = [];
  sending.start(await sending.open([aSink('first', before, format)]));
  await spool.append(anAppend({ ids: ['a', 'b'] }));
  await waitUntil(() => before.length === 2, { what: 'both events' });

  sending.follow(readBy('timestamp'));
  sending.start(await sending.open([aSink('later', after, format)]));

  await waitUntil(() => after.length === 2, { what: 'both events again' });
  expect(before).toEqual(['a', 'b']);
  expect(after).toEqual(['2026-11-01T00:00:00Z', '2026-11-01T00:00:00Z']);
  expect(await sending.stop(1_000)).toEqual([]);
  await spool.close();
});
