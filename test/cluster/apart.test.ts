// Sinks with a process of their own (`own_process`), on a real Apache Kafka: whichever process has a sink, its events are
// there, and what the shard's owner knows of it is what was sent.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const events = 200;
const timeoutMs = 60_000;

/** One upstream of one shard, whose sinks are a topic and a hook, each with a process of its own, and a file without. */
async function aCluster() {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('apart');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const hook = await startHttpReceiver();
  const { sandbox, upstreams, env } = await anEdge(events);
  const config = (instance: string) => {
    const file = join(dir, `${instance}.yaml`);
    const text = `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 500ms, page_limit: 50 } }
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true, own_process: true }
  hook: { type: http, url: '${hook.url}', format: json, batch: { events: 20 }, retry: { min: 100ms }, own_process: true }
  disk: { type: file, path: '${dir}/{partition}.ndjson', format: json }
status: { listen: "127.0.0.1:0" }
`;
    writeFileSync(file, text);
    return file;
  };
  const start = (instance: string) => startSluice(['run', '-c', config(instance)], { env });
  const hooked = () => uidsIn(hook.requests.map(({ body }) => body.toString()).join('\n'));
  const onDisk = () => uidsIn(readFileSync(join(dir, '0.ndjson'), 'utf8'));
  const inTopic = async (count: number) =>
    (await consumeAll(topic, { until: (records) => records.length >= count, timeoutMs })).flatMap(
      ({ value }) => uidsIn(value),
    );
  return { config, start, hook, sandbox, env, hooked, onDisk, inTopic };
}

/** Of records of upstream. */
function uidsIn(text: string): readonly string[] {
  const own = text.split('\n').filter((line) => !line.includes('"log_name":"sluice"'));
  return [...own.join('\n').matchAll(/"uid":"([0-9a-f]{64})"/g)].map(([, uid = '']) => uid);
}

test('a sink with a process of its own goes to whichever machine has room, and is gone on with where that one is killed', async () => {
  const { start, sandbox, hooked, onDisk, inTopic } = await aCluster();
  const everywhere = async (count: number) => {
    const topic = await inTopic(count);
    expect(topic.length).toBe(new Set(topic).size);
    const here = { what: () => `${count}, not ${hooked().length} hooked`, timeoutMs };
    await waitUntil(() => new Set(hooked()).size >= count && onDisk().length >= count, here);
    expect(onDisk().length).toBe(count);
    expect(new Set(topic)).toEqual(new Set(onDisk()));
    expect(new Set(hooked())).toEqual(new Set(onDisk()));
  };
  const one = start('one');
  await everywhere(events);
  const two = start('two');
  const has = (lines: readonly string[], sink: string) =>
    lines.some((line) => line.includes('a process has begun') && line.includes(`"sink":"${sink}"`));
  await waitUntil(() => ['lake', 'hook'].some((sink) => has(two.stderr, sink)), {
    what: () => `another process to have a sink: ${two.stderr.join('\n')}`,
    timeoutMs,
  });
  sandbox.control.grow(audit, events);
  await everywhere(2 * events);

  await one.kill('SIGKILL');
  sandbox.control.grow(audit, events);
  await everywhere(3 * events);
  expect(await two.kill('SIGTERM')).toMatchObject({ exitCode: 0 });
});
