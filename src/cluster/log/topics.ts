// The topics of a state in Kafka: made where they are missing, and looked at where they are there.
// What must stay true: no page ever goes by its age, and of the state only what was written anew.

import { ConfigResourceTypes, createTopicsV7, describeConfigsV4 } from '@platformatic/kafka';
import { KafkaFailure } from '../../../connectors/sinks/kafka/failure.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { LogClient } from './client.ts';
import type { LogSettings } from './settings.ts';

/** A topic's settings that matter to us, by Kafka's names. */
type TopicSettings = Readonly<Record<string, string>>;

/** By what stands behind the prefix. Of these, what is wrong loses what a sink has not had. */
const topics: Readonly<Record<string, TopicSettings>> = {
  pages: { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'retention.bytes': '-1' },
  state: { 'cleanup.policy': 'compact' },
  control: { 'cleanup.policy': 'compact' },
};
/** Given to a new topic as well, and anyone's to change. */
const usual: TopicSettings = {
  // By the brokers' own clock: one of ours that is an hour ahead would have all that it writes refused.
  'message.timestamp.type': 'LogAppendTime',
};
const tuning: Readonly<Record<string, TopicSettings>> = {
  state: { 'segment.ms': '3600000', 'min.cleanable.dirty.ratio': '0.1' },
};
const partitions = 1;
/** In the protocol: as the brokers are set. */
const replicationOfBrokers = -1;
const createMsMax = 30_000;
const already = 'TOPIC_ALREADY_EXISTS';

type Size = Omit<LogSettings, 'brokers'>;

/** The topics' names. */
export function topicsOf(prefix: string): readonly string[] {
  return Object.keys(topics).map((name) => `${prefix}.${name}`);
}

/** What a topic is made with. */
export function newTopic(
  topic: string,
  { prefix, replicationFactor = replicationOfBrokers }: Size,
): createTopicsV7.CreateTopicsRequestTopic {
  const name = topic.slice(prefix.length + 1);
  const settings = Object.entries({ ...usual, ...topics[name], ...tuning[name] });
  return {
    ...{ name: topic, numPartitions: partitions, replicationFactor, assignments: [] },
    configs: settings.map(([key, value]) => ({ name: key, value })),
  };
}

/** Why a topic with these settings cannot be used; null: it can. */
export function misfitOf(
  topic: string,
  { prefix }: Pick<Size, 'prefix'>,
  found: ReadonlyMap<string, string | null | undefined>,
): ExportError | null {
  const wanted = topics[topic.slice(prefix.length + 1)] ?? {};
  const wrong = Object.entries(wanted).filter(([name, value]) => found.get(name) !== value);
  if (wrong.length === 0) return null;
  const said = wrong.map(([name, value]) => `${name} is ${found.get(name)} and has to be ${value}`);
  return new ExportError('sink_refused', `the topic ${topic}: ${said.join('; ')}`, {
    next: `Set it with kafka-configs.sh --alter --entity-type topics --entity-name ${topic} --add-config ${wrong.map(([name, value]) => `${name}=${value}`).join(',')}, then start again. Nothing was written.`,
  });
}

/** Makes the topics that are missing. Throws `sink_refused` where one is not as it has to be. */
export async function ensureTopics(client: LogClient, settings: Size): Promise<void> {
  for (const topic of topicsOf(settings.prefix)) {
    if (await client.has(topic)) await look(client, topic, settings);
    else await make(client, topic, settings);
  }
}

async function make(client: LogClient, topic: string, settings: Size): Promise<void> {
  try {
    await client.anywhere(`making the topic ${topic}`, async (connection) => {
      const asked = [newTopic(topic, settings)];
      await createTopicsV7.api.async(connection, asked, createMsMax, false);
    });
  } catch (error) {
    // Another process may have been quicker.
    if (!(error instanceof KafkaFailure && error.message.includes(already))) throw error;
  }
  await client.appearance(topic);
}

async function look(client: LogClient, topic: string, settings: Size): Promise<void> {
  const asked = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic };
  const configurationKeys = Object.values(topics).flatMap((wanted) => Object.keys(wanted));
  const { results } = await client.anywhere(`looking at the topic ${topic}`, (connection) =>
    describeConfigsV4.api.async(connection, [{ ...asked, configurationKeys }], false, false),
  );
  const found = new Map(results[0]?.configs.map(({ name, value }) => [name, value]));
  const misfit = misfitOf(topic, settings, found);
  if (misfit !== null) throw misfit;
}
