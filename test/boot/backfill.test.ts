// `sluice backfill` where nothing else runs, on the real program: what it delivers, that it goes on where it was cut short,
// and how it says what is wrong.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runProgram } from '../../src/boot/program.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aConfigFile, deliveredIn, pastSpan } from './a-backfill.ts';
import { aSetup, auditPath, type Setup } from './a-setup.ts';
import { type Heard, heard } from './heard.ts';

const pageRecords = 100;

/** A setup whose upstream does not answer the sixth request for audit events. */
async function aHangingSetup(): Promise<Setup> {
  const rules = [{ path: auditPath, after: 5, times: 1, fault: 'hang' as const }];
  return await aSetup({ sandbox: { events: 12 * pageRecords, faults: { rules } } });
}

function requests({ sandbox }: Setup): number {
  return sandbox.control.requests()[auditPath]?.requests ?? 0;
}

async function hanging(setup: Setup): Promise<void> {
  await waitUntil(() => requests(setup) === 6, { what: 'the request that is not answered' });
}

describe('backfill alone', () => {
  test('delivers the events of that time with the uids of the live stream, and leaves that where it was', async () => {
    const setup = await aSetup();
    const { args, ids } = pastSpan(setup, 60, 180);

    const { out, err, code } = await sluice(args);

    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out.at(-1)).toContain(
      `audit: 250 records read, ${ids.length} events held for the sinks`,
    );
    expect(err[0]).toContain('no time filter');
    const past = deliveredIn(setup);
    expect(past.map(({ id }) => id)).toEqual(ids);
    await sluice(['run', '-c', setup.config, '--once']);
    const live = deliveredIn(setup).slice(past.length);
    expect(live).toHaveLength(250);
    const uids = new Map(live.map(({ id, uid }) => [id, uid]));
    expect(past.map(({ uid }) => uid)).toEqual(ids.map((id) => uids.get(id)));
    expect(readdirSync(join(setup.stateDir, 'backfills'))).toEqual([]);
    // What is forgotten of a backfill is not missed.
    expect(readdirSync(setup.stateDir).filter((name) => name.startsWith('damaged'))).toEqual([]);
  });

  test('goes on after SIGKILL where its last page was held, without a gap or a repeat', async () => {
    const setup = await aHangingSetup();
    const { args, ids } = pastSpan(setup, 150, 1_150);
    const first = startSluice(args);
    await hanging(setup);
    await first.kill('SIGKILL');

    const { stderr, exitCode } = await runSluice(args);

    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
    // Twelve pages, one of them asked for twice: what was held is not read again.
    expect(requests(setup)).toBeLessThanOrEqual(14);
  });

  test('stops at SIGINT, says how to go on, and goes on', async () => {
    const setup = await aHangingSetup();
    const { args, ids } = pastSpan(setup, 150, 1_150);
    const first = startSluice(args);
    await hanging(setup);

    const stopped = await first.kill('SIGINT');

    expect(stopped.exitCode).toBe(1);
    expect(stopped.stderr).toContain('the same command line goes on from there');
    const { exitCode } = await runSluice(args);
    expect(exitCode).toBe(0);
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
  });

  test('says what upstream refuses, and goes on once that is mended', async () => {
    const { setup, args, ids } = await aRefused();

    const { code, out } = await sluice(args);

    expect({ code, out }).toMatchObject({ code: 0 });
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
  });

  test('begins anew with --restart, which delivers again', async () => {
    const { setup, args, ids } = await aRefused();

    const { code } = await sluice([...args, '--restart']);

    expect(code).toBe(0);
    const delivered = deliveredIn(setup).map(({ id }) => id);
    expect(delivered).toEqual([...ids.slice(0, pageRecords), ...ids]);
    expect(readdirSync(setup.stateDir).filter((name) => name.startsWith('damaged'))).toEqual([]);
  });
});

/** A backfill that was refused after its first page, and would not be any more. */
async function aRefused(): Promise<{
  setup: Setup;
  args: readonly string[];
  ids: readonly string[];
}> {
  const rules = [{ path: auditPath, after: 1, fault: 403 }];
  const setup = await aSetup({ sandbox: { faults: { rules } } });
  const { args, ids } = pastSpan(setup, 0, 220);
  const { err, code } = await sluice(args);
  expect(code).toBe(1);
  expect(err.join('\n')).toMatch(
    /audit: not all of it: 100 records read, 100 events held .* 0 events still[\s\S]*403/,
  );
  setup.sandbox.control.setFaults({});
  return { setup, args, ids };
}

/** The program within the test's own process. */
function sluice(args: readonly string[]): Promise<Heard> {
  return heard((means) => runProgram([...args, '--log-level', 'error'], means));
}

describe('backfill refuses', () => {
  const from = ['--from', '2026-01-31T08:00:00Z'];

  test.for([
    [
      'a source that is not there',
      ['--source', 'audut', ...from],
      /--source: .* did you mean audit\?/,
    ],
    ['a source without a past', ['--source', 'firewall', ...from], /--source: firewall .* whole/],
    ['no time', ['--source', 'audit'], /--from/],
    ['a time that is none', ['--source', 'audit', '--from', 'last week'], /--from: .* last week/],
    ['a time to come', ['--source', 'audit', '--from', '2999-01-01T00:00:00Z'], /--from: .* past/],
    [
      'an end before the start',
      ['--source', 'audit', ...from, '--to', '2026-01-31T07:00:00Z'],
      /--to: .* after --from/,
    ],
    [
      'an end to come',
      ['--source', 'audit', ...from, '--to', '2999-01-31T07:00:00Z'],
      /--to: .* past/,
    ],
  ] as const)('%s', async ([, args, said]) => {
    const config = aConfigFile();
    const { err, code } = await sluice(['backfill', '-c', config, ...args]);

    expect(code).toBe(64);
    expect(err.join('\n')).toMatch(said);
  });
});
