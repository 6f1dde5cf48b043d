// Mutual TLS with chains of two, for each kind of client that sluice has. The client's certificate comes from an
// intermediate authority, and so does the server's; each side trusts the root alone. So each must send the certificate of
// its intermediate as well. And a certificate that is replaced in its file is used by the next connection.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { httpSink } from '../../connectors/sinks/http.ts';
import { kafkaSink } from '../../connectors/sinks/kafka.ts';
import { otlpSink } from '../../connectors/sinks/otlp.ts';
import { s3Sink } from '../../connectors/sinks/s3.ts';
import { syslogSink } from '../../connectors/sinks/syslog.ts';
import { LogClient } from '../../src/cluster/log/client.ts';
import { TransactionalWriter } from '../../src/cluster/log/writer.ts';
import { parseHostPort } from '../../src/contracts/config.ts';
import type { SinkDefinition } from '../../src/contracts/definition.ts';
import { createTopics, loadReader } from '../../src/kafka/index.ts';
import { openStore } from '../../src/objects/open.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { openCollectorLog } from '../../src/watch/collector-log.ts';
import { aTopic, batchOf, drivers, goOn } from '../connectors/sinks/kafka-engine.ts';
import { type Certificates, type KeyPair, makeCa } from '../support/certificates.ts';
import { aProxy } from '../support/http-proxy.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { sharedKafka } from '../support/kafka.ts';
import { startOtlpGrpcReceiver } from '../support/otlp-grpc-receiver.ts';
import { startRelpReceiver } from '../support/relp-receiver.ts';
import { s3BuildMsMax, sharedS3 } from '../support/s3.ts';
import { silent } from '../support/silent-log.ts';
import { openSink, someEvents } from '../support/sink-opening.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { startTlsFront, type TlsFrontOptions } from '../support/tls-front.ts';

let ca: Certificates;

beforeAll(async () => {
  ca = await makeCa();
});

const never = new AbortController().signal;
const { protected: guarded } = await sharedKafka();

interface TlsFiles {
  readonly ca_file: string;
  readonly cert_file: string;
  readonly key_file: string;
}

/** Makes one delivery, or one request; false: it failed. */
type Attempt = () => Promise<boolean>;

interface Kind {
  /** Starts a receiver without TLS; returns its port. */
  readonly receiver: () => Promise<number>;
  /** Opens a client for the port with TLS. */
  readonly client: (port: number, tls: TlsFiles) => Promise<Attempt> | Attempt;
  readonly front?: Partial<TlsFrontOptions>;
}

const portOf = (url: string) => Number(new URL(url).port);
const httpPort = async () => portOf((await startHttpReceiver()).url);

async function sending(
  definition: SinkDefinition,
  config: Readonly<Record<string, unknown>>,
): Promise<Attempt> {
  const { sink, batch } = await openSink(definition, config);
  let at = 0;
  return async () => {
    const events = someEvents(2, at);
    at += 2;
    return (await sink.send(batch(events), never)).outcome === 'delivered';
  };
}

function requesting(url: string, tls: TlsFiles, proxy?: string): Attempt {
  const client = openHttpClient({ certificateCheckMs: 0 });
  afterThisTest(() => client.close());
  const bounds = { timeoutMs: 60_000, bodyBytesMax: 1_000 };
  const request = { method: 'GET', url, headers: {}, tls, ...bounds } as const;
  return () =>
    client.request({ ...request, ...(proxy !== undefined && { proxy }) }, never).then(
      ({ status }) => status === 200,
      () => false,
    );
}

async function bucket() {
  const s3 = await sharedS3();
  return { s3, name: await s3.bucket() };
}

const s3Port = async () => portOf((await sharedS3()).endpoint);

const kinds: Readonly<Record<string, Kind>> = {
  'upstreams, tokens, http sinks (the HTTP client)': {
    receiver: httpPort,
    client: (port, tls) => requesting(`https://127.0.0.1:${port}`, tls),
  },
  'sink http': {
    receiver: httpPort,
    client: (port, tls) => sending(httpSink, { url: `https://127.0.0.1:${port}`, tls }),
  },
  'sink otlp over gRPC': {
    receiver: async () => portOf((await startOtlpGrpcReceiver()).url),
    client: (port, tls) =>
      sending(otlpSink, { protocol: 'grpc', url: `https://127.0.0.1:${port}`, tls }),
    front: { isHttp2: true },
  },
  'sink syslog over TLS': {
    receiver: async () => (await startTcpReceiver()).port,
    client: (port, tls) =>
      sending(syslogSink, { address: `tls://127.0.0.1:${port}`, tls, confirm: 'close' }),
  },
  'sink syslog over RELP': {
    receiver: async () => (await startRelpReceiver()).port,
    client: (port, tls) => sending(syslogSink, { address: `relps://127.0.0.1:${port}`, tls }),
  },
  'sink s3': {
    receiver: s3Port,
    client: async (port, tls) => {
      const { s3, name } = await bucket();
      const where = { ...s3.settings, endpoint: `https://127.0.0.1:${port}`, bucket: name };
      return sending(s3Sink, { ...where, tls, rotate: { every: '1s' } });
    },
  },
  'archive and lake in a bucket': {
    receiver: s3Port,
    client: async (port, tls) => {
      const { s3, name } = await bucket();
      const store = await openStore(`s3://${name}/some`, {
        ...s3.storeSettings,
        endpoint: `https://127.0.0.1:${port}`,
        tls,
      });
      afterThisTest(() => store.close());
      return () =>
        store.put('an-object', [Buffer.from('x')]).then(
          () => true,
          () => false,
        );
    },
  },
  'log.otlp': {
    receiver: httpPort,
    client: async (port, tls) => {
      const collector = { url: `https://127.0.0.1:${port}/v1/logs`, headers: {}, tls };
      return async () => {
        const deps = { collector, beside: silent, version: '0', instance: 'x' };
        const opened = await openCollectorLog({ ...deps, level: 'info' });
        opened.log.info('running', 'a line');
        await opened.close(20_000);
        return opened.lost() === 0;
      };
    },
  },
};

