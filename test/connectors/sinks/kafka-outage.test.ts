// The Kafka sink while Kafka is away, silent, or short of a topic or a right: every failure is an answer in bounded
// time, nothing is lost or repeated that must not be, and nothing is left hanging. Brokers of its own, since one is
// stopped and killed, and the other refuses what the shared one allows.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  AclOperationTypes,
  AclPermissionTypes,
  AclResourceTypes,
  Kafka,
  logLevel,
  ResourcePatternTypes,
} from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { loadReader } from '../../../src/kafka/index.ts';
import {
  consumeAll,
  createTopic,
  type KafkaBroker,
  kafkaAccount,
  startKafka,
} from '../../support/kafka.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { afterThisTest, freePort, waitUntil } from '../../support/temp.ts';
import { batchOf, committedOf, deliver, drivers, goOn } from './kafka-engine.ts';

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

const both = [true, false];
const variants = drivers.flatMap((driver) =>
  both.map((exactly_once) => ({ driver, exactly_once, topic: `${driver}-${exactly_once}` })),
);

describe('kafkaSink while Kafka is away', () => {
  // All variants at once on one broker: what takes the time is the broker's stopping and starting.
  test('a broker that stops in order and one that is killed lose nothing', {
    tags: ['long'],
  }, async () => {
    const broker = await startKafka();
    const brokers = [broker.addresses.plain];
    const batches = Array.from({ length: 60 }, (_, i) => someEvents(50, i * 50));
    const all = uids(batches.flat());
    const sinks = await Promise.all(
      variants.map(async ({ topic, ...variant }) => {
        await createTopic(brokers, topic, { partitions: 3 });
        const config = { ...variant, brokers, topic, key: 'uid', timeout: '5s' };
        const opened = await openSink(kafkaSink, config, { spoolId: topic });
        return { topic, ...variant, opened, sent: 0, isBusy: false };
      }),
    );
    // Kafka 4.3 can revert a transaction that it acknowledged as committed, and never return the group's position again, if the
    // only broker ends before it has applied the transaction. So it ends between two transactions (kafka-leaders.test.ts
    // has the kills within one, with three brokers).
    let isHeld = false;
    const between = async () => {
      isHeld = true;
      for (const sink of sinks.filter(({ exactly_once }) => exactly_once)) {
        const { topic } = sink;
        await waitUntil(() => !sink.isBusy, { what: `the present batch of ${topic}` });
        const isApplied = async () => (await uidsIn(topic, brokers)).length === sink.sent * 50;
        await waitUntil(isApplied, { what: `committed records of ${topic}` });
        await committedOf(sink.opened);
      }
    };
    const retries: string[] = [];
    const sending = Promise.all(
      sinks.map(async (sink) => {
        for (const batch of batches) {
          while (isHeld && sink.exactly_once) await delay(10);
          sink.isBusy = true;
          const { troubles } = await deliver(sink.opened, batch);
          retries.push(...troubles.map(({ outcome }) => outcome));
          sink.sent += 1;
          sink.isBusy = false;
          await delay(5);
        }
      }),
    );
    const progress = async (count: number) => {
      while (sinks.some(({ sent }) => sent < count)) await Promise.race([delay(10), sending]);
    };

    await progress(5);
    for (const end of [broker.stop, broker.kill]) {
      await between();
      await end.call(broker);
      isHeld = false;
      await broker.start();
      await progress(30);
    }
    await sending;

    expect(new Set(retries)).toEqual(new Set(['retry']));
    for (const { topic, exactly_once, opened } of sinks) {
      const seen = await uidsIn(topic, brokers);
      expect(exactly_once ? seen : [...new Set(seen)], topic).toEqual(all);
      if (exactly_once) expect(await committedOf(opened)).toBe(3000);
    }
  });

  test('opens while no broker listens, and returns retry', async () => {
    const brokers = [`127.0.0.1:${await freePort()}`];
    const open = (driver: string) =>
      openSink(kafkaSink, { driver, brokers, topic: 'events', exactly_once: true });

    await Promise.all(
      drivers.map(async (driver) => {
        const [asking, sending] = await Promise.all([open(driver), open(driver)]);
        const asked = asking.sink.committed?.(goOn);
        const answer = sending.sink.send(batchOf(sending, someEvents(1)), goOn);

        await expect(asked).rejects.toMatchObject({ code: 'sink_unreachable' });
        expect(await answer).toMatchObject({
          outcome: 'retry',
          cause: { code: 'sink_unreachable', message: expect.stringContaining('ECONNREFUSED') },
        });
      }),
    );
  });
});

