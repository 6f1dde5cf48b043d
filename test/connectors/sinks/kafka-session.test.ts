// The Kafka sink on a real broker that ends each session after some seconds (KIP-368, connections.max.reauth.ms), with
// tokens that expire as soon. Many sessions end while it delivers, also within a transaction: each event is there once,
// and no attempt fails. A broker refuses requests between the two steps of an authentication with ILLEGAL_SASL_STATE.

import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import {
  consumeAll,
  createTopic,
  type KafkaAddresses,
  kafkaAccount,
  startKafka,
} from '../../support/kafka.ts';
import { tokenEndpoint } from '../../support/kafka-tokens.ts';
import { testSome } from '../../support/long.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { deliver, drivers } from './kafka-engine.ts';

const sessionMs = 5_000;
const sessions = 4;
let addresses: KafkaAddresses;

beforeAll(async () => {
  const settings = { 'connections.max.reauth.ms': String(sessionMs) };
  ({ addresses } = await startKafka({ settings }));
});

const identities = {
  token: async () => tokenEndpoint(await startHttpReceiver(), 8),
  password: async () => ({ mechanism: 'scram-sha-256', ...kafkaAccount }),
};

describe.each(drivers)('kafkaSink over %s', (driver) => {
  testSome(1, [
    ['token', true],
    ['token', false],
    ['password', true],
  ] as const)(
    'delivers while sessions end (%s, exactly_once: %s)',
    async (identity, exactly_once) => {
      const topic = `${driver}-${identity}-${exactly_once}`;
      await createTopic([addresses.plain], topic, { partitions: 3 });
      const sasl = await identities[identity]();
      const config = { driver, brokers: [addresses.protected?.sasl], topic, sasl, exactly_once };
      const opened = await openSink(kafkaSink, { ...config, key: 'uid' }, { spoolId: topic });
      const troubles: string[] = [];
      const end = performance.now() + sessions * sessionMs;
      let sent = 0;
      while (performance.now() < end) {
        const delivered = await deliver(opened, someEvents(20, sent));
        sent += 20;
        troubles.push(...delivered.troubles.map((one) => JSON.stringify(one)));
        await delay(20);
      }

      const records = await consumeAll(topic, { brokers: [addresses.plain] });

      const uids = someEvents(sent).map(({ uid }) => uid);
      expect(records.map(({ headers }) => headers.uid).sort()).toEqual(uids.sort());
      expect(troubles.join()).not.toContain('SASL');
      // One, if this machine stood still at the end of a session.
      expect(troubles.length).toBeLessThanOrEqual(1);
    },
  );
});
