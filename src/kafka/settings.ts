// Settings of a connection to Kafka. The Kafka sink and `state.kafka` share them.

import { z } from 'zod';
import { hostPortSetting, tls } from '../contracts/config.ts';

const address = hostPortSetting('kafka-1.example:9092');

/** Mechanisms with a user name and a password. */
export const passwordMechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'] as const;

/** The keys `brokers` and `tls`. */
export const connectionFields = {
  brokers: z.array(address).min(1).describe('brokers to find the cluster by, each host:port'),
  tls: tls().describe('TLS to the brokers; {} trusts the system’s authorities'),
};
