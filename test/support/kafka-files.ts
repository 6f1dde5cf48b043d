// The files of a Kafka broker: its jars, fetched from Maven Central by `kafka/pom.xml`, a formatted storage directory
// to copy for each new broker (formatting takes a Java start of its own, and its result depends on nothing that differs
// between brokers), and the classes in the form that Java loads fastest. All are kept in the cache and created again
// when the pom or the settings here change.
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cached, lastLine, needCommands } from './cache.ts';
import { runProgram } from './children.ts';

/** The one account that the SASL listeners know, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. */
export const kafkaAccount = { username: 'sluice', password: 'not-a-secret' } as const;

/** Flags that make a short-lived broker start sooner and stay small. */
export const javaFlags: readonly string[] = [
  '-Xmx512m',
  '-XX:TieredStopAtLevel=1',
  '-XX:+UseSerialGC',
  '-XX:-UsePerfData',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.showDateTime=true',
];

const pomFile = fileURLToPath(new URL('kafka/pom.xml', import.meta.url));
const clusterId = 'c2x1aWNlLXRlc3QtcnVuLTE';

const hint =
  'The Kafka tests run a real Apache Kafka, which needs Java 17 or newer and Maven ' +
  '(Debian: apt-get install default-jre-headless maven), or a broker of yours: KAFKA_BROKERS=host:port.';

/** The class path of Kafka, for `java -cp`. The first call on a machine downloads about 45 MB. */
export async function kafkaClassPath(): Promise<string> {
  const pom = readFileSync(pomFile);
  const name = `kafka-jars-${createHash('sha256').update(pom).digest('hex').slice(0, 12)}`;
  const dir = await cached(name, fetchJars);
  return join(dir, '*');
}

async function fetchJars(dir: string): Promise<void> {
  await needCommands(['java', 'mvn'], ['default-jre-headless', 'maven'], hint);
  const args = ['-B', '-q', '-ntp', '-f', pomFile, 'dependency:copy-dependencies'];
  const result = await runProgram('mvn', [
    ...args,
    '-DincludeScope=runtime',
    `-DoutputDirectory=${dir}`,
  ]);
  if (result.exitCode === 0) return;
  const cause = result.output.match(/\[ERROR\] (.*)/)?.[1] ?? lastLine(result.errors);
  throw new Error(`fetching Kafka's jars from Maven Central failed: ${cause}. ${hint}`);
}

/**
 * A flag by which a broker starts in half the time: its classes stand in one file, parsed and checked. `runOnce` runs a
 * broker with the flag it is given to an orderly end; Java goes without where the file is of another Java.
 */
export async function sharedClasses(runOnce: (flag: string) => Promise<void>): Promise<string> {
  const archive = (dir: string) => join(dir, 'classes.jsa');
  const dir = await cached(await nameBy('kafka-classes'), (empty) =>
    runOnce(`-XX:ArchiveClassesAtExit=${archive(empty)}`),
  );
  return `-XX:SharedArchiveFile=${archive(dir)}`;
}

/** Fills `dir` with the storage of a broker that has never run, as whichever node of its cluster. */
export async function newKafkaStorage(dir: string, node = 1): Promise<void> {
  const classPath = await kafkaClassPath();
  const name = await nameBy('kafka-storage');
  const template = await cached(name, (empty) => formatStorage(empty, classPath));
  cpSync(template, dir, { recursive: true });
  if (node === 1) return;
  const file = join(dir, 'log', 'meta.properties');
  const own = readFileSync(file, 'utf8')
    .replace(/^node\.id=.*$/m, `node.id=${node}`)
    .replace(/^directory\.id=.*$/m, `directory.id=${randomBytes(16).toString('base64url')}`);
  writeFileSync(file, own);
}

/** The name of a cache entry that holds only with these jars. */
async function nameBy(prefix: string): Promise<string> {
  const hash = createHash('sha256')
    .update(await kafkaClassPath())
    .digest('hex');
  return `${prefix}-${hash.slice(0, 12)}`;
}

async function formatStorage(dir: string, classPath: string): Promise<void> {
  const logDir = join(dir, 'log');
  mkdirSync(logDir);
  const settingsFile = join(dir, 'format.properties');
  writeFileSync(settingsFile, formatSettings(logDir));
  const { username, password } = kafkaAccount;
  const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
    '--add-scram',
    `${mechanism}=[name=${username},password=${password}]`,
  ]);
  const format = [
    'kafka.tools.StorageTool',
    'format',
    '-t',
    clusterId,
    '-c',
    settingsFile,
    ...scram,
  ];
  const result = await runProgram('java', [...javaFlags, '-cp', classPath, ...format]);
  if (result.exitCode !== 0) {
    throw new Error(`formatting Kafka's storage failed: ${lastLine(result.errors)}. ${hint}`);
  }
  rmSync(settingsFile);
}

// The tool reads a whole broker configuration, of which it uses the node's id and the directory.
function formatSettings(logDir: string): string {
  return [
    'process.roles=broker,controller',
    'node.id=1',
    'controller.quorum.voters=1@127.0.0.1:1',
    'controller.listener.names=CONTROLLER',
    'listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1',
    `log.dirs=${logDir}`,
  ].join('\n');
}
