// Settings of a connection to Kafka. The Kafka sink and `state.kafka` share them.

import { z } from 'zod';
import { hostPortSetting, secret, tls } from '../contracts/config.ts';

const address = hostPortSetting('kafka-1.example:9092');

/** The keys `brokers`, `sasl` and `tls`. */
export const connectionFields = {
  brokers: z.array(address).min(1).describe('brokers to find the cluster by, each host:port'),
  sasl: z
    .strictObject({
      mechanism: z.enum(['plain', 'scram-sha-256', 'scram-sha-512']).describe('SASL mechanism'),
      username: z.string().min(1).describe('name of the account'),
      password: secret().describe('password of the account'),
    })
    .optional()
    .describe('authentication'),
  tls: tls().describe('TLS to the brokers; {} trusts the system’s authorities'),
};
