// A real Kafka broker as the receiver of the kafka sink, read back with committed records only. It is made shaky from
// within kafkajs, at the requests it sends: a broker answers each client at the address it advertises, so nothing can
// be put in between.

import { createServer } from 'node:net';
import { aTopic, connectionClosed, instead } from '../../connectors/sinks/kafka-engine.ts';
import { consumeAll, kafkaBrokers } from '../../support/kafka.ts';
import { afterThisTest, freePort } from '../../support/temp.ts';
import type { Mood, Receiver, ReceiverKind } from './receiver.ts';

/** The receiver of the kafka sink, with and without transactions. */
export function kafkaKind(exactlyOnce: boolean): ReceiverKind {
  return {
    type: 'kafka',
    name: exactlyOnce ? 'kafka (exactly once)' : 'kafka',
    unable: {},
    async start(mood, random): Promise<Receiver> {
      let failed = 0;
      const fail = () => {
        failed += 1;
      };
      if (mood === 'shaky' || mood === 'mixed') {
        loseSome('produce', random, fail);
        if (exactlyOnce) loseSome('endTxn', random, fail);
      }
      const topic = await aTopic('contract');
      const config = {
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

function loseSome(request: 'produce' | 'endTxn', random: () => number, fail: () => void): void {
  instead(request, async (send) => {
    if (random() < 0.7) return await send();
    fail();
    if (random() < 0.5) await send(); // it arrives, and yet the answer is lost
    throw connectionClosed();
  });
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
