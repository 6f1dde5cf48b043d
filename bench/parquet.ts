// `node bench/parquet.ts [--events N] [--rows N]`: the cost of Parquet beyond normalising, in CPU microseconds per
// event of each kind of sample record (`../shared`), with objects of `rows` events. Garbage collection is included, as
// in the program. `JSON.parse` of the same records shows the present speed of this machine.

import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { OcsfEvent } from '../src/contracts/event.ts';
import { compileNormaliser } from '../src/normalise/normalise.ts';
import { Rows } from '../src/parquet/rows.ts';
import { tableOf } from '../src/parquet/schema.ts';
import { writeParquet } from '../src/parquet/write.ts';
import { sampleMappings } from '../test/support/sample-mappings.ts';
import { sharedPath } from '../test/support/shared.ts';

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '60000' },
    rows: { type: 'string', default: '20000' },
    sample: { type: 'string', default: '' },
  },
});
const events = Number(values.events);
const rowsMax = Number(values.rows);
const context = { source: 'bench', stream: 'bench', kind: 'log', fetchedAt: Date.now() } as const;

/** CPU microseconds an event of what `work` does with each of them. */
async function cpuUs(work: () => void | Promise<void>): Promise<number> {
  const begun = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / events;
}

const table: Record<string, Record<string, number>> = {};
for (const [name, mapping] of Object.entries(sampleMappings)) {
  const path = sharedPath('data', 'samples', `${name}.ndjson`);
  if (path === null || !name.includes(values.sample)) continue;
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const normalise = compileNormaliser('log', {
    time: ['timestamp', 'ts', 'eventTime'],
    id: null,
    mapping,
  });
  const each = (from: number, to: number, take: (event: OcsfEvent) => void) => {
    for (let i = from; i < to; i++) {
      // Each event is different: no upstream repeats one.
      const uid = Math.imul(i, 2654435761).toString(16).padStart(64, 'ab7');
      take(normalise(JSON.parse(lines[i % lines.length] ?? ''), uid, context));
    }
  };
  let bytes = 0;
  const written = async () => {
    let open = new Map<number, Rows>();
    const close = async () => {
      for (const rows of open.values()) bytes += (await writeParquet(rows)).length;
      open = new Map();
    };
    for (let from = 0; from < events; from += rowsMax) {
      each(from, Math.min(events, from + rowsMax), (event) => {
        const rows = open.get(event.class_uid) ?? new Rows(tableOf(event.class_uid));
        open.set(event.class_uid, rows);
        rows.add(event);
      });
      await close();
    }
  };
  const parse = await cpuUs(() => {
    for (let i = 0; i < events; i++) JSON.parse(lines[i % lines.length] ?? '');
  });
  let taken = 0;
  const normalised = () =>
    each(0, events, ({ time }) => {
      taken += time;
    });
  normalised();
  const without = await cpuUs(normalised);
  await written();
  bytes = 0;
  const whole = await cpuUs(written);
  table[name] = {
    'JSON.parse': parse,
    'parse and normalise': without,
    Parquet: whole - without,
    'bytes an event': bytes / events,
  };
  if (Number.isNaN(taken)) throw new Error('an event had no time');
}
console.table(
  Object.fromEntries(
    Object.entries(table).map(([name, row]) => [
      name,
      Object.fromEntries(Object.entries(row).map(([key, one]) => [key, Number(one.toFixed(1))])),
    ]),
  ),
);
