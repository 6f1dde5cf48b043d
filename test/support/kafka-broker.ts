// A real Apache Kafka broker (KRaft, one node being both broker and controller) as a child process,
// for the tests of the Kafka sink. It listens on loopback without protection, with SASL, with TLS and
// with both, keeps its storage and its ports over stop and start, and can be killed to see what a
// crash does. `kafka.ts` has the broker that all tests share, and reading topics back.
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { makeCa } from './certificates.ts';
import { endChild, isRunning, spawnChild } from './children.ts';
import {
  javaFlags,
  kafkaAccount,
  kafkaClassPath,
  newKafkaStorage,
  sharedClasses,
} from './kafka-files.ts';
import { afterThisTest, freePorts, patienceMs, tempDir, waitUntil } from './temp.ts';

/** Where a broker listens, each as `host:port`; all are the same broker. */
export interface KafkaAddresses {
  readonly plain: string;
  /**
   * The protected listeners, or null for a broker that KAFKA_BROKERS named. SASL knows
   * `kafkaAccount` by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; TLS shows `makeCa()`'s server
   * certificate of the intermediate, with that, and checks a client certificate if it is given one, which mutual TLS insists on.
   */
  readonly protected: {
    readonly sasl: string;
    readonly tls: string;
    readonly mutualTls: string;
    readonly saslTls: string;
  } | null;
}

export interface KafkaOptions {
  /** As one of several: its number, and the controllers of all as `controller.quorum.voters` has them. */
  readonly member?: { readonly id: number; readonly voters: string; readonly ports: Ports };
  /** Broker settings that win over those here, for example `{ 'message.max.bytes': '2000' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /**
   * Further listeners without protection, each behind a proxy: the broker's own port, and the port of the proxy, which
   * it advertises to the clients of that listener.
   */
  readonly behind?: readonly { readonly port: number; readonly proxy: number }[];
}

/** A broker of one's own. It ends with the test that started it, or with the process. */
export interface KafkaBroker {
  readonly addresses: KafkaAddresses;
  /** Changes with every start; undefined while it does not run. */
  readonly pid: number | undefined;
  /** Starts it again on the same ports and storage; resolves when it answers. */
  start(): Promise<void>;
  /** Lets it shut down in order. */
  stop(): Promise<void>;
  /** Ends it at once, as a crash would (SIGKILL). */
  kill(): Promise<void>;
  /** The warnings and errors it wrote since it was made. */
  log(): string;
}

/** Starts the shared broker; for `global-setup.ts`, everyone else calls `sharedKafka`. */
export async function makeSharedKafka(): Promise<KafkaAddresses> {
  const named = process.env.KAFKA_BROKERS;
  if (named) return { plain: named, protected: null };
  return (await startKafka()).addresses;
}

/** Starts a broker; resolves when it answers. About a second, on top of a first download. */
export async function startKafka(options: KafkaOptions = {}): Promise<KafkaBroker> {
  const broker = await newBroker(options, [await classesFlag()]);
  afterThisTest(() => broker.kill());
  await broker.start();
  return broker;
}

const classesFlag = () =>
  sharedClasses(async (flagOnce) => {
    const broker = await newBroker({}, [flagOnce]);
    await broker.start();
    await broker.stop();
  });

/**
 * Starts several brokers of one cluster, each a controller as well, with small heaps; topics are on all of them, and two have
 * to have what is written. Resolves when each knows all.
 */
export async function startKafkaCluster(count: number): Promise<readonly KafkaBroker[]> {
  const ports = await Promise.all(
    Array.from({ length: count }, () => freePorts(listenerNames.length)),
  );
  const voters = ports.map((of, index) => `${index + 1}@127.0.0.1:${of.at(-1)}`).join(',');
  const flags = [await classesFlag(), '-Xmx256m'];
  const settings = clusterSettings(count);
  const brokers = await Promise.all(
    ports.map((of, index) =>
      newBroker({ settings, member: { id: index + 1, voters, ports: of } }, flags),
    ),
  );
  for (const broker of brokers) afterThisTest(() => broker.kill());
  await Promise.all(brokers.map((broker) => broker.start()));
  return brokers;
}

