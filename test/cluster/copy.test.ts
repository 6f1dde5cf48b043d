// A copy of a state in Kafka, on a real Apache Kafka: it has the committed state, reads nothing twice, and starts again if the
// topic was recreated. Descriptions of group members are untrusted text.

import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Connection,
  FindCoordinatorKeyTypes,
  findCoordinatorV4,
  joinGroupV9,
  ResponseError,
  syncGroupV5,
} from '@platformatic/kafka';
import { Kafka, logLevel } from 'kafkajs';
import { expect, test } from 'vitest';
import { StateCopy } from '../../src/cluster/copy.ts';
import { ShardLog } from '../../src/cluster/log/shard-log.ts';
import { parseHostPort } from '../../src/contracts/settings.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { changeState, lookInto } from '../../src/hold/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { readState } from '../../src/watch/state.ts';
import { anAppend } from '../support/a-page.ts';
import { runHere } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { kafkaBrokers } from '../support/kafka.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const clock = systemClock();

async function aCluster() {
  const brokers = (await kafkaBrokers()).map(parseHostPort).filter((one) => one !== null);
  return { brokers, prefix: `p-${randomUUID()}` };
}

/** A spool on the log of a shard, until it is closed. */
async function aSpool(cluster: Awaited<ReturnType<typeof aCluster>>) {
  const [log, dir] = [await ShardLog.take(cluster, { clock, log: silent }), tempDir()];
  afterThisTest(() => log.cut());
  await log.rebuild(dir);
  const sinks = ['a'];
  const spool = await openSpool({ dir, sync: 'none', keepMs: 0, bytesMax: 1e9, sinks, log });
  const close = async () => {
    await spool.close();
    await log.close();
  };
  return { spool, close };
}

test('it continues from its last position, and starts again if the topic was recreated', async () => {
  const cluster = await aCluster();
  const dir = tempDir();
  const copy = new StateCopy(cluster, dir, clock);
  afterThisTest(() => copy.close());
  const position = () => readState(dir).sinks.get('a')?.position;
  const marker = () => lookInto(dir, false, (store) => store.noted('sink').has('of the copy'));
  expect(await copy.catchUp()).toBe(false);

  const first = await aSpool(cluster);
  await first.spool.append(anAppend({ ids: ['1', '2', '3'] }));
  await first.spool.acknowledge('a', { position: 2 });
  await waitUntil(async () => (await copy.catchUp()) && position() === 2, {
    what: 'the first position',
    everyMs: 50,
  });
  // A row that only the copy has would not survive a new copy.
  changeState({ dir, sync: 'none', keepMs: 0 }, (store) =>
    store.note('sink', 'of the copy', '{}', 0),
  );
  await first.spool.acknowledge('a', { position: 3 });
  // Readers see a transaction a little later than its writer.
  const next = async () => (await copy.catchUp()) && position() === 3;
  await waitUntil(next, { what: 'the next position', everyMs: 50 });
  expect(await copy.catchUp()).toBe(true);
  expect([position(), marker()]).toEqual([3, true]);

  await first.close();
  const admin = new Kafka({
    brokers: [...(await kafkaBrokers())],
    logLevel: logLevel.NOTHING,
  }).admin();
  await admin.connect();
  await admin.deleteTopics({ topics: [`${cluster.prefix}.state`, `${cluster.prefix}.pages`] });
  await admin.disconnect();
  const second = await aSpool(cluster);
  await waitUntil(async () => (await copy.catchUp().catch(() => false)) && position() !== 3, {
    what: 'the copy to begin anew',
    everyMs: 200,
  });
  expect([position(), marker()]).toEqual([undefined, false]);
  await second.close();
}, 120_000);

test('the description of a member is untrusted: text of a bounded length, and only valid times', async () => {
  const { brokers, prefix } = await aCluster();
  const [broker] = brokers;
  if (broker === undefined) throw new Error('there is no broker');
  const group = `${prefix}.owners`;
  const connections: Connection[] = [];
  const to = async (host: string, port: number) => {
    const connection = new Connection('a stranger', {});
    connections.push(connection);
    await connection.connect(host, port);
    return connection;
  };
  afterThisTest(() => Promise.all(connections.map((one) => one.close())));
  const { GROUP } = FindCoordinatorKeyTypes;
  const any = await to(broker.host, broker.port);
  const found = await waitUntil(
    async () => {
      const { coordinators } = await findCoordinatorV4.api
        .async(any, GROUP, [group])
        .catch(() => ({ coordinators: [] }));
      return coordinators[0];
    },
    { what: 'a coordinator' },
  );
  const member = await to(found.host, found.port);
  const reported = {
    host: `<b>\u202e${'x'.repeat(100_000)}`,
    pid: '1',
    startedAt: 1e300,
    process: { toString: 'no' },
    deployment: 'all',
  };
  const protocols = [{ name: 'one-owner', metadata: Buffer.from(JSON.stringify(reported)) }];
  // A new broker has to load the group first, and names a member before it takes it.
  let named = '';
  const joined = await waitUntil(
    () =>
      joinGroupV9.api
        .async(
          ...([member, group, 60_000, 60_000, named, null, 'sluice', protocols, null] as const),
        )
        .catch((error) => {
          if (!(error instanceof ResponseError)) throw error;
          named = (error.response as joinGroupV9.JoinGroupResponse).memberId;
          return null;
        }),
    { what: 'the stranger to be in the group', everyMs: 100 },
  );
  const { generationId, memberId } = joined;
  const owns = [{ memberId, assignment: Buffer.from('owner') }];
  await syncGroupV5.api.async(
    ...([member, group, generationId, memberId, null] as const),
    ...(['sluice', 'one-owner', owns] as const),
  );
  const { upstreams, env } = await anEdge(1);
  const file = join(tempDir(), 'c.yaml');
  writeFileSync(
    file,
    `state: { kafka: { brokers: ${JSON.stringify(await kafkaBrokers())}, prefix: ${prefix} } }
${upstreams}
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { disk: { type: file, path: out.ndjson, format: json } }
`,
  );

  const looked = await runHere(['cluster', '-c', file, '--json'], env);

  expect(looked.exitCode, looked.stderr).toBe(0);
  const [process, ...more] = JSON.parse(looked.stdout).processes;
  expect(more).toEqual([]);
  expect(process).toMatchObject({ state: 'starting', pid: null, started_at: null, instance: null });
  expect(process.host).toHaveLength(200);
  expect(process.host).toMatch(/^<b>[^\u202e]*x+…$/);
}, 120_000);
