// `sluice healthy`: its exit code for each answer of the status server. The health check of an image relies on it.

import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { aMoment, aServer } from '../watch/a-moment.ts';

function configWith(status: object): string {
  const config = join(tempDir(), 'sluice.yaml');
  const upstream = {
    ...{ api: 'unified', ends: 'never', base_url: 'http://127.0.0.1:1', allow_http: true },
    auth: { client_id: 'id', client_secret: '${env:NOT_IN_THIS_SHELL}', scope: 's' },
  };
  const parts = {
    upstreams: { edge: upstream },
    sources: { audit: { type: 'audit_events', upstream: 'edge' } },
    sinks: { screen: { type: 'stdout' } },
  };
  writeFileSync(config, JSON.stringify({ ...parts, ...status }));
  return config;
}

const healthy = async (config: string) => await runHere(['healthy', '-c', config]);

async function answering(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('0 while the status server answers, without its token; 1 when it is gone', async () => {
  const { url, close } = await aServer(() => aMoment(), { token: 't' });
  const listen = new URL(url).host;
  const config = configWith({ status: { listen, token: 'other' } });

  expect(await healthy(config)).toEqual({ exitCode: 0, stdout: '', stderr: '' });

  await close();
  expect(await healthy(config)).toMatchObject({
    exitCode: 1,
    stderr: `nothing answers at http://${listen}/healthz: no process listens there\n`,
  });
});

test('1 if another status code comes', async () => {
  const listen = await answering((_, response) => response.writeHead(503).end());

  expect(await healthy(configWith({ status: { listen } }))).toMatchObject({
    exitCode: 1,
    stderr: `http://${listen}/healthz answers 503\n`,
  });
});

test('1 if no answer comes in time', async () => {
  const listen = await answering(() => undefined);

  expect(await healthy(configWith({ status: { listen } }))).toMatchObject({
    exitCode: 1,
    stderr: `nothing answers at http://${listen}/healthz: no answer within 3 s\n`,
  });
});

test('0 without a status server, since there is nothing to request', async () => {
  expect(await healthy(configWith({}))).toEqual({ exitCode: 0, stdout: '', stderr: '' });
});

test('2 for a config that nothing runs with and that is invalid', async () => {
  expect(await healthy(configWith({ status: { listen: 'x' } }))).toMatchObject({ exitCode: 2 });
});
