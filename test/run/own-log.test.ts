// sluice's own log lines at a collector, on the real program: each is on stderr as well; a collector that is away,
// hangs or rejects delays nothing, is reported on stderr alone, and the lines it never got are counted.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { logEvents } from '../../src/contracts/log-events.ts';
import { aSetup } from '../commands/a-setup.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { startOtlpReceiver } from '../support/otlp-receiver.ts';
import { freePort, waitUntil } from '../support/temp.ts';

function logTo(url: string, more = ''): string {
  return `log: { otlp: { url: "${url}", headers: { Authorization: "\${env:LOG_TOKEN}" }${more} } }`;
}

const events = new Set(Object.values(logEvents).flatMap((area) => Object.keys(area)));
const env = { LOG_TOKEN: 'Bearer a-log-secret' };

test('the lines of a run go to the collector as they stand on stderr, the last ones too', async () => {
  const receiver = await startOtlpReceiver();
  const { config, dir, delivered } = await aSetup({ more: [logTo(receiver.url)] });
  const isThere = () => existsSync(join(dir, 'events.ndjson'));

  const sluice = startSluice(['run', '-c', config], { env });
  await sluice.waitForLine('running');
  await waitUntil(() => isThere() && delivered().length === 250, { what: 'all events' });
  const { stderr, exitCode } = await sluice.kill('SIGTERM');

  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const records = receiver.records();
  expect(exitCode).toBe(0);
  expect(receiver.faults).toEqual([]);
  expect(records.map(({ body }) => body)).toEqual(lines.map(({ msg }) => msg));
  expect(records.map(({ attributes }) => attributes.event)).toEqual(
    lines.map(({ event }) => event),
  );
  expect(lines.filter(({ event }) => !events.has(event))).toEqual([]);
  // A line begins with what a search needs first.
  const firsts = lines.map((line) => Object.keys(line).slice(0, 3).join());
  expect(new Set(firsts)).toEqual(new Set(['level,time,event']));
  expect(records.map(({ severityText }) => severityText.toLowerCase())).toEqual(
    lines.map(({ level }) => level),
  );
  expect(records.at(-1)).toMatchObject({
    resource: {
      'service.name': 'sluice',
      'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/),
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    },
    body: 'stopped',
    ...{ severityNumber: 9, traceId: '', spanId: '' },
  });
  const full = records.find(({ body }) => body === 'sink is caught up');
  expect(full?.attributes).toMatchObject({ sink: 'disk', position: 250n });
  expect(receiver.requests[0]?.headers.authorization).toBe(env.LOG_TOKEN);
  expect(JSON.stringify(records, (_, value) => String(value))).not.toContain('a-log-secret');
});

test('a collector that is away delays nothing, and is reported once, on stderr', async () => {
  const { config, delivered } = await aSetup({
    more: [logTo(`http://127.0.0.1:${await freePort()}/v1/logs`), 'shutdown: { timeout: 1s }'],
  });

  const { stderr, exitCode } = await runSluice(['run', '-c', config, '--once'], { env });

  const reported = stderr.split('\n').filter((line) => line.includes('do not reach the collector'));
  expect(exitCode).toBe(0);
  expect(delivered()).toHaveLength(250);
  expect(reported).toHaveLength(1);
  expect(JSON.parse(reported[0] ?? '')).toMatchObject({ level: 'warn', lost: expect.any(Number) });
  expect(stderr).not.toContain('a-log-secret');
});

test('a collector that never answers does not hold the end of a run for longer than its timeout', async () => {
  const hung = await startHttpReceiver();
  hung.answer({ answer: 'hang' });
  const { config } = await aSetup({
    more: [logTo(`${hung.url}/v1/logs`), 'shutdown: { timeout: 1s }'],
  });

  const { stderr, exitCode } = await runSluice(['run', '-c', config, '--once'], { env });

  expect(exitCode).toBe(0);
  expect(hung.requests.length).toBeGreaterThan(0);
  expect(stderr).toContain('sluice ended before the collector accepted them');
});

test('lines that a collector refuses are counted in /metrics', async () => {
  const receiver = await startOtlpReceiver();
  receiver.answer({ answer: 'reply', status: 401 });
  const port = await freePort();
  const { config } = await aSetup({
    more: [logTo(receiver.url), `status: { listen: 127.0.0.1:${port} }`],
  });

  const sluice = startSluice(['run', '-c', config], { env });
  await sluice.waitForLine('do not reach the collector');
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

  expect(metrics).toMatch(/^sluice_log_lines_lost_total [1-9]\d*$/m);
});

test('tls beside an http:// address, and a file that is not there, are refused by check', async () => {
  const { config } = await aSetup({
    more: [logTo('http://127.0.0.1:4318/v1/logs', ', tls: { ca_file: /nowhere/ca.pem }')],
  });

  const { stderr, exitCode } = await runSluice(['check', '-c', config], { env });

  expect(exitCode).toBe(2);
  expect(stderr).toContain('tls is set, but url begins with http://');
  expect(stderr).toContain('/nowhere/ca.pem');
});
