// Settings of a connection to Kafka. The Kafka sink and `state.kafka` share them.

import { z } from 'zod';
import { hostPortSetting, secret, tls } from '../contracts/config.ts';

const address = hostPortSetting('kafka-1.example:9092');

/** Mechanisms that neither client of this version has, with what to use instead. */
const missingMechanisms: ReadonlyMap<string, string> = new Map([
  [
    'oauthbearer',
    'oauthbearer is not supported in this version; use scram-sha-512, or a client certificate: tls with cert_file and key_file',
  ],
  [
    'aws_msk_iam',
    'aws_msk_iam is not supported in this version; use scram-sha-512 (Amazon MSK takes it from Secrets Manager), or a client certificate: tls with cert_file and key_file',
  ],
]);

/** The keys `brokers`, `sasl` and `tls`. */
export const connectionFields = {
  brokers: z.array(address).min(1).describe('brokers to find the cluster by, each host:port'),
  sasl: z
    .strictObject({
      mechanism: z
        .enum(['plain', 'scram-sha-256', 'scram-sha-512'], {
          error: ({ input }) => missingMechanisms.get(String(input)),
        })
        .describe('SASL mechanism'),
      username: z.string().min(1).describe('name of the account'),
      password: secret().describe('password of the account'),
    })
    .optional()
    .describe('authentication'),
  tls: tls().describe('TLS to the brokers; {} trusts the system’s authorities'),
};
