// A process that was paused for longer than its session and wakes up, on a real Apache Kafka: its successor has sent what it
// had under way, so it sends nothing more, to no kind of sink.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { consumeAll, kafkaBrokers, newTopic } from '../support/kafka.ts';
import { testSome } from '../support/long.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const audit = '/v1/audit/events';
const sessionMs = 6_000;
const timeoutMs = 90_000;
/** So slow is the receiver that events wait for it at each moment. */
const receiverMs = 150;

/** The workers that a process has started and that it lists in its log. */
const workersOf = ({ stderr }: RunningSluice): readonly number[] =>
  stderr
    .filter((line) => line.includes('shard_worker_started'))
    .map((line) => (JSON.parse(line) as { readonly pid: number }).pid);

testSome(1, [
  { of: 'a state of one shard', shards: 1, workers: true },
  { of: 'several shards, with its workers', shards: 50, workers: true },
  { of: 'several shards, without its workers', shards: 50, workers: false },
])(
  'paused beyond the session and resumed ($of): it sends nothing that its successor has',
  async ({ shards, workers }) => {
    const brokers = JSON.stringify(await kafkaBrokers());
    const topics = { one: await newTopic('resumed-1'), two: await newTopic('resumed-2') };
    const prefix = `p-${crypto.randomUUID()}`;
    const dir = tempDir();
    const hook = await startHttpReceiver();
    hook.answer(async () => {
      await delay(receiverMs);
      return { answer: 'reply', status: 200 };
    });
    const { sandbox, upstreams, env } = await anEdge(600);
    const start = (instance: 'one' | 'two') => {
      const file = join(dir, `${instance}.yaml`);
      writeFileSync(
        file,
        `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: ${sessionMs}ms, instance: ${instance} }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge, every: 200ms, page_limit: 20 } }
sinks:
  disk: { type: file, path: '${dir}/out-{partition}.ndjson', format: json, batch: { events: 10, wait: 20ms } }
  hook: { type: http, url: '${hook.url}', format: json, headers: { x-instance: ${instance} }, batch: { events: 5 } }
  lake: { type: kafka, brokers: ${brokers}, topic: ${topics[instance]}, format: json, batch: { events: 10, wait: 20ms } }
`,
      );
      return startSluice(['run', '-c', file], { env });
    };
    const hooked = (instance: string) =>
      hook.requests.filter(({ headers }) => headers['x-instance'] === instance).length;
    const growing = setInterval(() => sandbox.control.grow(audit, 10), 150);
    afterThisTest(() => clearInterval(growing));
    const first = start('one');
    await waitUntil(() => hooked('one') > 5, { what: 'the first one to send', timeoutMs });
    const second = start('two');
    await second.waitForLine('standing by');

    const paused = [first.pid, ...(workers ? workersOf(first) : [])];
    for (const pid of paused) process.kill(pid, 'SIGSTOP');
    afterThisTest(() => {
      for (const pid of paused) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It has ended.
        }
      }
    });
    // Its session is over by then. The successor sends on, past what the paused process had under way.
    await waitUntil(() => hooked('two') > 20, { what: 'its successor to send', timeoutMs });
    const before = [hooked('one'), (await consumeAll(topics.one)).length];
    for (const pid of paused) process.kill(pid, 'SIGCONT');
    await waitUntil(() => first.stderr.some((line) => /state_locked|standing by/.test(line)), {
      what: () => `it to hear of its successor: ${first.stderr.slice(-5).join('\n')}`,
      timeoutMs,
    });
    // A process that resumes sends within the time of a few requests.
    await delay(20 * receiverMs);

    expect([hooked('one'), (await consumeAll(topics.one)).length]).toEqual(before);
    clearInterval(growing);
    const shard = /"shard":(\d+)/.exec(second.stderr.join('\n'))?.[1] ?? '0';
    const lines = readFileSync(join(dir, `out-${shard}.ndjson`), 'utf8')
      .split('\n')
      .slice(0, -1);
    const uids = lines.flatMap((line) => /"uid":"([0-9a-f]{64})"/.exec(line)?.[1] ?? []);
    expect(uids.length).toBeGreaterThan(600);
    // The write of one batch may have left the process's hands when it was paused, and reach the file after the successor has
    // written the same batch: a file with its position in Kafka is at least once.
    expect(uids.length - new Set(uids).size).toBeLessThanOrEqual(10);
  },
);
