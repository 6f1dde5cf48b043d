// The Kafka sink on protected listeners of a real Apache Kafka, over each client: SASL by each mechanism, TLS with a
// private authority and with client certificates, what is refused, and that no password shows anywhere.

import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import type { SinkSettings } from '../../../src/contracts/definition.ts';
import type { Secret } from '../../../src/contracts/secret.ts';
import type { SinkOpening } from '../../../src/contracts/sink.ts';
import type { TlsSettings } from '../../../src/contracts/tools.ts';
import { makeCa, makeUntrustedCa } from '../../support/certificates.ts';
import { consumeAll, kafkaAccount, sharedKafka } from '../../support/kafka.ts';
import { openSink, parseSettings, someEvents } from '../../support/sink-opening.ts';
import { aTopic, batchOf, deliver, drivers, goOn } from './kafka-engine.ts';

const uids = (events: readonly { readonly uid: string }[]) => events.map(({ uid }) => uid).sort();

async function uidsIn(topic: string) {
  const records = await consumeAll(topic);
  return records.map(({ headers }) => headers.uid).sort();
}

const { protected: guarded } = await sharedKafka();
const mechanisms = ['plain', 'scram-sha-256', 'scram-sha-512'];

describe.skipIf(guarded === null).each(drivers)(
  'kafkaSink over %s on a protected listener (skipped: KAFKA_BROKERS has none)',
  (driver) => {
    test.each(mechanisms)('authenticates by %s over TLS', async (mechanism) => {
      const topic = await aTopic('guarded');
      const { caFile } = await makeCa();
      const config = {
        driver,
        brokers: [guarded?.saslTls],
        topic,
        tls: { ca_file: caFile },
        sasl: { mechanism, ...kafkaAccount },
        exactly_once: mechanism === 'scram-sha-512',
      };
      const opened = await openSink(kafkaSink, config, { spoolId: driver });

      const { dead } = await deliver(opened, someEvents(5));

      expect(dead).toEqual([]);
      expect(await uidsIn(topic)).toEqual(uids(someEvents(5)));
    });

    test('sends over mutual TLS with a client certificate', async () => {
      const topic = await aTopic('tls');
      const { caFile, client } = await makeCa();
      const tls = { ca_file: caFile, cert_file: client.certFile, key_file: client.keyFile };
      const opened = await openSink(kafkaSink, {
        driver,
        brokers: [guarded?.mutualTls],
        topic,
        tls,
      });

      const answer = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);

      expect(answer).toMatchObject({ outcome: 'delivered' });
      expect(await uidsIn(topic)).toEqual(uids(someEvents(5)));
    });

    test('finds a broker by its name over TLS', async () => {
      const topic = await aTopic('named');
      const { caFile } = await makeCa();
      const brokers = [guarded?.tls.replace('127.0.0.1', 'localhost')];
      const opened = await openSink(kafkaSink, {
        driver,
        brokers,
        topic,
        tls: { ca_file: caFile },
      });

      const answer = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);

      expect(answer).toMatchObject({ outcome: 'delivered' });
    });

    test('warns of a password in the clear', async () => {
      const sasl = { mechanism: 'plain', ...kafkaAccount };
      const config = { driver, brokers: [guarded?.sasl], topic: 'x', sasl };
      const { tools } = await openSink(kafkaSink, config);

      expect(tools.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
    });

    test.each(mechanisms)(
      'a wrong password stops the sink, which names itself and not the password (%s)',
      async (mechanism) => {
        const sasl = { mechanism, username: kafkaAccount.username, password: 'wr0ng-canary' };
        const config = { driver, brokers: [guarded?.sasl], topic: 'x', sasl };
        const opened = await openSink(kafkaSink, config);

        const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

        expect(answer).toMatchObject({
          outcome: 'refused',
          scope: 'sink',
          cause: { code: 'sink_refused', message: expect.stringContaining('sink-under-test') },
        });
        const probing = kafkaSink.probe(parseSettings(kafkaSink, config), opened.tools, goOn);
        await expect(probing).rejects.toMatchObject({ code: 'sink_refused' });
        const { cause } = answer.outcome === 'refused' ? answer : { cause: null };
        expect(inspect([cause, opened.tools.logged], { depth: 20 })).not.toContain('canary');
      },
    );

    test('a password is read again at each connection, and then nothing is missing', async () => {
      const topic = await aTopic('rotated');
      const sasl = { mechanism: 'scram-sha-256', ...kafkaAccount };
      const settings = parseSettings(kafkaSink, { driver, brokers: [guarded?.sasl], topic, sasl });
      let password = 'of yesterday';
      (settings.sasl as { password: Secret }).password.bind(() => password);
      const definition = {
        ...kafkaSink,
        open: (_: SinkSettings, opening: SinkOpening) => kafkaSink.open(settings, opening),
      };
      const opened = await openSink(definition, { brokers: ['k:1'], topic });
      const before = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);
      password = kafkaAccount.password;

      const after = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);

      expect(before).toMatchObject({ outcome: 'refused', scope: 'sink' });
      expect(after).toMatchObject({ outcome: 'delivered' });
      expect(await uidsIn(topic)).toEqual(uids(someEvents(5)));
    });

    // Side by side, since kafkajs tries each for some seconds.
    test('a certificate that one side does not trust is a retry that says so', async () => {
      const { caFile: ca_file } = await makeCa();
      const { caFile: foreign, client } = await makeUntrustedCa();
      const { tls: plain = '', mutualTls: mutual = '' } = guarded ?? {};
      const cases: readonly [string, TlsSettings][] = [
        [plain, { ca_file: foreign }],
        [plain, { ca_file, server_name: 'other.test' }],
        [mutual, { ca_file }],
        [mutual, { ca_file, cert_file: client.certFile, key_file: client.keyFile }],
      ];

      const answers = await Promise.all(
        cases.map(async ([address, tls]) => {
          const config = { driver, brokers: [address], topic: 'x', tls };
          const opened = await openSink(kafkaSink, config);
          return await opened.sink.send(batchOf(opened, someEvents(1)), goOn);
        }),
      );

      const next = expect.stringContaining('certificate');
      for (const answer of answers) {
        expect(answer).toMatchObject({ outcome: 'retry', cause: { code: 'sink_refused', next } });
      }
    });
  },
);
