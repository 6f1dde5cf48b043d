// A real OpenSearch, one node on loopback, as a child process: for the sink that writes to it and to
// Elasticsearch. Its jars come from Maven Central once and are kept (`opensearch/pom.xml`). It keeps
// its indices and its port over stop and start, and can be killed to see what a crash does.
import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorText } from '../../src/contracts/errors.ts';
import { cached, lastLine, needCommands } from './cache.ts';
import { endChild, isRunning, runProgram, spawnChild } from './children.ts';
import { oncePerRun } from './once-per-run.ts';
import { afterThisTest, freePorts, tempDir, waitUntil } from './temp.ts';

/** A node of one's own. It ends with the test that started it, or with the process. */
export interface OpenSearch {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  /** Sends a request, and resolves to the response; rejects if that is no success. */
  ask(method: string, path: string, body?: unknown): Promise<OpenSearchAnswer>;
  /** Starts it again; resolves when it answers. */
  start(): Promise<void>;
  /** Ends it at once, as a crash would (SIGKILL). */
  kill(): Promise<void>;
}

/** An answer's JSON, of which each test knows what it holds. */
// biome-ignore lint/suspicious/noExplicitAny: answers are as varied as the API
export type OpenSearchAnswer = any;

const file = (name: string) => fileURLToPath(new URL(`opensearch/${name}`, import.meta.url));
const startMsMax = 180_000;
const hint =
  'These tests run a real OpenSearch, which needs a Java 17 development kit and Maven ' +
  '(Debian: apt-get install default-jdk-headless maven), or one of yours: OPENSEARCH_URL=http://host:port.';

/** The node that tests share, each with indices of its own. */
export async function sharedOpenSearch(): Promise<Pick<OpenSearch, 'url' | 'ask'>> {
  const { url } = await oncePerRun('opensearch', makeSharedOpenSearch);
  return { url, ask: asking(url) };
}

/** Starts the shared node; for `global-setup.ts`. */
export async function makeSharedOpenSearch(): Promise<{ readonly url: string }> {
  const named = process.env.OPENSEARCH_URL;
  return { url: named || (await startOpenSearch()).url };
}

/** Starts a node; resolves when it answers, which takes ten seconds or so. */
export async function startOpenSearch(
  settings: Readonly<Record<string, string>> = {},
): Promise<OpenSearch> {
  const java = await javaOptions();
  const node = await newNode(settings, java);
  afterThisTest(() => node.kill());
  await node.start();
  return node;
}

async function newNode(
  settings: Readonly<Record<string, string>>,
  java: readonly string[],
): Promise<NodeProcess> {
  const [http, transport] = await freePorts(2);
  const dir = tempDir('opensearch-');
  const all = {
    'node.name': 'sluice-test',
    'cluster.name': `sluice-test-${http}`,
    'network.host': '127.0.0.1',
    'http.port': String(http),
    'transport.port': String(transport),
    'discovery.type': 'single-node',
    'http.type': 'netty4',
    'transport.type': 'netty4',
    'cluster.routing.allocation.disk.threshold_enabled': 'false',
    ...settings,
  };
  return new NodeProcess(`http://127.0.0.1:${http}`, join(dir, 'node.log'), [
    '-Xms128m',
    '-Xmx512m',
    '-XX:TieredStopAtLevel=1',
    '-XX:+UseSerialGC',
    '-XX:-UsePerfData',
    ...java,
    'OpenSearchNode',
    dir,
    ...Object.entries(all).map(([name, value]) => `${name}=${value}`),
  ]);
}

class NodeProcess implements OpenSearch {
  readonly url: string;
  readonly ask: OpenSearch['ask'];
  readonly #logFile: string;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  constructor(url: string, logFile: string, args: readonly string[]) {
    this.url = url;
    this.ask = asking(url);
    this.#logFile = logFile;
    this.#args = args;
  }

  async start(): Promise<void> {
    const log = openSync(this.#logFile, 'a');
    const child = spawnChild('java', this.#args, { stdio: ['ignore', log, log] });
    closeSync(log);
    this.#child = child;
    let said = 'nothing';
    const what = () => `OpenSearch to start; it says ${said}; its log: ${this.#log()}`;
    const isUp = async () => {
      if (!isRunning(child)) throw new Error(`OpenSearch ended while starting: ${this.#log()}`);
      try {
        return await this.ask('GET', '/_cluster/health?wait_for_status=yellow&timeout=5s');
      } catch (error) {
        said = errorText(error);
        return false;
      }
    };
    await waitUntil(isUp, { what, everyMs: 100, timeoutMs: startMsMax });
  }

  async kill(): Promise<void> {
    if (this.#child !== undefined) await endChild(this.#child, 'SIGKILL');
  }

  /** Lets it shut down in order. */
  async stop(): Promise<void> {
    if (this.#child !== undefined) await endChild(this.#child, 'SIGTERM', startMsMax);
  }

  #log(): string {
    return readFileSync(this.#logFile, 'utf8').slice(-4000);
  }
}

function asking(url: string): OpenSearch['ask'] {
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      ...(body !== undefined && {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text || 'null');
  };
}

/**
 * The class path, and a file with all classes parsed and checked, which saves half of a start. Java shares classes of
 * jars only, and only from where they were, so the node's own class has a jar in an entry of its own.
 */
async function javaOptions(): Promise<readonly string[]> {
  const jars = await openSearchJars();
  const key = basename(jars);
  const own = await cached(`${key}-node`, async (dir) => {
    const made = ['--create', '--file', join(dir, 'node.jar'), '-C', jars, 'OpenSearchNode.class'];
    const { exitCode, errors } = await runProgram('jar', made);
    if (exitCode !== 0) throw new Error(`jar failed: ${lastLine(errors)}. ${hint}`);
  });
  const classPath = ['-cp', `${join(own, 'node.jar')}:${join(jars, '*')}`];
  const archive = (dir: string) => join(dir, 'classes.jsa');
  const classes = await cached(`${key}-classes`, async (dir) => {
    const node = await newNode({}, [`-XX:ArchiveClassesAtExit=${archive(dir)}`, ...classPath]);
    await node.start();
    await node.stop();
  });
  return [`-XX:SharedArchiveFile=${archive(classes)}`, ...classPath];
}

/** The directory of its jars. The first call on a machine downloads about 50 MB. */
async function openSearchJars(): Promise<string> {
  const made = ['pom.xml', 'OpenSearchNode.java'].map((name) => readFileSync(file(name)));
  const key = createHash('sha256').update(Buffer.concat(made)).digest('hex').slice(0, 12);
  return await cached(`opensearch-${key}`, fetchJars);
}

async function fetchJars(dir: string): Promise<void> {
  await needCommands(['javac', 'mvn'], ['default-jdk-headless', 'maven'], hint);
  const fetched = await runProgram('mvn', [
    ...['-B', '-q', '-ntp', '-f', file('pom.xml'), 'dependency:copy-dependencies'],
    ...['-DincludeScope=runtime', `-DoutputDirectory=${dir}`],
  ]);
  const compile = ['-cp', join(dir, '*'), '-d', dir, file('OpenSearchNode.java')];
  const done = fetched.exitCode === 0 ? await runProgram('javac', compile) : fetched;
  if (done.exitCode === 0) return;
  const cause = done.output.match(/\[ERROR\] (.*)/)?.[1] ?? lastLine(done.errors);
  throw new Error(`fetching OpenSearch from Maven Central failed: ${cause}. ${hint}`);
}
