// The Kafka sink on protected listeners of a real Apache Kafka: SASL by each mechanism, TLS with a private authority and
// with client certificates, what is refused, and that no password shows anywhere.

import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { makeCa, makeUntrustedCa } from '../../support/certificates.ts';
import { consumeAll, kafkaAccount, sharedKafka } from '../../support/kafka.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { aTopic, batchOf, deliver, goOn } from './kafka-engine.ts';

const uids = (events: readonly { readonly uid: string }[]) => events.map(({ uid }) => uid).sort();

async function uidsIn(topic: string) {
  const records = await consumeAll(topic);
  return records.map(({ headers }) => headers.uid).sort();
}

const { protected: guarded } = await sharedKafka();
describe.skipIf(guarded === null)(
  'kafkaSink on a protected listener (skipped: KAFKA_BROKERS has none)',
  () => {
    test.each(['plain', 'scram-sha-256', 'scram-sha-512'])(
      'authenticates by %s over TLS',
      async (mechanism) => {
        const topic = await aTopic('guarded');
        const { caFile } = await makeCa();
        const config = {
          brokers: [guarded?.saslTls],
          topic,
          tls: { ca_file: caFile },
          sasl: { mechanism, ...kafkaAccount },
          exactly_once: mechanism === 'scram-sha-512',
        };
        const opened = await openSink(kafkaSink, config);

        const { dead } = await deliver(opened, someEvents(5));

        expect(dead).toEqual([]);
        expect(await uidsIn(topic)).toEqual(uids(someEvents(5)));
      },
    );

    test('sends over TLS with a client certificate', async () => {
      const topic = await aTopic('tls');
      const { caFile, client } = await makeCa();
      const tls = { ca_file: caFile, cert_file: client.certFile, key_file: client.keyFile };
      const opened = await openSink(kafkaSink, { brokers: [guarded?.tls], topic, tls });

      const answer = await opened.sink.send(batchOf(opened, someEvents(5)), goOn);

      expect(answer).toEqual({ outcome: 'delivered' });
    });

    test('warns of a password in the clear', async () => {
      const sasl = { mechanism: 'plain', ...kafkaAccount };
      const { tools } = await openSink(kafkaSink, { brokers: [guarded?.sasl], topic: 'x', sasl });

      expect(tools.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
    });

    test.each(['plain', 'scram-sha-256', 'scram-sha-512'])(
      'a wrong password stops the sink and is shown nowhere (%s)',
      async (mechanism) => {
        const sasl = { mechanism, username: kafkaAccount.username, password: 'wr0ng-canary' };
        const config = { brokers: [guarded?.sasl], topic: 'x', sasl };
        const opened = await openSink(kafkaSink, config);

        const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

        expect(answer).toMatchObject({
          outcome: 'refused',
          scope: 'sink',
          cause: { code: 'sink_refused' },
        });
        const settings = z.strictObject(kafkaSink.fields).parse(config);
        const probing = kafkaSink.probe({ type: 'kafka', ...settings }, opened.tools, goOn);
        await expect(probing).rejects.toMatchObject({ code: 'sink_refused' });
        const { cause } = answer.outcome === 'refused' ? answer : { cause: null };
        const said = JSON.stringify([
          cause?.message,
          cause?.next,
          cause?.details,
          opened.tools.logged,
        ]);
        expect(said).not.toContain('canary');
      },
    );

    test.each([
      [
        'an authority that is not trusted',
        async () => ({ ca_file: (await makeUntrustedCa()).caFile }),
      ],
      [
        'a name that is not in the certificate',
        async () => ({ ca_file: (await makeCa()).caFile, server_name: 'other.test' }),
      ],
    ])('%s is a retry that says so', async (_, tls) => {
      const config = { brokers: [guarded?.tls], topic: 'x', tls: await tls() };
      const opened = await openSink(kafkaSink, config);

      const answer = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

      expect(answer).toMatchObject({
        outcome: 'retry',
        cause: { code: 'sink_refused', next: expect.stringContaining('certificate') },
      });
    });

    test('a password is read anew at each connection', async () => {
      const topic = await aTopic('rotated');
      const sasl = { mechanism: 'scram-sha-256', ...kafkaAccount };
      const config = { brokers: [guarded?.sasl], topic, sasl };
      const settings = z.strictObject(kafkaSink.fields).parse(config);
      let password = 'of yesterday';
      (settings.sasl as { password: { bind(read: () => string): void } }).password.bind(
        () => password,
      );
      const opened = await openSink(
        {
          ...kafkaSink,
          open: (_, opening) => kafkaSink.open({ type: 'kafka', ...settings }, opening),
        },
        config,
      );
      const before = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);
      password = kafkaAccount.password;

      const after = await opened.sink.send(batchOf(opened, someEvents(1)), goOn);

      expect(before).toMatchObject({ outcome: 'refused', scope: 'sink' });
      expect(after).toEqual({ outcome: 'delivered' });
    });
  },
);
