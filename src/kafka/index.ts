// Entry point: a producer and a reader of one topic, over kafkajs or @platformatic/kafka. Importing this file loads neither
// client, so that programs without Kafka start quickly. The state in Kafka uses its client through `log-client.ts`.

import type { KafkaDriver, KafkaOptions, TopicReader } from './port.ts';

export { KafkaFailure, missingIssuerOf } from './failure.ts';
export {
  type CommittedPosition,
  type KafkaDriver,
  type KafkaOptions,
  type KafkaPassword,
  type KafkaProducer,
  KafkaRecord,
  type KafkaSasl,
  type KafkaToken,
  type KafkaTransactions,
  type Ranges,
  type TopicReader,
  type WrittenOffsets,
} from './port.ts';
export { batchHeadBytes, recordBytes } from './record-batch.ts';
export { connectionFields, passwordMechanisms } from './settings.ts';

/** Names of the clients, as in the setting `driver`. */
export type DriverName = 'kafkajs' | 'platformatic';

/** Loads a client. */
export async function loadDriver(name: DriverName): Promise<KafkaDriver> {
  switch (name) {
    case 'kafkajs':
      return (await import('./kafkajs.ts')).kafkajsDriver;
    case 'platformatic':
      return (await import('./platformatic.ts')).platformaticDriver;
  }
}

/** Loads the reader of a topic, which serves both clients. It keeps the first `digits` hex digits of each uid. */
export async function loadReader(options: KafkaOptions, digits: number): Promise<TopicReader> {
  return (await import('./kafkajs.ts')).kafkajsReader(options, digits);
}

/** Creates missing topics with the brokers' partitions and replicas; returns those it created. Throws a KafkaFailure. */
export async function createTopics(
  options: KafkaOptions,
  topics: readonly string[],
): Promise<readonly string[]> {
  return await (await import('./kafkajs.ts')).makeTopics(options, topics);
}
