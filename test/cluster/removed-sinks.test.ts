// Two processes of one state in Kafka, of which the second lacks a sink from the start or since a reload of the first: what
// the second reads is kept for that sink, and both name the difference. On a real Apache Kafka.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readState } from '../../src/watch/state.ts';
import { runHere, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { someEdges } from '../support/edges.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

/** The uids of the events that a receiver has accepted. */
function receivedBy({ requests }: HttpReceiver): ReadonlySet<string> {
  const lines = requests.flatMap(({ body }) => body.toString('utf8').split('\n'));
  return new Set(
    lines.filter((line) => line !== '').map((line): string => JSON.parse(line).metadata.uid),
  );
}

test('a sink that the second process lacks loses nothing to it', { tags: ['long'] }, async () => {
  const brokers = await kafkaBrokers();
  const prefix = `p-${crypto.randomUUID()}`;
  const { sandbox, upstreams, env } = await anEdge(300);
  const receiver = await startHttpReceiver();
  afterThisTest(() => receiver.close());
  await receiver.close();
  const dir = tempDir();
  const config = (name: string, sinks: string) => {
    const file = join(dir, `${name}.yaml`);
    const kafka = `{ brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, session_timeout: 6s, instance: ${name} }`;
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${name}
  kafka: ${kafka}
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s, page_limit: 50 }
sinks:
  disk: { type: file, path: ${dir}/out.ndjson, format: json }
${sinks}`,
    );
    return file;
  };
  const es = `  es: { type: http, url: "${receiver.url}/in", format: json, retry: { min: 100ms, max: 500ms } }\n`;
  const [withEs, withoutEs] = [config('one', es), config('two', '')];
  const lines = () => {
    try {
      return readFileSync(join(dir, 'out.ndjson'), 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  const one = startSluice(['run', '-c', withEs], { env });
  await waitUntil(() => lines() === 300, { what: 'the events of the first' });
  const two = startSluice(['run', '-c', withoutEs], { env });
  await two.waitForLine('standing by');
  const seen = await runHere(['cluster', '-c', withEs, '--json'], env);
  await one.kill('SIGKILL');
  sandbox.control.grow('/v1/audit/events', 300);
  await waitUntil(() => lines() === 600, { what: 'the events of the second' });
  await two.kill();
  await receiver.reopen();

  const again = startSluice(['run', '-c', withEs], { env });
  await waitUntil(() => receivedBy(receiver).size >= 600, {
    what: () => `all events at es; ${receivedBy(receiver).size} came`,
  });
  await again.kill();

  expect(receivedBy(receiver).size).toBe(600);
  expect(JSON.parse(seen.stdout).config_differences).toEqual([
    expect.stringMatching(/^two, process \d+ on .*: lacks sink es$/),
  ]);
});

test('a sink that a reload adds to one process loses nothing of the shards of another one', async () => {
  const brokers = JSON.stringify(await kafkaBrokers());
  const prefix = `p-${crypto.randomUUID()}`;
  const names = ['east', 'west'];
  const { upstreams, env, apart, grow } = await someEdges(names, 100);
  const [siem, es] = [await startHttpReceiver(), await startHttpReceiver()];
  afterThisTest(() => Promise.all([siem.close(), es.close()]));
  await es.close();
  const dir = tempDir();
  const http = (name: string, { url }: HttpReceiver) =>
    `  ${name}: { type: http, url: "${url}/in", format: json, retry: { min: 100ms, max: 500ms } }\n`;
  const config = (instance: string, shards: number, more = '') => {
    const file = join(dir, `${instance}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${instance}
  kafka: { brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance} }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms, page_limit: 50 }`).join('\n')}
sinks:
${http('siem', siem)}${more}`,
    );
    return file;
  };
  const shards = apart((count) => config('any', count));
  const [first, second] = [config('one', shards), config('two', shards)];
  const look = async () =>
    JSON.parse((await runHere(['cluster', '-c', second, '--json'], env)).stdout) as {
      readonly processes: readonly { readonly state: string }[];
      readonly config_differences: readonly string[];
    };
  const all = (count: number) =>
    waitUntil(() => receivedBy(siem).size >= count, {
      what: () => `${count} events at siem; ${receivedBy(siem).size} came`,
      timeoutMs: 60_000,
    });
  const one = startSluice(['run', '-c', first, '--allow-removal'], { env });
  await all(200);
  const two = startSluice(['run', '-c', second], { env });
  const working = async () =>
    (await look()).processes.filter(({ state }) => state === 'working').length;
  await waitUntil(async () => (await working()) === 2, {
    ...{ what: 'a shard in each process', everyMs: 500, timeoutMs: 90_000 },
  });
  /** The sinks that the state of the second process's shard knows, without those that are missing. */
  const known = () => {
    const cache = join(dir, 'two', `kafka-${prefix}`);
    const places = readdirSync(cache).filter((name) => name.startsWith('shard-'));
    return places.flatMap((name) =>
      [...readState(join(cache, name)).knownSinks.values()].flatMap((sink) =>
        sink.missingSince === null ? sink.name : [],
      ),
    );
  };

  config('one', shards, http('es', es));
  await waitUntil(() => known().includes('es'), {
    what: () => `the sink of the first in the second; ${known()}; ${one.stderr.slice(-5)}`,
    timeoutMs: 60_000,
  });
  const { config_differences: differences } = await look();
  const before = receivedBy(siem);
  grow(100);
  await all(400);
  await two.kill('SIGKILL');
  await es.reopen();
  const later = () => [...receivedBy(siem)].filter((uid) => !before.has(uid));
  const lost = () => later().filter((uid) => !receivedBy(es).has(uid));
  await waitUntil(() => lost().length === 0, {
    what: () => `all later events at es; ${lost().length} of ${later().length} lack`,
    timeoutMs: 60_000,
  });
  config('one', shards);
  await waitUntil(async () => (await look()).config_differences.length === 0, {
    ...{ what: 'no difference once the first lacks it too', everyMs: 500, timeoutMs: 60_000 },
  });
  await one.kill();

  expect(later()).toHaveLength(200);
  expect(differences).toEqual([
    expect.stringMatching(/^one, process \d+ on .*: also has sink es$/),
  ]);
});
