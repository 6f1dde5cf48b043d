// The other programs that peers.ts compares with: where each is found or how it is made, and how it is started on one of its
// configurations in `bench/peers/`. What can be built or installed from its language's registry is, once, into the user's
// cache; one that cannot be had says in a line what to do.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cached, lastLine } from '../test/support/cache.ts';
import { runProgram } from '../test/support/children.ts';
import { goProgram } from '../test/support/go-program.ts';
import { debianProgram } from './debian-program.ts';

/** How a peer is started, and the version that it says it is. */
export interface Program {
  /** The program and its first arguments. */
  readonly command: readonly string[];
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
function versionOf([program = '', ...args]: readonly string[], option: string): string | null {
  const said = spawnSync(program, [...args, option], { encoding: 'utf8' });
  if (said.error !== undefined) return null;
  return /\d+\.\d+(\.\d+)?/.exec(`${said.stdout}${said.stderr}`)?.[0] ?? 'unknown';
}

/** The program that `variable` names or that is on PATH. */
async function installed(variable: string, name: string, option: string): Promise<Program> {
  const command = [process.env[variable] ?? name];
  const version = versionOf(command, option);
  if (version !== null) return { command, version };
  throw new Error(`install it, built for release, or name the program in ${variable}`);
}

/** What a program prints; nothing where it cannot be run. */
function saysOf([program = '', ...args]: readonly string[], option: string): string {
  return spawnSync(program, [...args, option], { encoding: 'utf8' }).stdout ?? '';
}

/** Where `RSYSLOG` says, else Debian's. */
async function rsyslog(): Promise<Program> {
  if (process.env.RSYSLOG !== undefined) return installed('RSYSLOG', 'rsyslogd', '-v');
  const { command, find } = await debianProgram('rsyslog', 'usr/sbin/rsyslogd');
  const env = { RSYSLOG_MODDIR: find('usr/lib/*-linux-gnu*/rsyslog') };
  return { command, env, version: versionOf(command, '-v') ?? 'unknown' };
}

/** Where `SYSLOG_NG` says, else Debian's. */
async function syslogNg(): Promise<Program> {
  if (process.env.SYSLOG_NG !== undefined) return installed('SYSLOG_NG', 'syslog-ng', '--version');
  const program = await debianProgram('syslog-ng-core', 'usr/sbin/syslog-ng', [
    'usr/lib/syslog-ng',
  ]);
  const version = versionOf(program.command, '--version') ?? 'unknown';
  const modules = program.find('usr/lib/syslog-ng/[0-9]*');
  return { command: [...program.command, `--module-path=${modules}`], version };
}

/** A library of Python by pip, in a directory of the cache. */
async function python(name: string, version: string): Promise<Program> {
  const dir = await cached(`${name}-${version}`, async (building) => {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', building, `${name}==${version}`];
    const { exitCode, errors } = await runProgram('python3', args);
    if (exitCode === 0) return;
    throw new Error(`pip has not installed it (${lastLine(errors)}): give it Python 3.11 and PyPI`);
  });
  return { command: ['python3'], env: { PYTHONPATH: dir }, version };
}

/** A program that Go builds once from its directory in `bench/peers/`. */
async function goPeer(name: string, version: string): Promise<Program> {
  const source = new URL(`./peers/${name}`, import.meta.url).pathname;
  const program = await goProgram(source).catch(({ message }: Error) => {
    throw new Error(
      `Go has not built it (${message}): give it Go 1.26 and a module proxy that serves its go.mod`,
    );
  });
  return { command: [program], version };
}

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
    find: syslogNg,
    args: (config, dir) => [
      ...['-F', '--no-caps', '-f', config, '--persist-file', join(dir, 'persist')],
      ...['--pidfile', join(dir, 'pid'), '--control', join(dir, 'control')],
    ],
  },
  {
    name: 'Benthos',
    ending: 'yaml',
    sends: 'file',
    find: () => goPeer('benthos', '4.60.0'),
    args: (config) => ['run', config],
  },
  {
    name: 'Bindplane',
    ending: 'yaml',
    sends: 'file',
    find: () => goPeer('bindplane', '1.12.0'),
    args: (config) => [config],
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
