// Mutual TLS with a chain of two: the client certificate comes from an intermediate authority, and servers trust the root
// alone. So each client must send the intermediate's certificate as well. Upstreams, HTTP sinks, OTLP over gRPC, syslog, and
// Kafka as a sink over both drivers.

import { beforeAll, describe, expect, test } from 'vitest';
import { httpSink } from '../../connectors/sinks/http.ts';
import { kafkaSink } from '../../connectors/sinks/kafka.ts';
import { otlpSink } from '../../connectors/sinks/otlp.ts';
import { syslogSink } from '../../connectors/sinks/syslog.ts';
import type { Delivery } from '../../src/contracts/sink.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { aTopic, batchOf, drivers, goOn } from '../connectors/sinks/kafka-engine.ts';
import { type Certificates, makeCa } from '../support/certificates.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { sharedKafka } from '../support/kafka.ts';
import { startOtlpGrpcReceiver } from '../support/otlp-grpc-receiver.ts';
import { openSink, someEvents } from '../support/sink-opening.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';
import { afterThisTest } from '../support/temp.ts';

let ca: Certificates;

beforeAll(async () => {
  ca = await makeCa();
});

const never = new AbortController().signal;
const { protected: guarded } = await sharedKafka();

/** TLS settings with the whole chain, or with the certificate of the client alone. */
function tlsWith(which: 'chain' | 'leaf') {
  const { certFile, keyFile } = which === 'chain' ? ca.clientChain : ca.clientLeaf;
  return { ca_file: ca.caFile, cert_file: certFile, key_file: keyFile };
}

type Sending = (tls: object) => Promise<Delivery['outcome'] | 'failed'>;

const clients: Readonly<Record<string, Sending>> = {
  'the HTTP client of upstreams and tokens': async (tls) => {
    const { url } = await startHttpReceiver({ tls: ca, clientCertificates: true });
    const client = openHttpClient();
    afterThisTest(() => client.close());
    const bounds = { timeoutMs: 60_000, bodyBytesMax: 1_000 };
    const request = { method: 'GET', url, headers: {}, tls, ...bounds } as const;
    return await client.request(request, never).then(
      ({ status }) => (status === 200 ? 'delivered' : 'failed'),
      () => 'failed',
    );
  },
  http: async (tls) => {
    const { url } = await startHttpReceiver({ tls: ca, clientCertificates: true });
    const { sink, batch } = await openSink(httpSink, { url, tls });
    return (await sink.send(batch(someEvents(2)), never)).outcome;
  },
  'otlp over gRPC': async (tls) => {
    const { url } = await startOtlpGrpcReceiver({ tls: ca, clientCertificates: true });
    const { sink, batch } = await openSink(otlpSink, { protocol: 'grpc', url, tls });
    return (await sink.send(batch(someEvents(2)), never)).outcome;
  },
  syslog: async (tls) => {
    const { port } = await startTcpReceiver({ tls: ca, clientCertificates: true });
    const config = { address: `tls://127.0.0.1:${port}`, tls, confirm: 'close' };
    const { sink, batch } = await openSink(syslogSink, config);
    return (await sink.send(batch(someEvents(2)), never)).outcome;
  },
};

describe.each(Object.entries(clients))('%s', (_, send) => {
  test('sends the intermediate’s certificate with its own', async () => {
    expect(await send(tlsWith('chain'))).toBe('delivered');
  });

  test('is refused without it', async () => {
    expect(await send(tlsWith('leaf'))).not.toBe('delivered');
  });
});

describe.skipIf(guarded === null).each(drivers)(
  'kafka over %s (skipped: KAFKA_BROKERS has no protected listener)',
  (driver) => {
    test('sends the intermediate’s certificate with its own', async () => {
      const config = { driver, brokers: [guarded?.mutualTls], topic: await aTopic('mutual') };
      const opened = await openSink(kafkaSink, { ...config, tls: tlsWith('chain') });

      const answer = await opened.sink.send(batchOf(opened, someEvents(2)), goOn);

      expect(answer).toMatchObject({ outcome: 'delivered' });
    });
  },
);
