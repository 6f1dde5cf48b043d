// One sink refuses connections for as long as the spool's cap allows, while many more events wait upstream: the
// other sink continues, polling pauses at the cap, memory stays bounded, and when the sink is back everything resumes
// by itself and nothing is lost. Memory is the kernel's figure for the real program.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';

/** SLUICE_TEST_LONG=1: twice as many, with twice the room and the growth. */
const times = process.env.SLUICE_TEST_LONG === '1' ? 2 : 1;
const events = times * 100_250;
const auditPath = '/v1/audit/events';
const residentKiBMax = 450 * 1024;
/** From half way to the cap on: what is held is on disk and not in memory. */
const residentKiBGrowthMax = times * 64 * 1024;
/** About two thirds of all records. */
const spoolCap = `${times * 50}MiB`;

test('sluice keeps its memory bounded while a sink is down, pauses polling at the cap, and loses nothing', async () => {
  const receiver = await startHttpReceiver();
  await receiver.close();
  const { dir, sandbox, configure, start } = await aJourney({
    ...{ events, source: 'every: 1s, page_limit: 1000', stateKeys: `, max_bytes: ${spoolCap}` },
  });
  const sluice = start(
    configure('sluice', {
      sinks: `  post: { type: http, url: "${receiver.url}/in", format: { type: json, schema: original }, retry: { min: 100ms, max: 1s } }
  disk: { type: file, path: ${dir}/out/events.ndjson, format: { type: json, schema: original }, rotate: { bytes: 8MiB } }`,
    }),
  );
  const asked = () => sandbox.control.requests()[auditPath]?.requests ?? 0;
  await waitUntil(() => asked() > times * 35, { what: 'pages to be read' });
  const residentEarly = peakResidentKiB(sluice.pid);
  await standsStill(asked);
  const askedWhenFull = asked();
  const filedWhenFull = idsIn(dir);
  const residentWhenFull = peakResidentKiB(sluice.pid);
  await receiver.reopen();
  await waitUntil(() => asked() > askedWhenFull, { what: 'polling to go on' });
  const arrived = new Set<string>();
  let seen = 0;
  await waitUntil(
    () => {
      for (const { body } of receiver.requests.slice(seen)) {
        for (const id of idsOf(body.toString('utf8'))) arrived.add(id);
      }
      seen = receiver.requests.length;
      return arrived.size >= events;
    },
    { what: () => `all events over HTTP; ${arrived.size} came`, everyMs: 100 },
  );
  const resident = peakResidentKiB(sluice.pid);
  const ended = await sluice.kill('SIGTERM');

  expect(filedWhenFull.length).toBeGreaterThan(events / 3);
  expect(filedWhenFull.length).toBeLessThan(events);
  expect(residentWhenFull - residentEarly).toBeLessThan(residentKiBGrowthMax);
  expect(resident).toBeLessThan(residentKiBMax);
  expect([ended.exitCode, ended.stderr]).toEqual([0, ended.stderr]);
  const filed = idsIn(dir);
  expect(filed.length).toBe(events);
  const ledger = new Set(sandbox.ledger().list(auditPath).ids());
  expect(new Set(filed)).toEqual(ledger);
  expect(arrived).toEqual(ledger);
  console.log(
    `sink down: ${filedWhenFull.length} events to the other sink until the cap; peak resident ` +
      `${Math.round(residentWhenFull / 1024)} MiB by then, ${Math.round(resident / 1024)} MiB at the end`,
  );
});

/** Waits until a count has not moved for a good while: many times what a poll takes while there is room. */
async function standsStill(count: () => number): Promise<void> {
  let [last, looks] = [count(), 0];
  while (looks < 10) {
    await delay(250);
    const now = count();
    looks = now === last ? looks + 1 : 0;
    last = now;
  }
}

/** The most memory that the process ever had resident, in KiB, as the kernel counts it. */
function peakResidentKiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
}

function idsIn(dir: string): readonly string[] {
  const names = readdirSync(join(dir, 'out')).filter((name) => name.startsWith('events'));
  return names.flatMap((name) => idsOf(readFileSync(join(dir, 'out', name), 'utf8')));
}

/** The ids of records that are lines as upstream sent them. */
function idsOf(lines: string): readonly string[] {
  return [...lines.matchAll(/^\{"id":"([^"]+)"/gm)].map(([, id = '']) => id);
}
