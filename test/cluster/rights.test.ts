// The account of a state in Kafka on a real Apache Kafka with an authorizer, over SASL and TLS: the rights that
// `sluice cluster acls` prints are enough, and without any one of them both `check --connect` and a run say which.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  logLevel,
  ResourcePatternTypes,
} from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeCa } from '../support/certificates.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { anEdge } from '../support/edge.ts';
import { type KafkaBroker, kafkaAccount, startKafka } from '../support/kafka.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';

const resources = {
  topic: AclResourceTypes.TOPIC,
  group: AclResourceTypes.GROUP,
  'transactional-id': AclResourceTypes.TRANSACTIONAL_ID,
} as const;
const operations: Readonly<Record<string, AclOperationTypes>> = {
  Read: AclOperationTypes.READ,
  Write: AclOperationTypes.WRITE,
  Create: AclOperationTypes.CREATE,
  Delete: AclOperationTypes.DELETE,
  DescribeConfigs: AclOperationTypes.DESCRIBE_CONFIGS,
};

/** A line for kafka-acls.sh, as one entry for each operation. */
function entriesOf(line: string) {
  const valuesOf = (name: string) =>
    [...line.matchAll(new RegExp(`--${name} (\\S+)`, 'g'))].map(([, value = '']) => value);
  const [resource] = (Object.keys(resources) as (keyof typeof resources)[]).filter(
    (name) => valuesOf(name).length > 0,
  );
  if (resource === undefined) throw new Error(`no resource in ${line}`);
  const prefixed = valuesOf('resource-pattern-type')[0] === 'prefixed';
  return valuesOf('operation').map((operation) => ({
    resourceType: resources[resource],
    resourceName: valuesOf(resource)[0] ?? '',
    resourcePatternType: prefixed ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
    principal: valuesOf('allow-principal')[0] ?? '',
    host: '*',
    operation: operations[operation] ?? AclOperationTypes.UNKNOWN,
    permissionType: AclPermissionTypes.ALLOW,
    name: operation,
  }));
}

let broker: KafkaBroker;
beforeAll(async () => {
  broker = await startKafka({
    settings: {
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      // Who comes without a name: the broker itself, and this test.
      'super.users': 'User:ANONYMOUS',
    },
  });
});
afterAll(() => broker.kill());

/** The broker that checks rights, and configs for its account. */
async function aDeployment() {
  const admin = new Kafka({
    brokers: [broker.addresses.plain],
    logLevel: logLevel.NOTHING,
  }).admin();
  await admin.connect();
  afterThisTest(() => admin.disconnect());
  const { sandbox, upstreams, env } = await anEdge(20);
  const { caFile } = await makeCa();
  const dir = tempDir();
  const config = (prefix: string, password: string = kafkaAccount.password, shards = 1) => {
    const file = join(dir, `${prefix}.yaml`);
    writeFileSync(
      file,
      `state:
  dir: ${dir}/${prefix}
  kafka:
    brokers: ["${broker.addresses.protected?.saslTls}"]
    prefix: ${prefix}
    shards: ${shards}
    session_timeout: 6s
    sasl: { mechanism: scram-sha-256, username: ${kafkaAccount.username}, password: ${password} }
    tls: { ca_file: ${caFile} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, every: 1s }
sinks:
  disk: { type: file, path: '${dir}/${prefix}${shards === 1 ? '' : '-{partition}'}.ndjson', format: json }
`,
    );
    return file;
  };
  const check = async (file: string) => await runHere(['check', '-c', file, '--connect'], env);
  /** The first check that ends with this code: a broker answers a change of rights before it goes by it. */
  const ends = async (file: string, code: number, what: string) =>
    await waitUntil(
      async () => {
        const checked = await check(file);
        return checked.exitCode === code && checked;
      },
      { what },
    );
  const run = async (file: string) =>
    await runHere(['run', '-c', file, '--once', '--timeout', '60s', '--log-level', 'error'], env);

  const grant = async (some: ReturnType<typeof entriesOf>) => {
    await admin.createAcls({ acl: some.map(({ name, ...entry }) => entry) });
  };
  return { admin, grant, sandbox, env, dir, config, check, ends, run };
}

