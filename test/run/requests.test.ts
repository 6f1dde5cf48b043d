// An operator's requests to the running process: to try again now, and to rewind a stream. And changes that the process
// finds by itself while it waits: another secret, and an upstream that is back.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { aSetup, auditPath, type Setup } from '../commands/a-setup.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { testSome } from '../support/long.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

const hourly = (setup: Setup) => changed(setup, 'every: 100ms', 'every: 1h');

/** Replaces one text in the config by another. */
function changed({ config }: Setup, from: string, to: string): void {
  const before = readFileSync(config, 'utf8');
  if (!before.includes(from)) throw new Error(`the config has no ${from}`);
  writeFileSync(config, before.replace(from, to));
}

async function hasDelivered({ dir, delivered }: Setup, count: number): Promise<void> {
  const held = () => (existsSync(join(dir, 'events.ndjson')) ? delivered().length : 0);
  const what = () => `${count} events to be delivered, ${held()} are`;
  await waitUntil(() => held() >= count, { what });
}

describe('retry', () => {
  test('polls a stream now that waits for its interval', async () => {
    const setup = await aSetup();
    hourly(setup);
    const sluice = startSluice(['run', '-c', setup.config]);
    await hasDelivered(setup, 250);
    setup.sandbox.control.grow(auditPath, 3);

    const { stdout, exitCode } = await runHere(['retry', '-c', setup.config, 'audit']);
    await hasDelivered(setup, 253);

    expect([stdout, exitCode]).toEqual(['audit: retrying now\n', 0]);
    await sluice.kill();
  });

  test('never cuts short a wait that upstream has requested', async () => {
    const setup = await aSetup();
    const fault = { kind: 'status', status: 503, retry_after: 3_600 } as const;
    setup.sandbox.control.setFaults({ rules: [{ path: auditPath, fault }] });
    const sluice = startSluice(['run', '-c', setup.config]);
    await sluice.waitForLine('"wait_ms":3600000');
    setup.sandbox.control.setFaults({});
    const asked = () => setup.sandbox.control.requests()[auditPath]?.requests;
    const before = asked();

    const { stdout, exitCode } = await runHere(['retry', '-c', setup.config, 'audit']);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^audit: upstream requested this wait; retry in (1h 0m|59m)/);
    expect(asked()).toBe(before);
    await sluice.kill();
  });

  test('sends to a sink now that refused everything', async () => {
    const receiver = await startHttpReceiver({ answer: () => ({ answer: 'reply', status: 401 }) });
    const setup = await aSetup({
      sinks: [`  post: { type: http, url: "${receiver.url}", format: json, retry: { max: 1h } }`],
    });
    const sluice = startSluice(['run', '-c', setup.config]);
    await sluice.waitForLine('sink_refused');
    receiver.answer({ answer: 'reply', status: 200 });
    const before = receiver.requests.length;

    const { stdout, exitCode } = await runHere(['retry', '-c', setup.config, 'post']);
    await receiver.waitFor(before + 1, 30_000);

    expect([stdout, exitCode]).toEqual(['post: retrying now\n', 0]);
    await sluice.kill();
  });

  test('is left to the next start if nothing runs, and rejects unknown names', async () => {
    const setup = await aSetup();
    await runOnceHere(setup.config);

    const later = await runHere(['retry', '-c', setup.config, 'disk']);
    const unknown = await runHere(['retry', '-c', setup.config, 'audti']);
    const sluice = startSluice(['run', '-c', setup.config]);
    await sluice.waitForLine((line) => line.includes('retry_requested') && line.includes('disk'));

    expect([later.exitCode, unknown.exitCode]).toEqual([0, 1]);
    expect(later.stdout).toContain('the next start');
    expect(unknown.stderr).toContain('did you mean audit?');
    await sluice.kill();
  });
});

test('retry and rewind are carried out by run --once as well', async () => {
  const setup = await aSetup();
  await runOnceHere(setup.config);
  await runHere(['retry', '-c', setup.config, 'disk']);
  // So that it does not end before the next command has arrived, however long that takes.
  const fault = { kind: 'status', status: 503, retry_after: 1 } as const;
  setup.sandbox.control.setFaults({ rules: [{ path: auditPath, fault }] });
  const sluice = startSluice(['run', '-c', setup.config, '--once']);
  await sluice.waitForLine((line) => line.includes('retry_requested') && line.includes('disk'));

  const args = ['checkpoint', 'rewind', '-c', setup.config, '--stream', 'audit'];
  const { stdout, exitCode } = await runHere([...args, '--to', '2020-01-01T00:00:00Z', '--forget']);

  setup.sandbox.control.setFaults({});
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('250 records read since')]);
  expect((await sluice.exited).exitCode).toBe(0);
  expect(setup.delivered()).toHaveLength(500);
});

