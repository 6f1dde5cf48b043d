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
import { someEdges } from '../support/edges.ts';
import { kafkaBrokers, startKafka } from '../support/kafka.ts';
import { freePorts, tempDir, waitUntil } from '../support/temp.ts';
import { listenTo } from '../watch/a-moment.ts';

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

test('a standby shows the owner and the progress of its sinks, and after a takeover the fenced process', {
  tags: ['long'],
}, async () => {
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
    `sluice-0, process ${first.pid} on ${host} is fenced: another process has the state since`,
  );
  expect(await waits.evaluate(`document.getElementById('cluster-note').textContent`)).toContain(
    '1 working; taken over 1 time',
  );
  expect([...works.complaints, ...waits.complaints].filter((said) => !/ERR_/.test(said))).toEqual(
    [],
  );
  expect((await second.kill('SIGTERM')).exitCode).toBe(0);
});

test('with several shards each page has the tail of its own shards, names the owners of the others, and shows all', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const { upstreams, env, apart } = await someEdges(['east', 'west'], events);
  const [nobody] = await freePorts(1);
  const dir = tempDir();
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
  from-east: { type: audit_events, upstream: east, every: 1s, page_limit: 20 }
  from-west: { type: audit_events, upstream: west, every: 1s, page_limit: 20 }
sinks: { siem: { type: syslog, address: "tcp://127.0.0.1:${nobody}", format: syslog } }
status: { listen: "127.0.0.1:0" }
`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));
  const start = (instance: string) => startSluice(['run', '-c', config(instance, shards)], { env });
  const pageOf = async (sluice: ReturnType<typeof startSluice>) => {
    const page = await startBrowser();
    const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
    await page.open(`${url}/`);
    await page.waitFor(`!document.getElementById('cluster').hidden`);
    return page;
  };
  const watch = `document.getElementById('watch').click()`;
  const shows = (stream: string) =>
    `[...document.querySelectorAll('#lines li')].some(({ title }) => title === '${stream}')`;
  const unseen = (text: string) => isIn('tail-unseen', text);

  const first = start('one');
  const page = await pageOf(first);
  await page.waitFor(
    `${isIn('streams', 'from-east')} && ${isIn('streams', 'from-west')}`,
    patienceMs,
  );
  await page.evaluate(watch);
  await page.waitFor(`${shows('from-east')} && ${shows('from-west')}`, patienceMs);
  expect(await page.evaluate(`document.getElementById('tail-unseen').textContent`)).toBe('');
  // A request goes to all shards, and an impossible one is refused at once.
  await page.evaluate(`(() => {
    const field = document.querySelector('#tail [name=stream]');
    field.value = 'west';
    field.dispatchEvent(new Event('change', { bubbles: true }));
  })()`);
  await page.waitFor(`${shows('from-west')} && !${shows('from-east')}`, patienceMs);
  await page.evaluate(`(() => {
    for (const [name, value] of [['stream', ''], ['where', 'not CEL']]) {
      document.querySelector('#tail [name=' + name + ']').value = value;
    }
    document.querySelector('#tail [name=where]').dispatchEvent(new Event('change', { bubbles: true }));
  })()`);
  await page.waitFor(isIn('tail-note', 'where:'), patienceMs);
  await page.evaluate(`document.querySelector('#tail [name=where]').value = ''`);
  await page.evaluate(watch);
  await page.waitFor(`${shows('from-east')} && ${shows('from-west')}`, patienceMs);

  // What goes to another process is on that one's page, and said here.
  const second = start('two');
  await page.waitFor(unseen('on the page of two'), patienceMs);
  const other = await pageOf(second);
  await other.evaluate(watch);
  await other.waitFor(unseen('on the page of one'), patienceMs);
  await other.waitFor(`document.querySelectorAll('#lines li').length > 0`, patienceMs);

  // One that has nothing shows all the same.
  const third = start('three');
  const idle = await pageOf(third);
  await idle.waitFor(isIn('cluster-processes', 'three'), patienceMs);
  const processes = await rowsOf(idle, 'cluster-processes');
  expect(processes.map(([name, state]) => [name, state]).sort()).toEqual([
    ['one', 'working'],
    ['three', 'standing by'],
    ['two', 'working'],
  ]);
  expect(
    processes
      .map((cells) => cells.at(-1))
      .sort()
      .join(' '),
  ).toMatch(/^\d+ \d+ –$/);
  const sinks = await rowsOf(idle, 'cluster-sinks');
  expect(sinks.map(([name, , of, backlog]) => [name, of, backlog]).sort()).toEqual([
    ['siem', 'one', String(events)],
    ['siem', 'two', String(events)],
  ]);
  await idle.evaluate(watch);
  await idle.waitFor(
    `${unseen('on the page of one')} && ${unseen('on the page of two')}`,
    patienceMs,
  );

  const pages = [page, other, idle];
  expect(pages.flatMap(({ complaints }) => complaints).filter((said) => !/400/.test(said))).toEqual(
    [],
  );
  for (const sluice of [third, second, first]) {
    expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
  }
}, 300_000);

test('while Kafka is away pages report it and keep their values; a stopping process does not wait for Kafka', {
  tags: ['long'],
}, async () => {
  const kafka = await startKafka();
  const { upstreams, env } = await anEdge(events);
  const dir = tempDir();
  const start = (instance: string) => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ["${kafka.addresses.plain}"], prefix: away, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 20 } }
sinks: { disk: { type: file, path: ${dir}/out.ndjson, format: json } }
status: { listen: "127.0.0.1:0" }
shutdown: { timeout: 1s }
`,
    );
    return startSluice(['run', '-c', file], { env });
  };
  const listen = async (sluice: ReturnType<typeof startSluice>) => {
    const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
    const reader = await listenTo(`${url}/events`);
    const reported = () =>
      [...reader.text().matchAll(/^event: cluster\ndata: (.*)$/gm)].map(([, data = '']) =>
        JSON.parse(data),
      );
    await waitUntil(() => reported().some(({ status }) => status?.processes.length > 0), {
      what: 'the page to show the whole',
      timeoutMs: patienceMs,
    });
    return reported;
  };
  const first = start('one');
  await first.waitForLine('"running"');
  const second = start('two');
  await second.waitForLine('standing by');
  const [reported] = [await listen(first), await listen(second)];
  const looks = reported().length;

  const frozen = kafka.pid ?? 0;
  process.kill(frozen, 'SIGSTOP');
  const ended = await second.kill('SIGTERM');
  process.kill(frozen, 'SIGCONT');
  expect(ended.exitCode, ended.stderr).toBe(0);

  await waitUntil(() => reported().length > looks && reported().at(-1).error === null, {
    what: 'a look',
  });
  await kafka.kill();
  await waitUntil(() => reported().at(-1).error !== null, {
    what: 'the page to say that Kafka is away',
    timeoutMs: patienceMs * 2,
  });
  const [before, last] = reported().slice(-2);
  expect(last).toEqual({ ...before, error: last.error });
  expect(last.error).toEqual({ message: expect.any(String), next: expect.any(String) });
});
