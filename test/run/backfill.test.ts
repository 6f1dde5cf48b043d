// `sluice backfill` without another process, on the real program: its deliveries, that it resumes after an
// interruption, and its errors.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { runProgram } from '../../src/boot/program.ts';
import { aSetup, auditPath, type Setup } from '../commands/a-setup.ts';
import { runSluice, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aConfigFile, deliveredIn, pastSpan } from './a-backfill.ts';
import { type Received, received } from './run-command.ts';

const pageRecords = 100;
/** Key and check of a record that is remembered. */
const identityBytes = 20;

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
    expect(await listed(setup)).toMatchObject([{ state: 'done', held: ids.length, share: 1 }]);
    // What is forgotten of a backfill is not missed.
    expect(readdirSync(setup.stateDir).filter((name) => name.startsWith('damaged'))).toEqual([]);
  });

  test('resumes after SIGKILL after its last stored page, without a gap or a repeat', async () => {
    const setup = await aHangingSetup();
    const { args, ids } = pastSpan(setup, 150, 1_150);
    const first = startSluice(args);
    await hanging(setup);
    // Pages that wait for the next one are held together before long.
    const areHeld = () => knownIn(setup) >= 5 * pageRecords - 150;
    await waitUntil(areHeld, { what: 'the pages before it to be held' });
    await first.kill('SIGKILL');

    const { stderr, exitCode } = await runSluice(args);

    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
    // Twelve pages, one of them requested twice: stored pages are not read again.
    expect(requests(setup)).toBeLessThanOrEqual(14);
  });

  test('stops at SIGINT, prints how to resume, and resumes', async () => {
    const setup = await aHangingSetup();
    const { args, ids } = pastSpan(setup, 150, 1_150);
    const first = startSluice(args);
    await hanging(setup);

    const stopped = await first.kill('SIGINT');

    expect(stopped.exitCode).toBe(1);
    expect(stopped.stderr).toContain('the same command line resumes from there');
    const { exitCode } = await runSluice(args);
    expect(exitCode).toBe(0);
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
  });

  test('carries out other requests meanwhile', async () => {
    const setup = await aSetup();
    await sluice(['run', '-c', setup.config, '--once']);
    const { config } = setup;
    const { args } = pastSpan(setup, 60, 180);
    const rules = [{ path: auditPath, fault: 'hang' as const }];
    setup.sandbox.control.setFaults({ rules });
    const reading = startSluice(args);
    await waitUntil(async () => (await listed(setup))[0]?.state === 'reading', { what: 'it' });

    const rewind = ['checkpoint', 'rewind', '-c', config, '--stream', 'audit'];
    const rewound = await sluice([...rewind, '--to', new Date().toISOString()]);
    const sink = await sluice(['retry', 'disk', '-c', config]);
    const stream = await sluice(['retry', 'audit', '-c', config]);

    expect(rewound.out.join()).toContain('audit: records already read');
    expect(sink).toMatchObject({ code: 0, out: ['disk: retrying now'] });
    expect(stream).toMatchObject({ code: 0, out: [expect.stringContaining('the next start')] });
    expect((await reading.kill('SIGINT')).exitCode).toBe(1);
  });

  test('repeats upstream’s rejection, and resumes once the fault is corrected', async () => {
    const { setup, args, ids } = await aRefused();

    const { code, out } = await sluice(args);

    expect({ code, out }).toMatchObject({ code: 0 });
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids);
  });

  test('restarts with --restart, which delivers again', async () => {
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
    /audit: incomplete: 100 records read, 100 events held .* 0 events still[\s\S]*403/,
  );
  setup.sandbox.control.setFaults({});
  return { setup, args, ids };
}