describe.each(drivers)('kafkaSink over %s and a broker that says nothing', (driver) => {
  const open = (address: string, timeout: string) =>
    openSink(kafkaSink, { driver, brokers: [address], topic: 'events', timeout });

  test('is a retry within timeout', async () => {
    const { address } = await silentServer();
    const opened = await open(address, '300ms');

    const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

    expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
  });

  test('send rejects at once when aborted, and close does not wait for the dead', async () => {
    const { server, address } = await silentServer();
    const opened = await open(address, '10m');
    const giveUp = new AbortController();
    const connected = once(server, 'connection');

    const sending = opened.sink.send(batchOf(opened, someEvents(1)), giveUp.signal);
    const [socket] = await connected;
    const cut = once(socket, 'close');
    giveUp.abort(new Error('shutting down'));

    await expect(sending).rejects.toThrow('shutting down');
    await expect(opened.sink.close()).resolves.toBeUndefined();
    await cut;
  });

  test('reading a topic back ends at once when aborted', async () => {
    const { server, address } = await silentServer();
    const [host = '', port] = address.split(':');
    const { tools } = await open(address, '10m');
    const options = {
      ...{ brokers: [{ host, port: Number(port) }], clientId: 'sluice', topic: 'events' },
      ...({ compression: 'none', timeoutMs: 600_000, log: tools.log } as const),
    };
    const reader = await loadReader(options, 8);
    const giveUp = new AbortController();
    const connected = once(server, 'connection');

    const reading = reader.rangesFrom({}, giveUp.signal);
    reading.catch(() => {});
    const [socket] = await connected;
    const cut = once(socket, 'close');
    giveUp.abort(new Error('not read back in time'));

    await expect(reading).rejects.toThrow('not read back in time');
    await cut;
  });

  test('finds it at an IPv6 address', async () => {
    const { server, address } = await silentServer('::1');
    const opened = await open(address, '10m');
    const giveUp = new AbortController();

    const sending = opened.sink.send(batchOf(opened, someEvents(1)), giveUp.signal);
    sending.catch(() => {});
    const [socket] = await once(server, 'connection');

    expect(socket.remoteFamily).toBe('IPv6');
    giveUp.abort();
  });
});

describe('kafkaSink and a topic or a right that is missing', () => {
  let broker: KafkaBroker;
  beforeAll(async () => {
    broker = await startKafka({
      settings: {
        'auto.create.topics.enable': 'false',
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        'super.users': 'User:ANONYMOUS',
      },
    });
  });
  afterAll(() => broker.kill());

  test('waits for a topic that brokers do not create, and names it', async () => {
    const brokers = [broker.addresses.plain];

    await Promise.all(
      drivers.map(async (driver) => {
        const topic = `later-${driver}`;
        const config = { driver, brokers, topic, exactly_once: true };
        const opened = await openSink(kafkaSink, config, { spoolId: topic.slice(6) });
        const committed = await committedOf(opened);
        const answer = await opened.sink.send(batchOf(opened, someEvents(10)), goOn);
        await createTopic(brokers, topic);
        await deliver(opened, someEvents(10));

        const next = expect.stringContaining(`Create the topic ${topic}`);
        expect(committed).toBeNull();
        expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'sink_refused', next } });
        expect(await uidsIn(topic, brokers)).toEqual(uids(someEvents(10)));
      }),
    );
  });

  test.each(variants)(
    'an account without rights stops the sink, with a hint to check them; with rights it delivers ($topic)',
    async ({ driver, exactly_once, topic }) => {
      const brokers = [broker.addresses.plain];
      await createTopic(brokers, topic);
      const sasl = { mechanism: 'scram-sha-256', ...kafkaAccount };
      const guarded = [broker.addresses.protected?.sasl];
      const config = { driver, brokers: guarded, topic, sasl, exactly_once };
      const opened = await openSink(kafkaSink, config, { spoolId: topic });

      const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);
      await allow(brokers, topic, exactly_once ? `sluice-${topic.slice(0, 12)}-` : null);
      // The broker applies new rights after some time; the engine tries a failing sink again, and so does this.
      await waitUntil(
        async () => {
          const again = await opened.sink.send(batchOf(opened, someEvents(3)), goOn);
          return again.outcome === 'delivered';
        },
        { what: () => 'the rights to be heeded' },
      );

      // kafkajs swallows the broker's answer where it looks for the coordinator of a transactional id.
      const swallowed = exactly_once && driver === 'kafkajs';
      const next = expect.stringContaining(swallowed ? 'transactional id' : 'rights');
      expect(answer).toMatchObject(
        swallowed
          ? { outcome: 'retry', cause: { next } }
          : { outcome: 'refused', scope: 'sink', cause: { next } },
      );
      expect(await uidsIn(topic, brokers)).toEqual(uids(someEvents(3)));
    },
  );
});

/** Gives the account what a Kafka sink needs, and nothing else: `names` begins its transactional id and its group. */
async function allow(brokers: readonly string[], topic: string, names: string | null) {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  const rule = {
    principal: `User:${kafkaAccount.username}`,
    host: '*',
    permissionType: AclPermissionTypes.ALLOW,
  };
  const read = { ...rule, operation: AclOperationTypes.READ };
  const write = { ...rule, operation: AclOperationTypes.WRITE };
  const topics = {
    resourceType: AclResourceTypes.TOPIC,
    resourceName: topic,
    resourcePatternType: ResourcePatternTypes.LITERAL,
  };
  const named = { resourceName: names ?? '', resourcePatternType: ResourcePatternTypes.PREFIXED };
  const once = [
    { ...write, ...named, resourceType: AclResourceTypes.TRANSACTIONAL_ID },
    { ...read, ...named, resourceType: AclResourceTypes.GROUP },
    { ...read, ...topics }, // the position is an offset of the topic
  ];
  await admin.connect();
  await admin.createAcls({ acl: [{ ...write, ...topics }, ...(names === null ? [] : once)] });
  await admin.disconnect();
}
