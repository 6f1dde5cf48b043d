// The ends of upstreams with a state in Kafka of several shards: each event once, also where another process with
// another directory resumes from Kafka, and each date shown.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere, runSluice } from '../support/cli.ts';
import { someEdges } from '../support/edges.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { tempDir } from '../support/temp.ts';

const names = ['east', 'south'];
const dayMs = 86_400_000;

test('each upstream reports its end once, over shards and processes', {
  tags: ['long'],
}, async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const topic = await newTopic('ends');
  const prefix = `p-${crypto.randomUUID()}`;
  const dir = tempDir();
  const { upstreams, env, apart } = await someEdges(names, 5);
  const ends = new Date(Date.now() + 20.5 * dayMs).toISOString();
  const config = (instance: string, shards: number) => {
    const file = join(dir, `${instance}.yaml`);
    const sources = names.flatMap((name) => [
      `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`,
      `  more_${name}: { type: audit_events, upstream: ${name}, every: 500ms }`,
    ]);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams.replaceAll('ends: never', `ends: ${ends}`)}
sources:
${sources.join('\n')}
sinks:
  lake: { type: kafka, brokers: ${brokers}, topic: ${topic}, format: json, exactly_once: true }
`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));

  for (const instance of ['one', 'two', 'one']) {
    const run = await runSluice(['run', '--once', '-c', config(instance, shards)], { env });
    expect([run.exitCode, run.stderr]).toEqual([0, expect.any(String)]);
  }
  const { stdout } = await runHere(['status', '--json', '-c', config('one', shards)], env);
  const all = await consumeAll(topic, {});
  const sent = all
    .map(({ value }) => JSON.parse(value))
    .filter(({ metadata }) => metadata.event_code === 'upstream.ends');

  expect(sent.map(({ unmapped: { details } }) => [details.upstream, details.days]).sort()).toEqual(
    names.map((name) => [name, 30]),
  );
  const { upstreams: shown } = JSON.parse(stdout) as { upstreams: readonly { name: string }[] };
  expect(shown.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject(
    names.map((name) => ({ name, ends_at: ends, days_left: 20 })),
  );
});