const clusterSettings = (count: number) => ({
  'default.replication.factor': String(count),
  'offsets.topic.replication.factor': String(count),
  'transaction.state.log.replication.factor': String(count),
  'transaction.state.log.min.isr': '2',
  'min.insync.replicas': '2',
  'controlled.shutdown.enable': 'true',
});

type Ports = readonly number[];

async function newBroker(options: KafkaOptions, flags: readonly string[]): Promise<KafkaBroker> {
  const dir = tempDir('kafka-');
  const { member } = options;
  await newKafkaStorage(dir, member?.id);
  const ports = member?.ports ?? (await freePorts(listenerNames.length));
  const [plain = '', sasl = '', tls = '', mutualTls = '', saslTls = ''] = ports.map(
    (port) => `127.0.0.1:${port}`,
  );
  const settingsFile = join(dir, 'server.properties');
  writeFileSync(settingsFile, await brokerSettings(dir, ports, options));
  const classPath = await kafkaClassPath();
  return new BrokerProcess(
    { plain, protected: { sasl, tls, mutualTls, saslTls } },
    [...javaFlags, ...flags, '-cp', classPath, 'kafka.Kafka', settingsFile],
    { logFile: join(dir, 'broker.log'), knows: member?.voters.split(',').length ?? 1 },
  );
}

class BrokerProcess implements KafkaBroker {
  readonly addresses: KafkaAddresses;
  readonly #args: readonly string[];
  readonly #logFile: string;
  readonly #knows: number;
  #child: ChildProcess | undefined;

  /** `knows`: how many brokers there are once all are there. */
  constructor(
    addresses: KafkaAddresses,
    args: readonly string[],
    { logFile, knows }: { readonly logFile: string; readonly knows: number },
  ) {
    this.addresses = addresses;
    this.#args = args;
    this.#logFile = logFile;
    this.#knows = knows;
  }

  get pid(): number | undefined {
    return this.#child !== undefined && isRunning(this.#child) ? this.#child.pid : undefined;
  }

  async start(): Promise<void> {
    if (this.pid !== undefined) return;
    const log = openSync(this.#logFile, 'a');
    const child = spawnChild('java', this.#args, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    const what = () => `Kafka to start; its log: ${this.log().slice(-4000)}`;
    await waitUntil(
      async () => {
        if (!isRunning(child))
          throw new Error(`Kafka ended while starting; its log: ${this.log()}`);
        return (await brokersKnownAt(this.addresses.plain)) === this.#knows;
      },
      { what, everyMs: 50 },
    );
  }

  async stop(): Promise<void> {
    if (this.#child !== undefined) await endChild(this.#child, 'SIGTERM', patienceMs);
  }

  async kill(): Promise<void> {
    if (this.#child !== undefined) await endChild(this.#child, 'SIGKILL');
  }

  log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }
}

// The port opens some time before the broker has registered itself, so this requests the brokers it knows: a Metadata
// request, version 1, for no topic, written out here because vitest's main process needs no more of a Kafka client than
// this (Kafka protocol guide, "Metadata API"). The response is length, correlation id and the list of brokers, all
// starting with 32-bit integers.
function brokersKnownAt(address: string): Promise<number> {
  const request = Buffer.from('0000000e00030001000000010000' + '00000000', 'hex');
  const [host, port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect({ host: host ?? '', port: Number(port), timeout: 2000 });
    let answer: Uint8Array = new Uint8Array();
    socket.once('connect', () => socket.write(request));
    socket.on('data', (bytes: Buffer) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length >= 12) socket.destroy();
    });
    socket.once('timeout', () => socket.destroy());
    socket.once('error', () => socket.destroy()); // not up yet: the caller tries again
    socket.once('close', () => resolve(brokerCount(answer)));
  });
}

function brokerCount(answer: Uint8Array): number {
  return answer.length < 12 ? 0 : Buffer.from(answer).readInt32BE(8);
}

