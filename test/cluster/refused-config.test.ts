// A config file that the processes of several shards refuse, on a real Apache Kafka: a shard that starts meanwhile, since its
// worker or its process was killed, runs with the config that was accepted last.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type RunningSluice, startSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { someEdges } from '../support/edges.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { testSome } from '../support/long.ts';
import { storedHomes } from '../support/stored-homes.ts';
import { freePort, tempDir, waitUntil } from '../support/temp.ts';

const names = ['east', 'west'];
const events = 20;

/** The uids of the events that a receiver has accepted. */
function receivedBy({ requests }: HttpReceiver): ReadonlySet<string> {
  const lines = requests.flatMap(({ body }) => body.toString('utf8').split('\n'));
  return new Set(
    lines.filter((line) => line !== '').map((line): string => JSON.parse(line).metadata.uid),
  );
}

const linesOf = ({ stderr }: RunningSluice, event: string) =>
  stderr.filter((line) => line.includes(`"event":"${event}"`));

testSome(1, [
  ['has a fault', (text: string) => text.replace('sources:', 'sauces:')],
  ['drops a sink', (text: string) => text.replace(/^ {2}es: .*\n/m, '')],
])(
  'a shard that starts while its config file %s runs with the accepted config',
  async (_, change) => {
    const brokers = JSON.stringify(await kafkaBrokers());
    const prefix = `p-${crypto.randomUUID()}`;
    const { upstreams, env, apart, grow } = await someEdges(names, events);
    const receivers = { siem: await startHttpReceiver(), es: await startHttpReceiver() };
    const dir = tempDir();
    const ports = { one: await freePort(), two: await freePort() };
    const config = (instance: 'one' | 'two', shards: number) => {
      const file = join(dir, `${instance}.yaml`);
      const kafka = `brokers: ${brokers}, prefix: ${prefix}, shards: ${shards}, session_timeout: 6s, instance: ${instance}`;
      writeFileSync(
        file,
        `state: { dir: ${dir}/${instance}, kafka: { ${kafka} } }
${upstreams}
sources:
${names.map((name) => `  ${name}: { type: audit_events, upstream: ${name}, every: 500ms }`).join('\n')}
sinks:
${Object.entries(receivers)
  .map(([name, { url }]) => `  ${name}: { type: http, url: "${url}/in", format: json }\n`)
  .join('')}
status: { listen: 127.0.0.1:${ports[instance]} }
`,
      );
      return file;
    };
    const shards = apart((count) => config('one', count));
    const files = [config('one', shards), config('two', shards)];
    const [one, two] = files.map((file) => startSluice(['run', '-c', file], { env }));
    if (one === undefined || two === undefined) throw new Error('there are two');
    const all = (count: number) =>
      waitUntil(() => Object.values(receivers).every((each) => receivedBy(each).size >= count), {
        what: () => `${count} events at both; ${one.stderr.slice(-5)} ${two.stderr.slice(-5)}`,
      });
    await waitUntil(() => [one, two].every((each) => linesOf(each, 'running').length > 0), {
      what: 'a shard in each process',
    });
    await all(names.length * events);

    for (const file of files) writeFileSync(file, change(readFileSync(file, 'utf8')));
    await one.waitForLine('"event":"config_not_reloaded"');
    await two.waitForLine('"event":"config_not_reloaded"');
    const workers = linesOf(two, 'shard_worker_started').map(
      (line) => (JSON.parse(line) as { pid: number }).pid,
    );
    for (const pid of new Set(workers)) process.kill(pid, 'SIGKILL');
    await one.kill('SIGKILL');
    grow(events);
    await all(2 * names.length * events);

    const metrics = async () => await (await fetch(`http://127.0.0.1:${ports.two}/metrics`)).text();
    await waitUntil(async () => /^sluice_config_reload_refused 1$/m.test(await metrics()), {
      what: 'the refused file to be shown',
    });
    expect((await two.kill('SIGTERM')).exitCode).toBe(0);
    for (const each of Object.values(receivers)) await each.close();
  },
);

test('a shard that cannot read its config when it starts again reports why, and runs once it can', async () => {
  const brokers = await kafkaBrokers();
  const { sandbox, upstreams, env } = await anEdge(events);
  const receiver = await startHttpReceiver();
  const dir = tempDir();
  const file = join(dir, 'sluice.yaml');
  const prefix = `p-${crypto.randomUUID()}`;
  const secret = join(dir, 'secret');
  writeFileSync(secret, env.EDGE_SECRET ?? '');
  writeFileSync(
    file,
    `state: { dir: ${dir}/state, kafka: { brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}, shards: 2, session_timeout: 6s } }
${upstreams.replace('env:EDGE_SECRET', `file:${secret}`)}
  away: { api: unified, ends: never, base_url: "http://127.0.0.1:9/v1", allow_http: true, auth: { api_key: none-here }, shard: 0 }
sources:
  quiet: { type: audit_events, upstream: away, every: 500ms }
  audit: { type: audit_events, upstream: edge, every: 500ms }
sinks:
  siem: { type: http, url: "${receiver.url}/in", format: json }
`,
  );
  const sluice = startSluice(['run', '-c', file], { env });
  const all = (count: number) =>
    waitUntil(() => receivedBy(receiver).size >= count, { what: `${count} events` });
  await all(events);

  rmSync(secret);
  for (const line of linesOf(sluice, 'shard_worker_started'))
    process.kill((JSON.parse(line) as { pid: number }).pid, 'SIGKILL');
  const reported = () =>
    linesOf(sluice, 'shard_worker_ended').find((line) => JSON.parse(line).error !== undefined);
  await waitUntil(() => reported() !== undefined, { what: 'the reason' });
  expect(JSON.parse(reported() ?? '').error).toContain(secret);
  writeFileSync(secret, env.EDGE_SECRET ?? '');
  sandbox.control.grow('/v1/audit/events', events);
  await all(2 * events);

  // A source without a state that a refused config moves stays at home.
  writeFileSync(file, readFileSync(file, 'utf8').replace('shard: 0', 'shard: 1'));
  await sluice.waitForLine('"event":"config_not_reloaded"');
  expect(await storedHomes(brokers, prefix)).toMatchObject({ quiet: 0 });

  expect((await sluice.kill('SIGTERM')).exitCode).toBe(0);
});
