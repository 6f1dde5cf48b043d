// Checks whether Kafka can store a state as configured: brokers, topics, rights, transactions and the group of owners.
// Invariant: nothing is changed, and running processes are not disturbed.

import { type HostPort, hostPortText } from '../contracts/config.ts';
import { type Clock, ExportError } from '../contracts/index.ts';
import { type KafkaFailure, missingIssuerOf } from '../kafka/index.ts';
import { kafkaFailureOf } from '../kafka/log-client.ts';
import { clusterError } from './failure.ts';
import { committedRecords, LogClient } from './log/client.ts';
import { foreignTopic, isOurs } from './log/rows.ts';
import { ownersOf, type StateLogSettings } from './log/settings.ts';
import { misfitOf, newTopic, partitionsOf, tooFew, topicsOf } from './log/topics.ts';
import { requestBytesMax } from './log/writer.ts';
import { type DescribedTopic, OwnerQuery } from './queries.ts';
import { type AclOperation, notAllowed, type Right, rightsOf } from './rights.ts';

/** One finding. */
export interface ClusterFinding {
  readonly subject: string;
  /** Why a run would fail; null: it would not. */
  readonly cause: ExportError | null;
  /** A run would work; the finding is only a note. */
  readonly isNote?: true;
}

// Protocol error codes (https://kafka.apache.org/protocol.html#protocol_error_codes).
const unknownTopic = 3;
const topicDenied = 29;
const settingNames = [
  ...['cleanup.policy', 'retention.ms', 'retention.bytes', 'max.message.bytes'],
  ...['min.insync.replicas', 'unclean.leader.election.enable'],
] as const;
const firstRecordsMsMax = 10_000;
/** Added to the records of a batch: its header, and the overhead of each record. */
const batchBytesBeside = 16 * 1024;

