// The other programs that peers.ts compares with: where each is found or how it is made, and how it is started on one of its
// configurations in `bench/peers/`. What can be built or installed from its language's registry is, once, into the user's
// cache; one that cannot be had says in a line what to do.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cached, lastLine } from '../test/support/cache.ts';
import { runProgram } from '../test/support/children.ts';
import { goProgram } from '../test/support/go-program.ts';
import { findRsyslog } from '../test/support/rsyslog-program.ts';

/** How a peer is started, and the version that it says it is. */
export interface Program {
  readonly command: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly version: string;
}

/** Another program. */
export interface Peer {
  readonly name: string;
  /** The ending of its configurations. */
  readonly ending: string;
  /** How what it sends over TCP is framed: octet-counted or as lines. `file`: it polls, and writes to a file or its output. */
  readonly sends: 'tcp' | 'lines' | 'file';
  /** Rejects with what to do where it cannot be had. */
  readonly find: () => Promise<Program>;
  /** Whether it can do a job, by the name of its config; undefined: all jobs that it has a config for. */
  readonly can?: (program: Program, job: string) => boolean;
  readonly args: (config: string, dir: string, port: number) => readonly string[];
}

/** The first version number that a program prints; null: it cannot be started. */
function versionOf(command: string, option: string, env: object = {}): string | null {
  const said = spawnSync(command, [option], { env: { ...process.env, ...env }, encoding: 'utf8' });
  if (said.error !== undefined) return null;
  return /\d+\.\d+(\.\d+)?/.exec(`${said.stdout}${said.stderr}`)?.[0] ?? 'unknown';
}

/** The program that `variable` names or that is on PATH. */
async function installed(variable: string, name: string, option: string): Promise<Program> {
  const command = process.env[variable] ?? name;
  const version = versionOf(command, option);
  if (version !== null) return { command, version };
  throw new Error(`install it, built for release, or name the program in ${variable}`);
}

/** What a program prints; nothing where it cannot be run. */
function saysOf(command: string, option: string): string {
  return spawnSync(command, [option], { encoding: 'utf8' }).stdout ?? '';
}

/** Where `RSYSLOG` says, else the one that the tests use. */
async function rsyslog(): Promise<Program> {
  if (process.env.RSYSLOG !== undefined) return installed('RSYSLOG', 'rsyslogd', '-v');
  const { command, libraryDirs, moduleDirs } = await findRsyslog();
  const env = { LD_LIBRARY_PATH: libraryDirs, RSYSLOG_MODDIR: moduleDirs };
  return { command, env, version: versionOf(command, '-v', env) ?? 'unknown' };
}

/** A library of Python by pip, in a directory of the cache. */
async function python(name: string, version: string): Promise<Program> {
  const dir = await cached(`${name}-${version}`, async (building) => {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', building, `${name}==${version}`];
    const { exitCode, errors } = await runProgram('python3', args);
    if (exitCode === 0) return;
    throw new Error(`pip has not installed it (${lastLine(errors)}): give it Python 3.11 and PyPI`);
  });
  return { command: 'python3', env: { PYTHONPATH: dir }, version };
}

const benthosVersion = '4.60.0';
const benthosSource = new URL('./peers/benthos', import.meta.url).pathname;

/** All peers: those that read lines, then those that poll as sluice does. */
export const peers: readonly Peer[] = [
  {
    name: 'Fluent Bit',
    ending: 'yaml',
    sends: 'lines',
    find: () => installed('FLUENT_BIT', 'fluent-bit', '--version'),
    // A build may have been made without it.
    can: ({ command }, job) =>
      job !== 'otlp' || saysOf(command, '--help').includes('opentelemetry'),
    args: (config) => ['-q', '-c', config],
  },
  {
    name: 'rsyslog',
    ending: 'conf',
    sends: 'tcp',
    find: rsyslog,
    args: (config, dir) => ['-n', '-i', join(dir, 'pid'), '-f', config],
  },
  {
    name: 'syslog-ng',
    ending: 'conf',
    sends: 'tcp',
    find: () => installed('SYSLOG_NG', 'syslog-ng', '--version'),
    args: (config, dir) => [
      ...['-F', '--no-caps', '-f', config, '--persist-file', join(dir, 'persist')],
      ...['--pidfile', join(dir, 'pid'), '--control', join(dir, 'control')],
    ],
  },
  {
    name: 'Benthos',
    ending: 'yaml',
    sends: 'file',
    find: async () => ({ command: await goProgram(benthosSource), version: benthosVersion }),
    args: (config) => ['run', config],
  },
  {
    name: 'dlt',
    ending: 'py',
    sends: 'file',
    find: () => python('dlt', '1.31.0'),
    args: (config, dir, port) => [config, dir, String(port)],
  },
  {
    name: 'Singer SDK',
    ending: 'py',
    sends: 'file',
    find: () => python('singer-sdk', '0.54.9'),
    args: (config, _dir, port) => [config, String(port)],
  },
  {
    name: 'Airbyte CDK',
    ending: 'py',
    sends: 'file',
    find: () => python('airbyte-cdk', '7.39.1'),
    args: (config, dir, port) => [config, dir, config.replace(/py$/, 'yaml'), String(port)],
  },
];

/** The peer's configuration for a job; null where the job is more than it can say. */
export function configOf(peer: Peer, job: string): string | null {
  const name = `${peer.name.toLowerCase().replace(' ', '-')}-${job}.${peer.ending}`;
  const { pathname } = new URL(`./peers/${name}`, import.meta.url);
  return existsSync(pathname) ? pathname : null;
}