describe('backfill list and cancel', () => {
  test('show past backfills, why one failed and how to resume, and forget it', async () => {
    const { setup, args, ids } = await aRefused();
    const [begun] = await listed(setup);

    const { out } = await sluice(['backfill', 'list', '-c', setup.config]);
    const cancelled = await sluice(['backfill', 'cancel', begun?.id ?? '', '-c', setup.config]);

    expect(begun).toMatchObject({ source: 'audit', state: 'failed', read: 100, held: 100 });
    expect(begun?.error?.message).toContain('403');
    expect(out[0]).toMatch(new RegExp(`^${begun?.id.slice(0, 8)}  audit  2.*Z to 2.*Z  failed$`));
    expect(out[1]).toMatch(/^ +.*100 records read, 100 events held .*, last step \ds ago$/);
    const span = args.slice(3).join(' ');
    expect(out[2]).toContain(`Then: npx sluice backfill -c ${setup.config} ${span}`);
    expect(cancelled).toMatchObject({ code: 0, out: [expect.stringContaining('100 events')] });
    expect(await listed(setup)).toEqual([]);
    expect(memoryIn(setup)).toBe(0);
    expect((await sluice(args)).code).toBe(0);
    const delivered = deliveredIn(setup).map(({ id }) => id);
    expect(delivered).toEqual([...ids.slice(0, pageRecords), ...ids]);
  });

  test('cancel stops one that another command does alone, and keeps stored events', async () => {
    const setup = await aHangingSetup();
    const { args, ids } = pastSpan(setup, 150, 1_150);
    const reading = startSluice(args);
    await hanging(setup);
    const begun = await waitUntil(async () => (await listed(setup)).find(({ read }) => read > 0), {
      what: 'what is being read',
    });

    const cancelled = await sluice([
      ...['backfill', 'cancel', begun.id.slice(0, 6), '-c', setup.config],
    ]);

    const { exitCode, stderr } = await reading.exited;
    expect(begun.state).toBe('reading');
    expect(cancelled).toMatchObject({ code: 0, err: [] });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
    expect(stderr).toContain('audit: cancelled: 500 records read');
    expect(deliveredIn(setup).map(({ id }) => id)).toEqual(ids.slice(0, 350));
    expect(await listed(setup)).toEqual([]);
    expect(memoryIn(setup)).toBe(0);
  });

  test('cancel refuses one that is done, and an unknown one, and lists the known ones', async () => {
    const setup = await aSetup({ sandbox: { events: 20 } });
    const cancel = (id: string) => sluice(['backfill', 'cancel', id, '-c', setup.config]);
    const before = await cancel('c0ffee');
    await sluice(pastSpan(setup, 5, 15).args);
    const [begun] = await listed(setup);

    const unknown = await cancel('c0ffee');
    const done = await cancel(begun?.id ?? '');

    expect(before.err.join()).toContain(`none was begun: there is no state in ${setup.stateDir}`);
    expect(unknown).toMatchObject({ code: 64 });
    expect(unknown.err.join()).toContain(`there are ${begun?.id.slice(0, 8)}`);
    expect(done).toMatchObject({ code: 64, err: [expect.stringContaining('is done')] });
    expect(await listed(setup)).toHaveLength(1);
  });
});

interface Listed {
  readonly id: string;
  readonly state: string;
  readonly read: number;
  readonly error: { readonly message: string } | null;
}

async function listed({ config }: Setup): Promise<readonly Listed[]> {
  const { out } = await sluice(['backfill', 'list', '-c', config, '--json']);
  return out.map((line) => JSON.parse(line));
}

/** Records whose identities backfills have committed. */
function knownIn({ stateDir }: Setup): number {
  const database = new DatabaseSync(join(stateDir, 'sluice.db'), { readOnly: true });
  try {
    const query =
      "SELECT ifnull(sum(length(keys)), 0) AS n FROM identities WHERE stream LIKE '%#backfill-%'";
    return Number(database.prepare(query).get()?.n) / identityBytes;
  } finally {
    database.close();
  }
}

/** Rows that the state database holds for backfills. */
function memoryIn({ stateDir }: Setup): number {
  const database = new DatabaseSync(join(stateDir, 'sluice.db'), { readOnly: true });
  try {
    const tables = ['checkpoint', 'identities', 'entity'].map(
      (table) => `SELECT count(*) AS n FROM ${table} WHERE stream LIKE '%#backfill-%'`,
    );
    return Number(database.prepare(`SELECT (${tables.join(') + (')}) AS n`).get()?.n);
  } finally {
    database.close();
  }
}

/** The program within the test's own process. */
function sluice(args: readonly string[]): Promise<Received> {
  const level = args[1] === '-c' ? ['--log-level', 'error'] : [];
  return received((deps) => runProgram([...args, ...level], deps));
}

describe('backfill refuses', () => {
  const from = ['--from', '2026-01-31T08:00:00Z'];

  test.for([
    [
      'a source that is not there',
      ['--source', 'audut', ...from],
      /--source: .* did you mean audit\?/,
    ],
    [
      'a source without a past',
      ['--source', 'firewall', ...from],
      /--source: firewall .* one list/,
    ],
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
