// `sluice run` on the real program: what it says at its start and end, its exit codes, and how it ends.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runSluice, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { freePort, waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

/** A sink without a receiver, tried again soon. */
async function aDeadSink(): Promise<string> {
  const url = `http://127.0.0.1:${await freePort()}`;
  return `  post: { type: http, url: "${url}", format: json, retry: { min: 50ms, max: 200ms } }`;
}

describe('run --once', () => {
  test('delivers everything, sums up on stdout and exits 0', async () => {
    const { config, delivered, sandbox } = await aSetup();

    const { stdout, exitCode } = await runSluice(['run', '-c', config, '--once']);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('250 new records read from 1 stream');
    expect(stdout).toContain('disk: 250 delivered, 0 held, 0 dead letters');
    expect(new Set(delivered()).size).toBe(sandbox.ledger().list(auditPath).size);
  });

  test('repeats nothing when run again, and delivers new records', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await runSluice(['run', '-c', config, '--once']);
    sandbox.control.grow(auditPath, 30);

    const { stdout, stderr, exitCode } = await runSluice(['run', '-c', config, '--once']);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('30 new records');
    expect(stderr).toContain('the stream resumes after its checkpoint');
    expect(delivered()).toHaveLength(280);
    expect(new Set(delivered()).size).toBe(280);
  });

  test('keeps stdout for events where a sink writes them there', async () => {
    const { config } = await aSetup({ sinks: ['  screen: { type: stdout, format: json }'] });

    const { stdout, stderr } = await runSluice(['run', '-c', config, '--once']);

    const lines = stdout.split('\n').slice(0, -1);
    expect(lines).toHaveLength(250);
    expect(lines.every((line) => JSON.parse(line).class_uid > 0)).toBe(true);
    expect(stderr).toContain('screen: 250 delivered');
  });

  test('exits 1 at its --timeout, with the number of stored events and the reason', async () => {
    const { config } = await aSetup({ sinks: [await aDeadSink()] });

    const { stdout, exitCode } = await runSluice([
      'run',
      '-c',
      config,
      '--once',
      '--timeout',
      '3s',
    ]);

    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/post: 0 delivered, 250 held, 0 dead letters; still held: \S+/);
  });

  test('exits 1 when a stream cannot be read, and delivers the others', async () => {
    const { config } = await aSetup({
      more: ['  screen: { type: stdout }'],
      sandbox: { faults: { rules: [{ path: auditPath, fault: 403 }] } },
    });

    const { stderr, exitCode } = await runSluice(['run', '-c', config, '--once']);

    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^!! Stream audit is halted: .*403.*\n {3}Give the API user of upstream edge read access/m,
    );
    expect(stderr).toMatch(/^disk: 0 delivered, 0 held, 0 dead letters$/m);
  });
});

