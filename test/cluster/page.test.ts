// The page of any process of a state in Kafka, in a real Chromium, on a real Apache Kafka: it shows all processes, whichever
// of them has the work.

import { writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type BrowserPage, startBrowser } from '../support/chromium.ts';
import { findChromium } from '../support/chromium-program.ts';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { tempDir } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 60;

// Where it has to be downloaded first, that is not the first test's time.
beforeAll(async () => {
  await findChromium();
});

/** The cells of a table on the page, by row. */
const rowsOf = (page: BrowserPage, id: string) =>
  page.evaluate<string[][]>(
    `[...document.querySelectorAll('#${id} tbody')].map((row) =>
      [...row.querySelectorAll('th > span:nth-child(2), td')].map((cell) => cell.textContent))`,
  );
const isIn = (id: string, text: string) =>
  `document.getElementById('${id}').textContent.includes(${JSON.stringify(text)})`;
const patienceMs = 60_000;

test('who stands by shows who works, what its sinks have, and after a takeover who is fenced', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const start = (instance: string) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 20 } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const urlOf = async (sluice: ReturnType<typeof startSluice>): Promise<string> =>
    JSON.parse(await sluice.waitForLine('"status page"')).url;
  const first = start('sluice-0');
  await first.waitForLine('"running"');
  const second = start('sluice-1');
  await second.waitForLine('standing by');
  const [works, waits] = [await startBrowser(), await startBrowser()];
  await works.open(`${await urlOf(first)}/`);
  await waits.open(`${await urlOf(second)}/`);

  const host = hostname();
  for (const page of [works, waits]) {
    await page.waitFor(isIn('cluster-sinks', String(events)), patienceMs);
    const [one, two, ...more] = await rowsOf(page, 'cluster-processes');
    expect([one?.slice(0, 4), two?.slice(0, 4), more]).toEqual([
      ['sluice-0', 'working', host, String(first.pid)],
      ['sluice-1', 'standing by', host, String(second.pid)],
      [],
    ]);
    const sinks = await rowsOf(page, 'cluster-sinks');
    expect(sinks.map((cells) => cells.slice(0, 5))).toEqual([
      ['disk', 'idle', 'sluice-0', '0', String(events)],
    ]);
    const streams = await rowsOf(page, 'cluster-streams');
    expect(streams.map(([name]) => name)).toEqual(['audit']);
  }
  const mine = `[...document.querySelectorAll('#cluster-processes .quiet')].map((said) =>
    said.closest('th').children[1].textContent)`;
  expect(await works.evaluate(mine)).toEqual(['sluice-0']);
  expect(await waits.evaluate(mine)).toEqual(['sluice-1']);
  // What comes is followed.
  sandbox.control.grow(audit, 7);
  await waits.waitFor(isIn('cluster-sinks', String(events + 7)), patienceMs);

  await first.kill('SIGKILL');
  await second.waitForLine('"running"');
  // The page that was open is the new owner's now, on its own port.
  const url = JSON.parse(
    second.stderr.findLast((line) => line.includes('"status page"')) ?? '',
  ).url;
  await waits.open(`${url}/`);
  await waits.waitFor(isIn('cluster-matters', 'is fenced'), patienceMs);
  expect(await waits.evaluate(`document.getElementById('cluster-matters').textContent`)).toContain(
    `sluice-0, process ${first.pid} on ${host} is fenced: another one has the state since`,
  );
  expect(await waits.evaluate(`document.getElementById('cluster-told').textContent`)).toContain(
    '1 working; taken over 1 time',
  );
  expect([...works.complaints, ...waits.complaints].filter((said) => !/ERR_/.test(said))).toEqual(
    [],
  );
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
}, 300_000);
