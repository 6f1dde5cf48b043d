// The Dockerfile against the checkout: there is no engine here to build it, so each path it copies must exist, and each
// command it runs must be one that the program knows.

import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { spawnChild } from '../support/children.ts';
import { aMoment, aServer } from '../watch/a-moment.ts';
import { unknownIn } from './command-line.ts';

const root = join(import.meta.dirname, '..', '..');
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ');

/** The lines that begin with an instruction, without it. */
function instructions(name: string): readonly string[] {
  return dockerfile
    .split('\n')
    .flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []));
}

test('Dockerfile copies only existing files', () => {
  const sources = instructions('COPY')
    .filter((line) => !line.startsWith('--from'))
    .flatMap((line) => line.split(' ').slice(0, -1));

  expect(sources.length).toBeGreaterThan(5);
  expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test('Dockerfile runs as a user without rights', () => {
  expect(instructions('USER')).toEqual(['node']);
});

test('Dockerfile runs commands that the program knows', () => {
  const lists = [...dockerfile.matchAll(/^(?:ENTRYPOINT|CMD) (\[.*\])$/gm)].map(
    ([, list = '[]']) => JSON.parse(list) as string[],
  );
  const script = lists.flat().find((word) => word.endsWith('sluice.js'));
  const commands = lists.map((list) => list.filter((word) => !word.endsWith('sluice.js')));

  expect(script).toBe('/app/src/boot/sluice.js');
  // Run by its first line, so it has to be executable.
  expect(statSync(join(root, 'src/boot/sluice.js')).mode & 0o111).toBe(0o111);
  expect(commands.map(([command]) => command)).toEqual([undefined, 'run']);
  for (const words of commands) expect(words.length === 0 ? [] : unknownIn(words)).toEqual([]);
});

describe('the health check, without a Node of its own', () => {
  const [, list = '[]'] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  const [program = '', ...args] = JSON.parse(list) as string[];
  const exitCode = async (port: number) => {
    const { SLUICE_STATUS: _, ...env } = process.env;
    const child = spawnChild(program, args, {
      env: { ...env, SLUICE_STATUS: `127.0.0.1/${port}` },
      stdio: 'ignore',
    });
    const [code] = await once(child, 'exit');
    return code;
  };
  const portOf = (url: string) => Number(new URL(url).port);

  test('passes where the status server says that the process lives', async () => {
    const { url, close } = await aServer(() => aMoment(), { token: 't' });
    const port = portOf(url);

    expect(await exitCode(port)).toBe(0);

    await close();
    expect(await exitCode(port)).toBe(0);
  });

  test('fails where another answer comes', async () => {
    const server = createServer((_, response) => response.writeHead(503).end());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');

    expect(await exitCode((server.address() as AddressInfo).port)).toBe(1);
    server.close();
  });

  test('fails where no answer comes', async () => {
    const server = createTcpServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');

    expect(await exitCode((server.address() as AddressInfo).port)).toBe(1);
    server.close();
  });
});