describe('run', () => {
  test('logs where it resumes, delivers new records, and drains at SIGTERM with exit 0', async () => {
    const { config, delivered, sandbox } = await aSetup();
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('the stream starts from the beginning');
    await waitUntil(() => existing(delivered).length === 250, { what: '250 events' });
    sandbox.control.grow(auditPath, 20);
    await waitUntil(() => delivered().length === 270, { what: '20 more events' });

    const { stderr, exitCode } = await sluice.kill('SIGTERM');

    expect(exitCode).toBe(0);
    const last = stderr
      .trim()
      .split('\n')
      .slice(-3)
      .map((line) => JSON.parse(line));
    expect(last.map(({ msg }) => msg)).toEqual([
      'stopping; delivering stored events first',
      'sink is caught up',
      'stopped',
    ]);
    const { checkpoint } = await secondStart(config);
    expect(checkpoint).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  test('refuses a directory that another run holds, naming it, with exit 1', async () => {
    const { config } = await aSetup();
    const first = startSluice(['run', '-c', config]);
    await first.waitForLine('"running"');

    const second = await runSluice(['run', '-c', config]);

    expect(second.exitCode).toBe(1);
    expect(second.stderr).toContain(`process ${first.pid}`);
    expect(first.running).toBe(true);
  });

  test.each([
    ['a state directory', { stateDir: '/proc/none/state' }],
    ['a file', { sinks: ['  disk: { type: file, path: /proc/none/out.ndjson, format: json }'] }],
  ])('says so where %s is to be where none can be made', async (_, wishes) => {
    const { config } = await aSetup(wishes);

    const { stderr, exitCode } = await runSluice([
      'run',
      '-c',
      config,
      '--once',
      '--timeout',
      '5s',
    ]);

    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /to \/proc\/none\/out.ndjson: .*\(ENOENT\)|\/proc\/none\/state: it cannot be written \(ENOENT\)/,
    );
  });

  test('names the events kept for a sink that is down, and exits 0', async () => {
    const { config } = await aSetup({
      sandbox: { events: 80 },
      sinks: [await aDeadSink()],
      more: ['shutdown: { timeout: 1s }'],
    });
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('sink_failed');

    const { stderr, exitCode } = await sluice.kill('SIGINT');

    expect(exitCode).toBe(0);
    const held = stderr
      .split('\n')
      .find((line) => line.includes('"events remain in the spool for the sink"'));
    expect(JSON.parse(held ?? '{}')).toMatchObject({ sink: 'post', held: 80, level: 'warn' });
  });

  test('ends at once with exit 1 at a second signal', async () => {
    const receiver = await startHttpReceiver();
    receiver.answer({ answer: 'hang' });
    const { config } = await aSetup({
      sinks: [`  post: { type: http, url: "${receiver.url}", format: json }`],
      more: ['shutdown: { timeout: 60s }'],
    });
    const sluice = startSluice(['run', '-c', config]);
    await receiver.waitFor(1);
    process.kill(sluice.pid, 'SIGTERM');
    await sluice.waitForLine('stopping');
    // A signal that comes twice within a moment is one: the second is sent until it counts.
    const again = setInterval(() => sluice.running && process.kill(sluice.pid, 'SIGTERM'), 100);

    const { exitCode, stderr } = await sluice.exited.finally(() => clearInterval(again));

    expect(exitCode).toBe(1);
    expect(stderr).toContain('stopped_at_once');
  });

  test('treats a signal that npm repeats after Ctrl-C as one', async () => {
    const { config, delivered } = await aSetup();
    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(() => existing(delivered).length === 250, { what: '250 events' });

    process.kill(sluice.pid, 'SIGINT');
    process.kill(sluice.pid, 'SIGINT');

    const { exitCode } = await sluice.exited;
    expect(exitCode).toBe(0);
  });

  test('delivers each event once to a file through a SIGKILL', { tags: ['long'] }, async () => {
    const { config, delivered, dir } = await aSetup({ sandbox: { events: 20_000 } });
    const sluice = startSluice(['run', '-c', config]);
    await waitUntil(() => existing(() => lines(dir)).length > 1_000, { what: 'some events' });
    await sluice.kill('SIGKILL');

    const { exitCode } = await runSluice(['run', '-c', config, '--once']);

    expect(exitCode).toBe(0);
    expect(delivered()).toHaveLength(20_000);
    expect(new Set(delivered()).size).toBe(20_000);
  });

  test('prints no secret, token or cursor, even at the level debug', async () => {
    const { config, sandbox } = await aSetup();
    await runSluice(['run', '-c', config, '--once']);
    sandbox.control.grow(auditPath, 300);

    const { stdout, stderr } = await runSluice([
      'run',
      '-c',
      config,
      '--once',
      '--log-level',
      'debug',
    ]);

    expect(stdout + stderr).not.toMatch(/sandbox-secret|Bearer|cursor=/);
  });
});

async function secondStart(config: string): Promise<{ checkpoint: string }> {
  const sluice = startSluice(['run', '-c', config]);
  const line = await sluice.waitForLine('the stream resumes after its checkpoint');
  await sluice.waitForLine('the sink resumes from its position');
  await sluice.kill();
  return { checkpoint: JSON.parse(line).at };
}

/** What is in a file that may not be there yet. */
function existing(read: () => readonly string[]): readonly string[] {
  try {
    return read();
  } catch {
    return [];
  }
}

function lines(dir: string): readonly string[] {
  return readFileSync(join(dir, 'events.ndjson'), 'utf8').split('\n');
}
