// deploy/compose against the checkout. There is no engine here, so what an engine would find out is looked up: the command
// lines are the program's, the config passes and fits the services around it, and the files it mounts are there.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/config.ts';
import { configEnv } from '../config/config-text.ts';
import { unknownIn } from './command-line.ts';

const folder = join(import.meta.dirname, '..', '..', 'deploy', 'compose');
const root = join(folder, '..', '..');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly network_mode?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly stop_grace_period?: string;
}
const compose: { readonly services: Readonly<Record<string, Service>>; readonly volumes: object } =
  parse(readFileSync(join(folder, 'compose.yaml'), 'utf8'));
const { sluice, sandbox, kafka, topic } = compose.services;

const config = parseConfig(
  readFileSync(join(folder, 'sluice.yaml'), 'utf8'),
  'sluice.yaml',
  configEnv({ STATUS_TOKEN: 't' }),
);

test('the program knows the command lines', () => {
  const commands = [sluice, sandbox].map((service) => service?.command ?? []);

  expect(commands.map(([command]) => command)).toEqual(['run', 'sandbox']);
  for (const command of commands) expect(unknownIn(command)).toEqual([]);
});

test('every file that is mounted is there, and every volume is declared', () => {
  const sources = Object.values(compose.services).flatMap(({ volumes = [] }) =>
    volumes.map((volume) => volume.split(':')[0] ?? ''),
  );
  const files = sources.filter((source) => source.startsWith('.'));
  const named = sources.filter((source) => !source.startsWith('.'));

  expect(files).toEqual(['./sluice.yaml']);
  expect(files.filter((file) => !existsSync(join(folder, file)))).toEqual([]);
  expect(named).toEqual(Object.keys(compose.volumes));
  expect(existsSync(join(folder, sandbox?.build ?? '', 'Dockerfile'))).toBe(true);
});

describe('the config', () => {
  test('passes, and reads the sandbox of the service whose network it shares', () => {
    const port = sandbox?.command?.[(sandbox.command.indexOf('--port') ?? 0) + 1];
    const hosts = Object.values(config.upstreams).map(({ base_url: url }) => new URL(url).host);

    // The sandbox's own secret opens nothing else.
    const notices = config.notices.filter(({ message }) => !/is plain text/.test(message));
    expect(notices).toEqual([]);
    expect(sluice?.network_mode).toBe('service:sandbox');
    expect(hosts).toEqual([`127.0.0.1:${port}`, `127.0.0.1:${port}`]);
  });

  test('keeps its state on the volume, and serves the status where the port is published', () => {
    expect(sluice?.volumes).toContain('state:/var/lib/sluice');
    expect(config.state.dir).toBe('/var/lib/sluice/state');
    expect(sandbox?.ports).toEqual([`127.0.0.1:8686:${config.status?.port}`]);
    expect(config.status?.host).toBe('0.0.0.0');
    expect(Object.keys(sluice?.environment ?? {})).toEqual(['STATUS_TOKEN']);
  });

  test('writes to the topic that is made, on the broker as it is called there', () => {
    const lake = config.sinks.lake?.settings;
    const { command = [] } = topic ?? {};

    expect(kafka?.environment?.KAFKA_ADVERTISED_LISTENERS).toBe(`PLAINTEXT://${lake?.brokers}`);
    expect(command[command.indexOf('--topic') + 1]).toBe(lake?.topic);
  });

  test('drains in less time than the engine gives', () => {
    const seconds = Number.parseInt(sluice?.stop_grace_period ?? '', 10);

    expect(seconds * 1_000).toBeGreaterThan(config.shutdown.timeoutMs);
  });
});

test('Kafka is of the version that the tests run', () => {
  const pom = readFileSync(join(root, 'test', 'support', 'kafka', 'pom.xml'), 'utf8');
  const version = /<artifactId>kafka_[^<]*<\/artifactId>\s*<version>([^<]+)</.exec(pom)?.[1];

  expect([kafka?.image, topic?.image]).toEqual(Array(2).fill(`apache/kafka:${version}`));
});
