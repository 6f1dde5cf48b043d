// The upgrade of a state of several shards from a version whose shards have a group each, on a real Apache Kafka: processes of
// both versions never work beside each other.
// @module-tag long

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { runSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers } from '../support/kafka.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

const names = ['east', 'south'];

test('a run is refused while an older version works, and has it refuse the state from then on', async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const { upstreams, env, apart } = await someEdges(names, 5);
  const file = join(dir, 'c.yaml');
  const shards = apart((count) => {
    writeFileSync(
      file,
      `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, shards: ${count}, session_timeout: 6s } }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name} }`).join('\n')}
sinks: { disk: { type: file, path: '${dir}/{partition}.ndjson', format: json } }
`,
    );
    return file;
  });
  const once = () => runSluice(['run', '--once', '-c', file], { env });
  const counts = async () =>
    (await consumeAll(`${prefix}.control`))
      .filter(({ key }) => key === '["shards","count"]')
      .map(({ value }) => JSON.parse(value) as unknown);
  expect((await once()).exitCode).toBe(0);
  // An older version reads `count`, and refuses a number that is not the one of its config.
  expect(await counts()).toEqual([{ count: 0, of: shards }]);

  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  afterThisTest(() => producer.disconnect());
  const send = async (value: object) => {
    const record = { key: '["shards","count"]', value: JSON.stringify(value) };
    await producer.send({ topic: `${prefix}.control`, messages: [record] });
  };
  await send({ count: shards });
  const consumer = kafka.consumer({ groupId: `${prefix}.owners.1` });
  afterThisTest(() => consumer.disconnect());
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.shards` });
  const joined = new Promise((resolve) => consumer.on('consumer.group_join', resolve));
  await consumer.run({ eachMessage: async () => undefined });
  await joined;

  const refused = await once();
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('state_locked')]);
  expect(refused.stderr).toContain(`the group ${prefix}.owners.1 in Kafka has 1 member`);
  expect(refused.stderr).toContain('Stop the processes of the older version on all machines');
  expect((await counts()).at(-1)).toEqual({ count: shards });

  // A process of this version that has begun to close the state, and others that start meanwhile, look again.
  await send({ count: 0, of: shards, closing: true });
  const again = await once();
  expect([again.exitCode, again.stderr]).toEqual([1, expect.stringContaining('state_locked')]);
  expect((await counts()).at(-1)).toMatchObject({ closing: true });
  const checked = await runSluice(['check', '--connect', '-c', file], { env });
  expect(checked.stdout + checked.stderr).toContain(`the group ${prefix}.owners.1 in Kafka has 1`);
  const reset = ['checkpoint', 'reset', '--stream', 'east', '-c', file];
  const moved = await runSluice(reset, { env });
  expect([moved.exitCode, moved.stderr]).toEqual([1, expect.stringContaining('hold the state')]);

  await consumer.disconnect();
  const upgraded = await once();
  expect(upgraded.exitCode, upgraded.stderr).toBe(0);
  expect((await counts()).at(-1)).toEqual({ count: 0, of: shards });
}, 240_000);
