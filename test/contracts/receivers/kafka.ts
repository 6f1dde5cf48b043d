// A real Kafka broker as the receiver of the kafka sink, read back with committed records only. It is made shaky from
// within the client, at the requests it sends: a broker answers each client at the address it advertises, so nothing can
// be put in between.

import { createServer } from 'node:net';
import {
  aTopic,
  connectionClosed,
  type Driver,
  instead,
  type KafkaRequest,
} from '../../connectors/sinks/kafka-engine.ts';
import { consumeAll, kafkaBrokers } from '../../support/kafka.ts';
import { afterThisTest, freePort } from '../../support/temp.ts';
import type { Mood, Receiver, ReceiverKind } from './receiver.ts';

/** The receiver of the kafka sink over one of its clients, with and without transactions. */
export function kafkaKind(driver: Driver, exactlyOnce: boolean): ReceiverKind {
  return {
    type: 'kafka',
    name: exactlyOnce ? `kafka over ${driver} (exactly once)` : `kafka over ${driver}`,
    unable: {},
    async start(mood, random): Promise<Receiver> {
      let failed = 0;
      const fail = () => {
        failed += 1;
      };
      if (mood === 'shaky' || mood === 'mixed') {
        const lose = (request: KafkaRequest) => loseSome({ request, driver, random, fail });
        lose('produce');
        if (exactlyOnce) lose('endTxn');
      }
      const topic = await aTopic('contract');
      const config = {
        driver,
        brokers: await brokersFor(mood),
        topic,
        exactly_once: exactlyOnce,
        timeout: mood === 'mute' ? '1s' : '10s',
        max_message: '16KiB',
      };
      const wishes = { spoolId: topic.slice(-36) };
      const arrived = async () => (await consumeAll(topic)).map(({ headers }) => headers.uid ?? '');
      return { config, wishes, arrived, failures: () => failed };
    },
  };
}

function loseSome(how: {
  readonly request: KafkaRequest;
  readonly driver: Driver;
  readonly random: () => number;
  readonly fail: () => void;
}): void {
  const { request, driver, random, fail } = how;
  const take = async (send: () => Promise<unknown>) => {
    if (random() < 0.7) return await send();
    fail();
    if (random() < 0.5) await send(); // it arrives, and yet the answer is lost
    throw connectionClosed(driver);
  };
  instead(request, take, driver);
}

async function brokersFor(mood: Mood): Promise<readonly string[]> {
  if (mood === 'away') return [`127.0.0.1:${await freePort()}`];
  if (mood === 'mute') return [`127.0.0.1:${await silentPort()}`];
  return await kafkaBrokers();
}

async function silentPort(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined); // the sink gives up in the middle, which is what is tried here
    socket.resume();
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  afterThisTest(() => server.close());
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('a silent server has no port');
  return address.port;
}