/** The findings, one after the other; ends early if the rest cannot be checked. */
export async function* inspectCluster(
  settings: StateLogSettings,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<ClusterFinding> {
  using asking = new OwnerQuery(settings, clock);
  signal.addEventListener('abort', () => asking.close(), { once: true });
  const failed = yield* brokerFindings(asking, settings);
  if (failed) return;
  const topics = topicsOf(settings);
  const found = await asking.cluster(topics);
  for (const topic of topics) {
    const described = found.topics.find(({ name }) => name === topic);
    const mayRead = yield* topicFindings(asking, { settings, topic, described });
    if (mayRead) yield* foreignFindings(settings, topic, clock);
  }
  yield await transactionFinding(asking, settings);
  yield await groupFinding(asking, settings);
}

/** Returns whether no broker can be reached. */
async function* brokerFindings(
  asking: OwnerQuery,
  { brokers }: StateLogSettings,
): AsyncGenerator<ClusterFinding, boolean> {
  const named = await reached(asking, brokers);
  const lost = named.filter(({ cause }) => cause !== null);
  if (lost.length === brokers.length) {
    const [{ broker, cause } = { broker: undefined, cause: null }] = lost;
    const subject = `broker ${broker === undefined ? '' : hostPortText(broker)}`;
    yield { subject, cause };
    return true;
  }
  const found = await asking.cluster([]);
  const others = found.brokers.filter(
    ({ host, port }) => !brokers.some((one) => one.host === host && one.port === port),
  );
  for (const { broker, cause } of lost) {
    yield {
      subject: `broker ${hostPortText(broker)}: ${cause?.message}; sluice uses the others`,
      ...{ cause: null, isNote: true },
    };
  }
  const far = (await reached(asking, others)).filter(({ cause }) => cause !== null);
  for (const { broker, cause } of far) {
    const subject = `broker ${hostPortText(broker)}, as the brokers name it (advertised.listeners)`;
    yield { subject, cause };
  }
  if (far.length === 0) {
    yield {
      subject: `${found.brokers.length} of ${found.brokers.length} brokers answer`,
      cause: null,
    };
  }
  return false;
}

async function reached(asking: OwnerQuery, brokers: readonly HostPort[]) {
  return await Promise.all(
    brokers.map(async (broker) => ({
      broker,
      cause: await asking.reach(broker).then(
        () => null,
        (error) => unreached(kafkaFailureOf(error), broker),
      ),
    })),
  );
}

function unreached(failure: KafkaFailure, broker: HostPort): ExportError {
  const { kind, message } = failure;
  const refuses = kind !== 'passing';
  const next = {
    denied: 'Check state.kafka.sasl: its mechanism and its credentials.',
    untrusted:
      missingIssuerOf(failure)?.next ??
      'Check state.kafka.tls: ca_file must hold the authority of the broker’s certificate; cert_file must hold the client certificate if the broker requires one.',
    other:
      'Look whether the address is right, a firewall lets it through, and whether that port speaks TLS (state.kafka.tls) or SASL (state.kafka.sasl).',
  }[kind === 'denied' || kind === 'untrusted' ? kind : 'other'];
  return new ExportError(
    refuses ? 'sink_refused' : 'sink_unreachable',
    `${hostPortText(broker)} ${refuses ? 'does not let us in' : 'does not answer'}: ${message}`,
    { next, cause: failure },
  );
}

interface Topic {
  readonly settings: StateLogSettings;
  readonly topic: string;
  readonly described: DescribedTopic | undefined;
}

/** Returns whether the topic can be read. */
async function* topicFindings(
  asking: OwnerQuery,
  of: Topic,
): AsyncGenerator<ClusterFinding, boolean> {
  const { settings, topic, described } = of;
  const subject = `topic ${topic}`;
  if (described === undefined || described.errorCode === unknownTopic) {
    yield await missingTopic(asking, of);
    return false;
  }
  const right = rightsOf(settings).find(({ name }) => name === topic);
  if (described.errorCode === topicDenied) {
    yield { subject, cause: lacking(right, right?.operations ?? []) };
    return false;
  }
  const requested = right?.operations.filter((operation) => operation !== 'Create') ?? [];
  const lacks = notAllowed(described.topicAuthorizedOperations, requested);
  if (lacks.length > 0) yield { subject: `rights on ${topic}`, cause: lacking(right, lacks) };
  const mayRead = !lacks.includes('Read');
  if (lacks.includes('DescribeConfigs')) return mayRead;
  const configs = await asking.configs(topic, settingNames);
  const cause =
    misfitOf(topic, settings, configs) ??
    tooFew(topic, settings, described.partitions.length) ??
    unfit(topic, described, configs);
  const brokers = replicasOf(described);
  yield { subject: `${subject}: ${partsText(described)}`, cause };
  if (cause !== null) return false;
  const isEmpty = topic === `${settings.prefix}.shards`;
  if (isEmpty || Number(configs.get('min.insync.replicas')) > 1) return mayRead;
  const next = `kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config min.insync.replicas=2`;
  const repair = brokers > 2 ? next : 'have three brokers hold it (state.kafka.replication_factor)';
  yield {
    subject: `${subject}: data on a single broker counts as stored, and is lost with its disk; ${repair}`,
    ...{ cause: null, isNote: true },
  };
  return mayRead;
}

/** Whether the first records of a topic are sluice's. The control topic is skipped: other programs may write there. */
async function* foreignFindings(
  settings: StateLogSettings,
  topic: string,
  clock: Clock,
): AsyncGenerator<ClusterFinding> {
  if (topic === `${settings.prefix}.control`) return;
  using client = new LogClient(settings, clock);
  try {
    const reading = { clock, stalledMs: firstRecordsMsMax };
    for await (const records of committedRecords(client, { topic, partition: 0 }, reading)) {
      if (!records.some(isOurs)) yield { subject: `topic ${topic}`, cause: foreignTopic(topic) };
      return;
    }
  } catch (error) {
    yield { subject: `topic ${topic}`, cause: clusterError(error, `reading ${topic}`) };
  }
}

async function missingTopic(
  asking: OwnerQuery,
  { settings, topic }: Topic,
): Promise<ClusterFinding> {
  const subject = `topic ${topic}: not there; it is made at the first start, and rights to it show then`;
  try {
    await asking.couldMake(newTopic(topic, settings));
    return { subject, cause: null };
  } catch (error) {
    const failure = kafkaFailureOf(error, `the topic ${topic} is not there and cannot be made`);
    const set = newTopic(topic, settings).configs.map((one) => `--config ${one.name}=${one.value}`);
    const next = `Allow Create on it (sluice cluster acls prints all rights), or have it made: kafka-topics.sh --create --topic ${topic} --partitions ${partitionsOf(topic, settings)} ${set.join(' ')}`;
    return { subject: `topic ${topic}`, cause: refusal(failure, next) };
  }
}

const replicasOf = ({ partitions }: Pick<DescribedTopic, 'partitions'>) =>
  Math.min(...partitions.map(({ replicaNodes }) => replicaNodes.length));

function partsText(topic: DescribedTopic): string {
  const [parts, copies] = [topic.partitions.length, replicasOf(topic)];
  const of = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
  return `${of(parts, 'partition')}, each on ${of(copies, 'broker')}`;
}

/** A setting that makes writing impossible, or loses committed records. */
function unfit(
  topic: string,
  described: DescribedTopic,
  configs: ReadonlyMap<string, string | null | undefined>,
): ExportError | null {
  const { partitions } = described;
  const failed = (what: string, next: string) =>
    new ExportError('sink_refused', `the topic ${topic}: ${what}`, { next });
  const set = (name: string, value: string | number) =>
    `Set it with kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${name}=${value}.`;
  const bytes = Number(configs.get('max.message.bytes'));
  const bytesMin = requestBytesMax + batchBytesBeside;
  if (bytes < bytesMin) {
    const what = `max.message.bytes is ${bytes}, and a batch of pages has up to ${bytesMin}`;
    return failed(what, set('max.message.bytes', 1_048_588));
  }
  const headless = partitions.filter(({ leaderId }) => leaderId < 0);
  if (headless.length > 0) {
    const which = headless.map(({ partitionIndex }) => partitionIndex).join(', ');
    return failed(`no broker leads partition ${which}`, 'Start the brokers that hold it.');
  }
  const least = Number(configs.get('min.insync.replicas'));
  const few = partitions.find(({ isrNodes }) => isrNodes.length < least);
  if (few !== undefined) {
    const what = `${few.isrNodes.length} of ${few.replicaNodes.length} brokers have all of partition ${few.partitionIndex}, and min.insync.replicas requires ${least}: nothing can be written`;
    return failed(what, 'Start the brokers that are missing, or have more of them hold the topic.');
  }
  if (configs.get('unclean.leader.election.enable') === 'true' && replicasOf(described) > 1) {
    const what =
      'unclean.leader.election.enable is true: a broker without the newest records may become leader, and committed records are lost then';
    return failed(what, set('unclean.leader.election.enable', 'false'));
  }
  return null;
}

async function transactionFinding(
  asking: OwnerQuery,
  settings: StateLogSettings,
): Promise<ClusterFinding> {
  const right = rightsOf(settings).find(({ resource }) => resource === 'transactional-id');
  const id = `${right?.name}0`;
  const subject = `transactions as ${id}`;
  try {
    await asking.mayWriteUnder(id);
    return { subject, cause: null };
  } catch (error) {
    const failure = kafkaFailureOf(error, subject);
    if (failure.kind === 'denied')
      return { subject, cause: lacking(right, right?.operations ?? []) };
    const next =
      'The brokers have no coordinator for transactions: look at transaction.state.log.replication.factor and transaction.state.log.min.isr, which must not exceed the number of brokers.';
    return { subject, cause: refusal(failure, next) };
  }
}

async function groupFinding(
  asking: OwnerQuery,
  settings: StateLogSettings,
): Promise<ClusterFinding> {
  const right = rightsOf(settings).find(({ resource }) => resource === 'group');
  const owners = ownersOf(settings);
  const subject = `group ${owners}`;
  try {
    const group = await asking.group(owners);
    const lacks = notAllowed(group?.authorizedOperations ?? -1, right?.operations ?? []);
    if (lacks.length > 0) return { subject, cause: lacking(right, lacks) };
    const members = group?.members.length ?? 0;
    return {
      subject: `${subject}: ${members === 1 ? '1 process' : `${members} processes`}`,
      cause: null,
    };
  } catch (error) {
    const failure = kafkaFailureOf(error, subject);
    if (failure.kind === 'denied')
      return { subject, cause: lacking(right, right?.operations ?? []) };
    const next =
      'The brokers have no coordinator for groups: look at offsets.topic.replication.factor, which must not exceed the number of brokers.';
    return { subject, cause: refusal(failure, next) };
  }
}

function lacking(right: Right | undefined, operations: readonly AclOperation[]): ExportError {
  const what = `the account lacks ${operations.join(', ')} on the ${right?.resource.replace('-', ' ')} ${right?.name}${right?.pattern === 'prefixed' ? '…' : ''}`;
  return new ExportError('sink_refused', what, {
    next: 'Grant the missing ACLs: sluice cluster acls prints them as lines for kafka-acls.sh.',
  });
}

function refusal(failure: KafkaFailure, next: string): ExportError {
  const code = failure.answered ? 'sink_refused' : 'sink_unreachable';
  return new ExportError(code, failure.message, { next, cause: failure });
}