test('the rights that are printed are enough, and each one that lacks is named', {
  tags: ['long'],
}, async () => {
  const { admin, grant, sandbox, env, dir, config, check, ends, run } = await aDeployment();
  const file = config('acls');
  const bare = await check(file);
  expect(bare.exitCode, bare.stdout).toBe(3);
  expect(bare.stdout).toContain(
    'lacks Read, Write, Delete, DescribeConfigs, Create on the topic acls.pages',
  );

  const printed = await runHere(['cluster', 'acls', '-c', file], env);
  expect(printed.exitCode, printed.stderr).toBe(0);
  const entries = printed.stdout.trim().split('\n').flatMap(entriesOf);
  await grant(entries);
  const before = await ends(file, 0, 'the rights to hold');
  expect(before.stdout).toContain('topic acls.pages: not there; it is made at the first start');
  const ran = await run(file);
  expect(ran.exitCode, ran.stderr).toBe(0);
  const after = await check(file);
  expect(after.exitCode, after.stdout).toBe(0);
  expect(after.stdout).toContain('topic acls.pages: 1 partition, each on 1 broker');

  for (const entry of entries.filter(({ name }) => name !== 'Create')) {
    const { name, ...filter } = entry;
    await admin.deleteAcls({ filters: [filter] });
    const what = `${name} on ${entry.resourceName}`;
    const lacking = await ends(file, 3, what);
    expect(lacking.stdout, what).toMatch(new RegExp(`lacks [^\n]*\\b${name}\\b[^\n]* on the`));
    expect(lacking.stdout, what).toContain(entry.resourceName);
    // Something that it would write.
    sandbox.control.grow('/v1/audit/events', 10);
    const refused = await run(file);
    // Without these rights a run works: no page is due to be deleted, no command was sent, and no event was refused.
    const isSpare =
      name === 'Delete' || /^(Write on acls.control|(Read|Write) on acls.dead)$/.test(what);
    expect(refused.exitCode, `${what}: ${refused.stderr}`).toBe(isSpare ? 0 : 1);
    await grant([entry]);
    await ends(file, 0, `${what} again`);
  }
  const last = await run(file);
  expect(last.exitCode, last.stderr).toBe(0);
  const lines = readFileSync(join(dir, 'acls.ndjson'), 'utf8').trim().split('\n');
  const uids = lines.map(
    (line) => (JSON.parse(line) as { metadata: { uid: string } }).metadata.uid,
  );
  const events = 20 + 10 * entries.filter(({ name }) => name !== 'Create').length;
  expect([new Set(uids).size, uids.length]).toEqual([events, events]);

  const wrong = await check(config('wrong', 'another'));
  expect(wrong.exitCode).toBe(3);
  expect(wrong.stdout).toContain('Check state.kafka.sasl');
  expect(wrong.stdout).not.toContain('another');
});

test('a state of older versions with several shards needs the right to read their groups', async () => {
  const { grant, env, config, ends } = await aDeployment();
  const shared = config('shared', kafkaAccount.password, 2);
  const acls = await runHere(['cluster', 'acls', '-c', shared], env);
  const own = acls.stdout.trim().split('\n').flatMap(entriesOf);
  await grant(own);
  await ends(shared, 0, 'rights on shared');
  // A process with workers.
  const runShared = async () =>
    await runSluice(['run', '-c', shared, '--once', '--timeout', '60s'], { env });
  const begun = await runShared();
  expect(begun.exitCode, begun.stderr).toBe(0);
  const producer = new Kafka({
    brokers: [broker.addresses.plain],
    logLevel: logLevel.NOTHING,
  }).producer();
  await producer.connect();
  const value = JSON.stringify({ count: 2 });
  await producer.send({
    topic: 'shared.control',
    messages: [{ key: '["shards","count"]', value }],
  });
  await producer.disconnect();
  const blind = await runShared();
  expect([blind.exitCode, blind.stderr]).toEqual([1, expect.stringContaining('sink_refused')]);
  expect(blind.stderr).toMatch(/lacks Read on the group shared\.owners\.[01]/);
  const [group] = own.filter(({ resourceType }) => resourceType === resources.group);
  if (group === undefined) throw new Error('a right to a group is printed');
  await grant([{ ...group, resourcePatternType: ResourcePatternTypes.PREFIXED }]);
  await waitUntil(async () => (await runShared()).exitCode === 0, { what: 'a run with the right' });
});