async function brokerSettings(
  dir: string,
  ports: readonly number[],
  options: KafkaOptions,
): Promise<string> {
  const settings = {
    ...listenerSettings(ports, options.behind),
    ...(await tlsSettings(dir)),
    ...saslSettings(),
    ...singleNodeSettings,
    'controller.quorum.voters': options.member?.voters ?? `1@127.0.0.1:${ports.at(-1)}`,
    'node.id': String(options.member?.id ?? 1),
    'log.dirs': join(dir, 'log'),
    ...options.settings,
  };
  return Object.entries(settings)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

const listenerNames = ['PLAINTEXT', 'SASL', 'TLS', 'MUTUALTLS', 'SASLTLS', 'CONTROLLER'] as const;

function listenerSettings(
  ports: readonly number[],
  behind: KafkaOptions['behind'] = [],
): Readonly<Record<string, string>> {
  const own = listenerNames.map((name, index) => `${name}://127.0.0.1:${ports[index]}`);
  const further = behind.map(({ port }, index) => `BEHIND${index}://127.0.0.1:${port}`);
  const reported = behind.map(({ proxy }, index) => `BEHIND${index}://127.0.0.1:${proxy}`);
  const protocols = [
    ...'PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,MUTUALTLS:SSL,SASLTLS:SASL_SSL'.split(','),
    ...['CONTROLLER:PLAINTEXT', ...behind.map((_, index) => `BEHIND${index}:PLAINTEXT`)],
  ];
  return {
    'process.roles': 'broker,controller',
    listeners: [...own, ...further].join(','),
    'advertised.listeners': [...own.slice(0, -1), ...reported].join(','),
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': protocols.join(','),
  };
}

async function tlsSettings(dir: string): Promise<Readonly<Record<string, string>>> {
  const { caFile, chain } = await makeCa();
  const keyStoreFile = join(dir, 'server-key-and-certificate.pem');
  writeFileSync(keyStoreFile, chain.key + chain.cert);
  return {
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': keyStoreFile,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': caFile,
    'listener.name.tls.ssl.client.auth': 'requested',
    'listener.name.mutualtls.ssl.client.auth': 'required',
  };
}

function saslSettings(): Readonly<Record<string, string>> {
  const { username, password } = kafkaAccount;
  const modules = 'org.apache.kafka.common.security';
  const plain = `${modules}.plain.PlainLoginModule required user_${username}="${password}";`;
  const scram = `${modules}.scram.ScramLoginModule required;`;
  // Without a validator of its own, the broker accepts unsigned tokens that have not expired.
  const bearer = `${modules}.oauthbearer.OAuthBearerLoginModule required;`;
  const perListener = ['sasl', 'sasltls'].flatMap((listener) => [
    [`listener.name.${listener}.plain.sasl.jaas.config`, plain],
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`, scram],
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`, scram],
    [`listener.name.${listener}.oauthbearer.sasl.jaas.config`, bearer],
  ]);
  return {
    'sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER',
    ...Object.fromEntries(perListener),
  };
}

const singleNodeSettings: Readonly<Record<string, string>> = {
  'offsets.topic.replication.factor': '1',
  'offsets.topic.num.partitions': '1',
  'transaction.state.log.replication.factor': '1',
  'transaction.state.log.min.isr': '1',
  'transaction.state.log.num.partitions': '1',
  'share.coordinator.state.topic.replication.factor': '1',
  'share.coordinator.state.topic.min.isr': '1',
  'min.insync.replicas': '1',
  // Each listener has threads of its own; with the defaults a start costs a third more CPU.
  'num.network.threads': '1',
  'num.io.threads': '2',
  'background.threads': '2',
  'auto.create.topics.enable': 'true',
  // Shut down in order, a lone broker removes the leaders from its partitions while transactions still end. Without a
  // leader it then skips the marks of one that it has answered as committed: its records are aborted at the next start,
  // and the group's offset stays unstable for ever. Only Kafka can fix that; without this it stops no less cleanly.
  'controlled.shutdown.enable': 'false',
  // A broker that crashed may register again only once its old session has run out; default 9 s.
  'broker.session.timeout.ms': '3000',
  'broker.heartbeat.interval.ms': '500',
  // A lone consumer need not wait for others to join its group.
  'group.initial.rebalance.delay.ms': '0',
  // A transaction left behind by a killed producer is to end soon after its time-out, not 10 s later.
  'transaction.abort.timed.out.transaction.cleanup.interval.ms': '500',
  // A wrong password is answered at once; default 0.1 s.
  'connection.failed.authentication.delay.ms': '0',
  // The cleaner would reserve 128 MiB of the heap for compaction that no test waits for.
  'log.cleaner.dedupe.buffer.size': '2097152',
};