/** Files of a client in a directory of their own, with the whole chain or the certificate of the client alone. */
function filesOf(which: 'clientChain' | 'clientLeaf') {
  const dir = tempDir('tls-');
  const tls = {
    ca_file: ca.caFile,
    cert_file: join(dir, 'cert.pem'),
    key_file: join(dir, 'key.pem'),
  };
  const put = ({ certFile, keyFile }: KeyPair) => {
    copyFileSync(certFile, tls.cert_file);
    copyFileSync(keyFile, tls.key_file);
  };
  put(ca[which]);
  return { tls, put };
}

describe.each(Object.entries(kinds))('%s', (_, { receiver, client, front }) => {
  const open = async (tls: TlsFiles, shows: KeyPair = ca.chain) => {
    const { port } = await startTlsFront(await receiver(), { shows, ca: ca.ca, ...front });
    return await client(port, tls);
  };

  test(
    'sends its intermediate, and accepts a server that does',
    async () => {
      const attempt = await open(filesOf('clientChain').tls);

      expect(await attempt()).toBe(true);
    },
    s3BuildMsMax,
  );

  test('is refused without its intermediate, and accepted as soon as the file has it', async () => {
    const { tls, put } = filesOf('clientLeaf');
    const attempt = await open(tls);

    const before = await attempt();
    put(ca.clientChain);

    expect(before).toBe(false);
    await waitUntil(attempt, { what: 'the new certificate to be used', everyMs: 200 });
  });

  test('refuses a server that sends no intermediate', async () => {
    const attempt = await open(filesOf('clientChain').tls, ca.leaf);

    expect(await attempt()).toBe(false);
  });
});

test.each(['chain', 'leaf'] as const)(
  'a proxy with https:// that shows its %s gets no client certificate',
  async (shows) => {
    const front = await startTlsFront((await aProxy()).port, { shows: ca[shows] });
    const { url } = await startHttpReceiver();

    const attempt = requesting(url, filesOf('clientChain').tls, `https://127.0.0.1:${front.port}`);

    expect(await attempt()).toBe(shows === 'chain');
    expect(front.clients).toEqual(shows === 'chain' ? [undefined] : []);
  },
);

const brokers = [guarded?.mutualTls ?? ''];
const addresses = brokers.map(parseHostPort).filter((address) => address !== null);

// The server's certificate of the broker comes from an intermediate too.
describe.skipIf(guarded === null)(
  guarded === null ? 'Kafka (skipped: KAFKA_BROKERS has no protected listener)' : 'Kafka',
  () => {
    const isAccepted = (work: Promise<unknown>) =>
      work.then(
        () => true,
        () => false,
      );
    const options = (tls: TlsFiles) => ({
      ...{ brokers: addresses, topic: 'x', clientId: 'test', compression: 'none' as const },
      ...{ timeoutMs: 20_000, tls, log: silent },
    });

    test.each(drivers)('the sink over %s', async (driver) => {
      const { tls, put } = filesOf('clientLeaf');
      const config = { driver, brokers, topic: await aTopic('mutual'), tls };
      const opened = await openSink(kafkaSink, config);
      const send = () => opened.sink.send(batchOf(opened, someEvents(2)), goOn);

      const before = await send();
      put(ca.clientChain);

      expect(before).toMatchObject({ outcome: 'retry' });
      expect(await send()).toMatchObject({ outcome: 'delivered' });
    });

    test('making topics, and reading a topic back', async () => {
      const [topic, { tls }] = [await aTopic('made'), filesOf('clientChain')];

      const made = await createTopics(options(tls), [`${topic}-more`]);
      const reader = await loadReader({ ...options(tls), topic }, 8);

      expect(made).toEqual([`${topic}-more`]);
      expect(await reader.rangesFrom({}, new AbortController().signal)).toEqual({});
      const without = createTopics(options(filesOf('clientLeaf').tls), [`${topic}-none`]);
      expect(await isAccepted(without)).toBe(false);
    });

    test('state.kafka reads and writes', async () => {
      const topic = await aTopic('state');
      const { tls, put } = filesOf('clientLeaf');
      const settings = { brokers: addresses, prefix: topic, tls };
      const client = new LogClient(settings, systemClock());
      afterThisTest(() => client.close());

      const before = await isAccepted(client.has(topic));
      put(ca.clientChain);
      const accepts = () => isAccepted(client.has(topic));
      await waitUntil(accepts, { what: 'the new certificate to be used', everyMs: 200 });
      const writer = new TransactionalWriter(settings, topic);
      afterThisTest(() => writer.close());
      const record = {
        to: { topic, partition: 0 },
        key: Buffer.from('a'),
        value: Buffer.from('b'),
      };
      await writer.write([record]);

      expect(before).toBe(false);
      expect(await client.end(record.to)).toBeGreaterThan(0n);
    });
  },
);
