// The topics of a state in Kafka: created if missing, checked if they exist. Invariants: no page is deleted because of its
// age; of the state, compaction deletes only replaced records.

import { ConfigResourceTypes, createTopicsV7, describeConfigsV4 } from '@platformatic/kafka';
import { type Clock, ExportError } from '../../contracts/index.ts';
import { kafkaFailureOf } from '../../kafka/log-client.ts';
import { clusterError } from '../failure.ts';
import { LogClient } from './client.ts';
import { type StateLogSettings, shardNames } from './settings.ts';

/** The settings of a topic that sluice needs, by Kafka's names. */
type TopicSettings = Readonly<Record<string, string>>;

/** By the name after the prefix. A wrong value loses undelivered events. */
const topics: Readonly<Record<string, TopicSettings>> = {
  // Without records: its partitions are the shards, for inspection with Kafka's own tools.
  shards: { 'cleanup.policy': 'delete' },
  pages: { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' },
  state: { 'cleanup.policy': 'compact' },
  dead: { 'cleanup.policy': 'compact' },
  control: { 'cleanup.policy': 'compact' },
};
/** Also set on a new topic; operators may change them. */
const usual: TopicSettings = {
  // By the brokers' clock: brokers would refuse all records of a machine whose clock is an hour ahead.
  'message.timestamp.type': 'LogAppendTime',
};
const compacted: TopicSettings = { 'segment.ms': '3600000', 'min.cleanable.dirty.ratio': '0.1' };
const tuning: Readonly<Record<string, TopicSettings>> = { state: compacted, dead: compacted };
/** In the protocol: the default of the brokers. */
const replicationOfBrokers = -1;
const createMsMax = 30_000;
const already = 'TOPIC_ALREADY_EXISTS';

type Size = Omit<StateLogSettings, 'brokers'>;

/** Number of partitions of a topic: one per shard; of the control topic one. */
export function partitionsOf(topic: string, { prefix, shards = 1 }: Size): number {
  return topic === `${prefix}.control` ? 1 : shards;
}

/** The topics' names. */
export function topicsOf({ prefix }: Pick<Size, 'prefix'>): readonly string[] {
  return Object.keys(topics).map((name) => `${prefix}.${name}`);
}

/** The request that creates a topic. */
export function newTopic(topic: string, size: Size): createTopicsV7.CreateTopicsRequestTopic {
  const { prefix, replicationFactor = replicationOfBrokers } = size;
  const name = topic.slice(prefix.length + 1);
  const numPartitions = partitionsOf(topic, size);
  const settings = Object.entries({ ...usual, ...topics[name], ...tuning[name] });
  return {
    ...{ name: topic, numPartitions, replicationFactor, assignments: [] },
    configs: settings.map(([key, value]) => ({ name: key, value })),
  };
}

/** Why a topic with these settings cannot be used; null: it can. */
export function misfitOf(
  topic: string,
  { prefix }: Pick<Size, 'prefix'>,
  found: ReadonlyMap<string, string | null | undefined>,
): ExportError | null {
  const requested = topics[topic.slice(prefix.length + 1)] ?? {};
  const wrong = Object.entries(requested).filter(([name, value]) => found.get(name) !== value);
  if (wrong.length === 0) return null;
  const said = wrong.map(([name, value]) => `${name} is ${found.get(name)} and has to be ${value}`);
  return new ExportError('sink_refused', `the topic ${topic}: ${said.join('; ')}`, {
    next: `Set it with kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${wrong.map(([name, value]) => `${name}=${value}`).join(',')}, then start again. Nothing was written.`,
  });
}

/** Why a topic with so many partitions cannot be used; null: it can. */
export function tooFew(topic: string, size: Size, partitions: number): ExportError | null {
  const requested = partitionsOf(topic, size);
  if (partitions >= requested) return null;
  const what = `the topic ${topic} has ${partitions} partitions, and state.kafka.shards needs ${requested}`;
  return new ExportError('sink_refused', what, {
    next: 'Set state.kafka.shards as it was when the topic was made, or give state.kafka.prefix another name and begin a new state there. Nothing was written.',
  });
}

/**
 * Creates missing topics. Throws `sink_refused` if one has wrong settings. A takeover does this for each shard, so it needs two
 * requests if all topics exist.
 */
export async function ensureTopics(client: LogClient, settings: Size): Promise<void> {
  const names = topicsOf(settings);
  const missing = await client.missing(names);
  await look(
    client,
    names.filter((topic) => !missing.includes(topic)),
    settings,
  );
  for (const topic of missing) await make(client, topic, settings);
}

async function make(client: LogClient, topic: string, settings: Size): Promise<void> {
  await client.anywhere(`making the topic ${topic}`, async (connection) => {
    const asked = [newTopic(topic, settings)];
    await createTopicsV7.api.async(connection, asked, createMsMax, false).catch((error) => {
      // Another process may have created it first; a repeated request would not change that.
      if (!kafkaFailureOf(error).message.includes(already)) throw error;
    });
  });
  await client.appearance(topic);
}

async function look(client: LogClient, names: readonly string[], settings: Size): Promise<void> {
  if (names.length === 0) return;
  const configurationKeys = Object.values(topics).flatMap((requested) => Object.keys(requested));
  const asked = names.map((resourceName) => ({
    ...{ resourceType: ConfigResourceTypes.TOPIC, resourceName, configurationKeys },
  }));
  const doing = `looking at the topics ${names.join(', ')}`;
  const { results } = await client.anywhere(doing, (connection) =>
    describeConfigsV4.api.async(connection, asked, false, false),
  );
  for (const topic of names) {
    const configs = results.find(({ resourceName }) => resourceName === topic)?.configs;
    const found = new Map(configs?.map(({ name, value }) => [name, value]));
    const partitions = await client.partitionsOf(topic);
    const misfit = misfitOf(topic, settings, found) ?? tooFew(topic, settings, partitions);
    if (misfit !== null) throw misfit;
  }
}

/** The shards that have records, or had. Throws `sink_unreachable` or `sink_refused`. */
export async function usedShards(
  settings: StateLogSettings,
  clock: Clock,
): Promise<readonly number[]> {
  using client = new LogClient(settings, clock);
  try {
    if (!(await client.has(shardNames(settings).state.topic))) return [];
    const shards = Array.from({ length: settings.shards ?? 1 }, (_, shard) => shard);
    const ends = await Promise.all(
      shards.map((shard) => client.end(shardNames({ ...settings, shard }).state)),
    );
    return shards.filter((shard) => (ends[shard] ?? 0n) > 0n);
  } catch (error) {
    throw clusterError(error, 'looking for shards in use');
  }
}
