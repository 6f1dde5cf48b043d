// Settings of a connection to Kafka. The Kafka sink and `state.kafka` share them.

import { z } from 'zod';
import { hostPortSetting, secret, tls } from '../contracts/config.ts';

const address = hostPortSetting('kafka-1.example:9092');

/** Mechanisms with a user name and a password. */
export const passwordMechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;
const ofSinks = new Set(['oauthbearer', 'aws_msk_iam']);

/** The keys `brokers`, `sasl` and `tls`. `sasl` is that of `state.kafka`: the sink has more mechanisms. */
export const connectionFields = {
  brokers: z.array(address).min(1).describe('brokers to find the cluster by, each host:port'),
  sasl: z
    .strictObject({
      mechanism: z
        .enum(passwordMechanisms, {
          error: ({ input }) =>
            ofSinks.has(String(input))
              ? `${input} works in sinks only; use scram-sha-512, or a client certificate: tls with cert_file and key_file`
              : undefined,
        })
        .describe('SASL mechanism'),
      username: z.string().min(1).describe('name of the account'),
      password: secret().describe('password of the account'),
    })
    .optional()
    .describe('authentication'),
  tls: tls().describe('TLS to the brokers; {} trusts the system’s authorities'),
};
