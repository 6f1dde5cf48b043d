// `sluice archive replay`: what it sends, once, whatever ends it on the way, and what it refuses.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { uidBytes } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { archived, aSigner, aWriter, heldPages } from '../archive/a-writer.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { startRsyslog } from '../support/rsyslog.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const uidPattern = /"uid":"[0-9a-f]{64}"/g;

/** An archive of three events a page, and a config with a file and with an archive of its own. */
async function anArchive(pageCount: number, routes = '', sinks = '') {
  const dir = tempDir();
  const location = join(dir, 'archive');
  const pages = heldPages(pageCount);
  const writer = await aWriter({ store: openDirectory(location) });
  await archived(writer, pages);
  await writer.close();
  const config = join(dir, 'sluice.yaml');
  const out = join(dir, 'out.ndjson');
  const key = join(dir, 'archive.key');
  expect((await runHere(['archive', 'keys', 'new', key])).exitCode).toBe(0);
  writeFileSync(
    config,
    `
state: { dir: ${join(dir, 'state')} }
upstreams: { edge: { api: unified, ends: never, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources:
  audit: { type: audit_events, upstream: edge, every: 30s }
  more: { type: audit_events, upstream: edge, every: 30s, path: /more }
sinks:
  disk: { type: file, path: ${out}, format: json }
  other: { type: file, path: ${join(dir, 'other.ndjson')}, format: json }
${sinks}
  kept: { type: archive, location: ${join(dir, 'kept')}, signing_key: "\${file:${key}}" }
${routes}
`,
  );
  const { vkey } = aSigner().verifier;
  const args = ['archive', 'replay', '-c', config, location, '--key', vkey, '--sink'];
  const uids = pages.flatMap(({ uids, count }) =>
    Array.from({ length: count }, (_, i) =>
      Buffer.from(uids.subarray(i * uidBytes, (i + 1) * uidBytes)).toString('hex'),
    ),
  );
  const written = () =>
    (existsSync(out) ? readFileSync(out, 'utf8') : '')
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid);
  return {
    dir,
    out,
    uids,
    written,
    args,
    replay: (...more: string[]) => runHere([...args, ...more]),
  };
}

test('the sink gets each event with its uid, in order, and no other sink does', async () => {
  const { dir, uids, written, replay } = await anArchive(20);

  const { exitCode, stderr } = await replay('disk');

  expect(exitCode).toBe(0);
  expect(stderr).toContain('60 events read');
  expect(written()).toEqual(uids);
  expect(existsSync(join(dir, 'other.ndjson'))).toBe(false);
});

test('requested again it sends again, and only events that pass the filter', async () => {
  const { uids, written, replay } = await anArchive(5);
  await replay('disk');

  const { exitCode } = await replay('disk', '--where', `event.metadata.uid == "${uids[7]}"`);

  expect(exitCode).toBe(0);
  expect(written()).toEqual([...uids, uids[7]]);
});

test('killed on its way it resumes, and each event comes once', async () => {
  const { uids, written, args, out } = await anArchive(1_500);

  const killed = startSluice([...args, 'disk']);
  await waitUntil(() => (existsSync(out) && written().length > 0) || !killed.running, {
    what: 'the first events',
  });
  await killed.kill('SIGKILL');
  const before = written().length;
  const { exitCode } = await runHere([...args, 'disk']);

  expect(before).toBeGreaterThan(0);
  expect(exitCode).toBe(0);
  expect(written()).toEqual(uids);
});

test('over HTTP, killed on its way, nothing is lost, and a repeat has its uid', async () => {
  const receiver = await startHttpReceiver();
  const post = `  post: { type: http, url: "${receiver.url}", format: json, batch: { events: 20 } }`;
  const { uids, args } = await anArchive(200, '', post);
  const came = () =>
    receiver.requests.flatMap(({ body }) => body.toString('utf8').match(uidPattern) ?? []);

  const killed = startSluice([...args, 'post']);
  await waitUntil(() => came().length > 0 || !killed.running, { what: 'the first events' });
  await killed.kill('SIGKILL');
  const before = came().length;
  const { exitCode, stderr } = await runHere([...args, 'post']);

  expect(before).toBeGreaterThan(0);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/events? read, \d+\/s/);
  expect(new Set(came())).toEqual(new Set(uids.map((uid) => `"uid":"${uid}"`)));
});

test('rsyslog gets each event with its uid', async () => {
  const rsyslog = await startRsyslog();
  const siem = `  siem: { type: syslog, address: "tcp://127.0.0.1:${rsyslog.tcpPort}", format: json }`;
  const { uids, args } = await anArchive(40, '', siem);

  const { exitCode } = await runHere([...args, 'siem']);
  await rsyslog.waitFor(uids.length);

  expect(exitCode).toBe(0);
  const came = readFileSync(rsyslog.file, 'utf8');
  expect(uids.filter((uid) => !came.includes(uid))).toEqual([]);
});

test('Kafka gets each event once with its uid, however it was broken off', {
  tags: ['long'],
}, async () => {
  const topic = await newTopic('replay');
  const brokers = JSON.stringify(await kafkaBrokers());
  const bus = `  bus: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true, batch: { events: 20 } }`;
  const { uids, args } = await anArchive(400, '', bus);

  const killed = startSluice([...args, 'bus']);
  const before = await consumeAll(topic, { until: 20 });
  await killed.kill('SIGKILL');
  const { exitCode } = await runHere([...args, 'bus']);

  expect(before.length).toBeGreaterThan(0);
  expect(exitCode).toBe(0);
  expect((await consumeAll(topic)).map(({ headers }) => headers.uid)).toEqual(uids);
});

test('sources without a route are reported', async () => {
  const { written, replay } = await anArchive(
    2,
    'routes: [{ from: [audit], to: [other, kept] }, { from: [more], to: [disk] }]',
  );

  const { stderr, exitCode } = await replay('disk');

  expect(exitCode).toBe(0);
  expect(stderr).toContain('no route leads from audit to disk');
  expect(written()).toEqual([]);
});

test('a sink of pages, an unknown sink and a filter that is none are wrong use', async () => {
  const { replay } = await anArchive(1);

  expect((await replay('kept')).exitCode).toBe(64);
  expect((await replay('nobody')).exitCode).toBe(64);
  expect((await replay('disk', '--where', 'event.(')).exitCode).toBe(64);
});
