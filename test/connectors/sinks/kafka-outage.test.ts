// The Kafka sink while Kafka is away, silent, or short of a topic or a right: every failure is an answer in bounded
// time, nothing is lost or repeated that must not be, and nothing is left hanging. Brokers of its own, since they are
// stopped and killed.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { consumeAll, createTopic, kafkaAccount, startKafka } from '../../support/kafka.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { afterThisTest, freePort } from '../../support/temp.ts';
import { batchOf, committedOf, deliver, goOn } from './kafka-engine.ts';

const uids = (events: readonly { readonly uid: string }[]) => events.map(({ uid }) => uid).sort();

async function uidsIn(topic: string, brokers: readonly string[]) {
  const records = await consumeAll(topic, { brokers });
  return records.map(({ headers }) => headers.uid).sort();
}

/** A server that takes connections and never says a word. */
async function silentServer(host = '127.0.0.1'): Promise<{ server: Server; address: string }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.listen(0, host);
  await once(server, 'listening');
  afterThisTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new Error('a server without a port');
  return {
    server,
    address: host.includes(':') ? `[${host}]:${bound.port}` : `${host}:${bound.port}`,
  };
}

describe('kafkaSink while Kafka is away', () => {
  test.each([{ exactly_once: true }, { exactly_once: false }])(
    'a broker that stops in order and one that is killed lose nothing (%j)',
    async ({ exactly_once }) => {
      const broker = await startKafka();
      const brokers = [broker.addresses.plain];
      await createTopic(brokers, 'events', { partitions: 3 });
      const config = { brokers, topic: 'events', key: 'uid', exactly_once, timeout: '5s' };
      const opened = await openSink(kafkaSink, config);
      const batches = Array.from({ length: 60 }, (_, i) => someEvents(50, i * 50));
      const retries: string[] = [];
      let sent = 0;
      const sending = (async () => {
        for (const batch of batches) {
          const { troubles } = await deliver(opened, batch);
          retries.push(...troubles.map(({ outcome }) => outcome));
          sent += 1;
          await delay(5);
        }
      })();
      const progress = async (count: number) => {
        while (sent < count) await Promise.race([delay(10), sending]);
      };

      await progress(5);
      await broker.stop();
      await broker.start();
      await progress(30);
      await broker.kill();
      await broker.start();
      await sending;

      expect(new Set(retries)).toEqual(new Set(['retry']));
      const all = uids(batches.flat());
      const seen = await uidsIn('events', brokers);
      expect(exactly_once ? seen : [...new Set(seen)]).toEqual(all);
      if (exactly_once) expect(await committedOf(opened)).toBe(3000);
    },
    90_000,
  );

  test('opens while nobody listens, and answers retry', async () => {
    const brokers = [`127.0.0.1:${await freePort()}`];
    const opened = await openSink(kafkaSink, { brokers, topic: 'events', exactly_once: true });

    const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);
    const asked = opened.sink.committed?.(goOn);

    await expect(asked).rejects.toMatchObject({ code: 'sink_unreachable' });
    expect(answer).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_unreachable', message: expect.stringContaining('ECONNREFUSED') },
    });
  });

  test('a broker that never answers is a retry within timeout', async () => {
    const { address } = await silentServer();
    const opened = await openSink(kafkaSink, {
      brokers: [address],
      topic: 'events',
      timeout: '300ms',
    });

    const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  });

  test('send rejects at once when aborted, and close does not wait for the dead', async () => {
    const { server, address } = await silentServer();
    const opened = await openSink(kafkaSink, {
      brokers: [address],
      topic: 'events',
      timeout: '10m',
    });
    const giveUp = new AbortController();
    const connected = once(server, 'connection');

    const sending = opened.sink.send(batchOf(opened, someEvents(1)), giveUp.signal);
    await connected;
    giveUp.abort(new Error('shutting down'));

    await expect(sending).rejects.toThrow('shutting down');
    await expect(opened.sink.close()).resolves.toBeUndefined();
  });

  test('finds a broker at an IPv6 address', async () => {
    const { server, address } = await silentServer('::1');
    const opened = await openSink(kafkaSink, {
      brokers: [address],
      topic: 'events',
      timeout: '10m',
    });
    const giveUp = new AbortController();

    const sending = opened.sink.send(batchOf(opened, someEvents(1)), giveUp.signal);
    sending.catch(() => {});
    const [socket] = await once(server, 'connection');

    expect(socket.remoteFamily).toBe('IPv6');
    giveUp.abort();
  });
});

describe('kafkaSink and a topic or a right that is missing', () => {
  test('waits for a topic that brokers do not create, and names it', async () => {
    const broker = await startKafka({ settings: { 'auto.create.topics.enable': 'false' } });
    const brokers = [broker.addresses.plain];
    const opened = await openSink(kafkaSink, { brokers, topic: 'later', exactly_once: true });
    const committed = await committedOf(opened);
    const answer = await opened.sink.send(batchOf(opened, someEvents(10)), goOn);
    await createTopic(brokers, 'later');

    await deliver(opened, someEvents(10));

    expect(committed).toBeNull();
    expect(answer).toMatchObject({
      outcome: 'retry',
      cause: { code: 'sink_refused', next: expect.stringContaining('Create the topic later') },
    });
    expect(await uidsIn('later', brokers)).toEqual(uids(someEvents(10)));
  });

  test.each([{ exactly_once: false }, { exactly_once: true }])(
    'an account without rights stops the sink, which says what to check (%j)',
    async ({ exactly_once }) => {
      const broker = await startKafka({
        settings: {
          'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
          'super.users': 'User:ANONYMOUS',
        },
      });
      await createTopic([broker.addresses.plain], 'guarded');
      const sasl = { mechanism: 'scram-sha-256', ...kafkaAccount };
      const config = {
        brokers: [broker.addresses.protected?.sasl],
        topic: 'guarded',
        sasl,
        exactly_once,
      };
      const opened = await openSink(kafkaSink, config);

      const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

      // kafkajs swallows the broker's answer where it looks for the coordinator of a transactional id.
      expect(answer).toMatchObject(
        exactly_once
          ? { outcome: 'retry', cause: { next: expect.stringContaining('transactional id') } }
          : {
              outcome: 'refused',
              scope: 'sink',
              cause: { next: expect.stringContaining('rights') },
            },
      );
    },
  );
});
