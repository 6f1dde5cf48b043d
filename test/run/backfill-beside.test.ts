// `sluice backfill` beside a process that runs with the config, on the real program: that process does it, the command
// follows it, and neither's end costs anything.

import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { FaultScript } from '../../src/sandbox/sandbox.ts';
import { aSetup, auditPath, type Setup } from '../commands/a-setup.ts';
import {
  type RunningSluice,
  runHere,
  runOnceHere,
  runSluice,
  startSluice,
} from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { deliveredIn, pastSpan } from './a-backfill.ts';

const events = 600;

/** With these no backfill ends by itself, however long a command beside it takes. */
const refusing: FaultScript = {
  rules: [{ path: auditPath, fault: { kind: 'status', status: 503, retry_after: 1 } }],
};

/** A running sluice that has delivered everything. */
async function aRunning(): Promise<{ setup: Setup; running: RunningSluice }> {
  const setup = await aSetup({ sandbox: { events } });
  const running = startSluice(['run', '-c', setup.config]);
  await waitUntil(() => deliveredIn(setup).length === events, { what: 'all events' });
  return { setup, running };
}

describe('backfill beside a running process', () => {
  test('is done by that process, which continues with new records', async () => {
    const { setup, running } = await aRunning();
    const { args, ids } = pastSpan(setup, 150, 450);

    const { stdout, stderr, exitCode } = await runSluice(args);

    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(stderr).toContain(`process ${running.pid}`);
    expect(stdout).toContain(`${ids.length} events held for the sinks; every sink has them`);
    const delivered = deliveredIn(setup);
    const past = delivered.slice(events);
    expect(past.map(({ id }) => id)).toEqual(ids);
    const live = new Map(delivered.slice(0, events).map(({ id, uid }) => [id, uid]));
    expect(past.map(({ uid }) => uid)).toEqual(ids.map((id) => live.get(id)));
    setup.sandbox.control.grow(auditPath, 5);
    await waitUntil(() => deliveredIn(setup).length === events + ids.length + 5, {
      what: 'events that came since',
    });
    expect((await running.kill('SIGTERM')).exitCode).toBe(0);
    // What was forgotten of the backfill is not taken for damage at the next start.
    const { stdout: summary } = await runOnceHere(setup.config);
    expect(summary).toContain('0 new records read');
    expect(readdirSync(setup.stateDir).filter((name) => name.startsWith('damaged'))).toEqual([]);
  });

  test('stops with the command, resumes with the same one, and through a restart of that process', async () => {
    const { setup, running } = await aRunning();
    const { args, ids } = pastSpan(setup, 0, 500);
    const { control } = setup.sandbox;
    control.setFaults(refusing);
    const first = startSluice(args);
    await running.waitForLine('backfill_started');
    const stopped = await first.kill('SIGINT');
    control.setFaults({ rules: [{ path: auditPath, fault: { kind: 'delay', ms: 200 } }] });
    const early = deliveredIn(setup).length;
    const second = startSluice(args);
    await waitUntil(() => deliveredIn(setup).length > early, { what: 'more of the past' });
    await running.kill('SIGKILL');
    control.setFaults({});
    startSluice(['run', '-c', setup.config]);

    const { stderr, exitCode } = await second.exited;

    expect(stopped.stderr).toContain('the same command line resumes from there');
    expect(early).toBeLessThan(events + ids.length);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    const past = deliveredIn(setup).slice(events);
    expect(past.map(({ id }) => id)).toEqual(ids);
  });

  test('names the sink that it waits for', async () => {
    const down = '  post: { type: http, url: "http://127.0.0.1:1", format: json }';
    const sinks = ['  screen: { type: stdout, format: json }', down];
    const setup = await aSetup({ sandbox: { events: 20 }, sinks });
    const running = startSluice(['run', '-c', setup.config]);
    await running.waitForLine('sink_failed');
    startSluice(pastSpan(setup, 0, 19).args);
    await running.waitForLine('backfill_started');

    const listed = async () => (await runHere(['backfill', 'list', '-c', setup.config])).stdout;

    await expect.poll(listed, { timeout: 60_000 }).toMatch(/ to deliver to post \(.*ECONNREFUSED/);
  });

  test('is stopped by cancel, which a following command reports, and the live stream continues', async () => {
    const { setup, running } = await aRunning();
    const { control } = setup.sandbox;
    control.setFaults(refusing);
    const following = startSluice(pastSpan(setup, 0, 500).args);
    await running.waitForLine('backfill_started');
    const json = async () =>
      (await runHere(['backfill', 'list', '-c', setup.config, '--json'])).stdout;
    const reading = async () => (await json()).includes('"reading"');
    await waitUntil(reading, { what: 'the backfill to be read' });
    const begun = JSON.parse(await json());

    const cancelled = await runHere(['backfill', 'cancel', begun.id, '-c', setup.config]);

    const { exitCode, stderr } = await following.exited;
    control.setFaults({});
    expect(begun.state).toBe('reading');
    expect(cancelled).toMatchObject({ exitCode: 0, stderr: '' });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
    expect(stderr).toContain('audit: cancelled');
    expect(await json()).toBe('');
    control.grow(auditPath, 5);
    const ids = () => new Set(deliveredIn(setup).map(({ id }) => id)).size;
    await waitUntil(() => ids() === events + 5, { what: 'events that came since' });
  });
});
