// The config keys of a Kafka sink, and the client options made from them.

import { z } from 'zod';
import {
  compression,
  duration,
  parseHostPort,
  type Settings,
  size,
} from '../../../src/contracts/config.ts';
import type { Tools } from '../../../src/contracts/index.ts';
import {
  connectionFields,
  type KafkaOptions,
  type KafkaTransactions,
} from '../../../src/kafka/index.ts';
import { sasl, saslIdentity } from './identity.ts';

/** The sink's own keys. */
export const fields = {
  brokers: connectionFields.brokers,
  topic: z
    .string()
    .regex(
      /^(?!\.\.?$)(?:[A-Za-z0-9._-]|\{company\}|\{source\}){1,249}$/,
      'expected a topic name: letters, digits, ".", "_" and "-", with {company} and {source}',
    )
    .describe('topic to write to, with `{company}` and `{source}` (docs/destinations.md)'),
  exactly_once: z
    .boolean()
    .default(false)
    .describe('one transaction a batch, so that readers of committed records see each event once'),
  key: z
    .enum(['stream', 'uid', 'source', 'none'])
    .default('stream')
    .describe('the record key; records of one key keep their order'),
  compression: compression('none').describe('compression of record batches'),
  sasl: sasl(),
  tls: connectionFields.tls,
  client_id: z.string().min(1).default('sluice').describe('name that brokers log us under'),
  transactional_id: z
    .string()
    .min(1)
    .optional()
    .describe(
      'transactional id for exactly_once; default: derived from the state directory and the sink’s name',
    ),
  max_message: size()
    .prefault('1MiB')
    .describe(
      'largest request for a partition, before compression; as message.max.bytes of the brokers',
    ),
  timeout: duration().prefault('30s').describe('bound on one attempt to deliver a batch'),
  driver: z
    .enum(['kafkajs', 'platformatic'])
    .default('kafkajs')
    .describe('the Kafka client; platformatic needs longer to start, and names missing rights'),
};

/** The settings of one sink. */
export type KafkaSettings = Settings<typeof fields>;

/** What a producer does, and its transactions if it has some. */
export interface Purpose {
  /** Start of error messages of a token request, e.g. `sending to lake`. */
  readonly doing: string;
  readonly transactions?: KafkaTransactions | undefined;
}

/** The options of a driver's producer; a transactional one if transactions are given. */
export function optionsOf(
  settings: KafkaSettings,
  tools: Tools,
  { doing, transactions }: Purpose,
): KafkaOptions {
  const { sasl, timeout, tls } = settings;
  return {
    brokers: settings.brokers.map(parseHostPort).filter((address) => address !== null),
    topic: settings.topic,
    clientId: settings.client_id,
    compression: settings.compression,
    timeoutMs: timeout,
    sasl: sasl && saslIdentity(sasl, { tools, doing, timeout, tls }),
    tls,
    transactions,
    sendTurn: tools.sendTurn,
    log: tools.log,
  };
}