test('rewind beside a running process delivers again the records read since, and the process continues', async () => {
  const setup = await aSetup();
  const { config, sandbox, delivered } = setup;
  const sluice = startSluice(['run', '-c', config]);
  await hasDelivered(setup, 250);
  const between = new Date().toISOString();
  sandbox.control.grow(auditPath, 120);
  await hasDelivered(setup, 370);
  const args = ['checkpoint', 'rewind', '-c', config, '--stream', 'audit', '--to', between];

  const known = await runHere(args);
  const forgotten = await runHere([...args, '--forget']);
  await hasDelivered(setup, 490);
  sandbox.control.grow(auditPath, 3);
  await hasDelivered(setup, 493);

  expect([known.exitCode, forgotten.exitCode, sluice.running]).toEqual([0, 0, true]);
  expect(known.stdout).toMatch(
    /^audit: the stream resumes where it was at 20.*digest [0-9a-f]{12}\)$/m,
  );
  expect(forgotten.stdout).toContain('120 records read since');
  const [before, again] = [delivered().slice(250, 370), delivered().slice(370, 490)];
  expect(new Set(again)).toEqual(new Set(before));
  expect(delivered()).toHaveLength(493);
  await sluice.kill();
});

test('a rewind that cannot be says so, beside a running process too', async () => {
  const setup = await aSetup();
  const rules = [{ path: '/v1/**', fault: { kind: 'status' as const, status: 503 } }];
  setup.sandbox.control.setFaults({ rules });
  const sluice = startSluice(['run', '-c', setup.config]);
  await sluice.waitForLine('could not be read');
  const args = ['checkpoint', 'rewind', '-c', setup.config, '--stream', 'audit'];

  const { stderr, exitCode } = await runHere([...args, '--to', '2026-01-01T00:00:00Z']);

  expect(exitCode).toBe(1);
  expect(stderr).toContain('rewinding audit: it was never read');
  await sluice.kill();
});

test('a sink that rejects everything is tried again once its secret is corrected', async () => {
  const key = join(tempDir('secret-'), 'key');
  writeFileSync(key, 'Bearer old');
  const receiver = await startHttpReceiver({
    answer: ({ headers }) => ({
      answer: 'reply',
      status: headers.authorization === 'Bearer new' ? 200 : 401,
    }),
  });
  const headers = `headers: { authorization: "\${file:${key}}" }`;
  const { config } = await aSetup({
    sandbox: { events: 20 },
    sinks: [
      `  post: { type: http, url: "${receiver.url}", format: json, ${headers}, retry: { max: 1h } }`,
    ],
  });
  const sluice = startSluice(['run', '-c', config]);
  await sluice.waitForLine('sink_refused');
  const before = receiver.requests.length;

  writeFileSync(key, 'Bearer new');
  await sluice.waitForLine('the receiver accepts events again');

  expect(receiver.requests[before]?.headers.authorization).toBe('Bearer new');
  await sluice.kill();
});

describe('while a stream waits', () => {
  test('a secret that is corrected in its file is used at once', async () => {
    const setup = await aSetup();
    const secret = join(setup.dir, 'secret');
    writeFileSync(secret, 'wrong');
    changed(setup, 'client_secret: sandbox-secret', `client_secret: "\${file:${secret}}"`);
    const sluice = startSluice(['run', '-c', setup.config]);
    await sluice.waitForLine('the stream is halted');

    writeFileSync(secret, 'sandbox-secret\n');
    const mendedAt = performance.now();
    await sluice.waitForLine('can be read again', 45_000);

    // A minute is what it would have waited else.
    expect(performance.now() - mendedAt).toBeLessThan(45_000);
    expect(setup.sandbox.control.requests()['/v1/oauth/token']?.requests).toBe(2);
    await hasDelivered(setup, 250);
    await sluice.kill();
  });

  testSome(1, [405, 404, 409, 302])('one stray %i costs it seconds', async (status) => {
    const setup = await aSetup();
    const fault = { kind: 'status', status } as const;
    setup.sandbox.control.setFaults({ rules: [{ path: auditPath, after: 1, times: 1, fault }] });
    const sluice = startSluice(['run', '-c', setup.config]);

    await hasDelivered(setup, 250);

    expect((await sluice.kill()).stderr).not.toContain('is halted');
  });
});
