// The commands that inspect and repair the state directory: status, checkpoint, dead-letters.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

async function jsonStatus(config: string) {
  const { stdout, stderr, exitCode } = await runHere(['status', '-c', config, '--json']);
  expect([exitCode, stderr]).toEqual([0, '']);
  return JSON.parse(stdout);
}

async function once(config: string): Promise<string> {
  const { stdout, stderr, exitCode } = await runOnceHere(config);
  expect([exitCode, stderr]).toEqual([0, '']);
  return stdout;
}

describe('status', () => {
  test('works before there is any state', async () => {
    const { config } = await aSetup();

    const status = await jsonStatus(config);

    expect(status).toMatchObject({
      running: null,
      streams: [
        { name: 'audit', source: 'audit', checkpoint_at: null, lag_ms: null, state: 'new' },
      ],
      spool: { bytes: 0, max_bytes: 1024 ** 3, events: 0, oldest_at: null },
      sinks: [
        { name: 'disk', type: 'file', position: 0, backlog: 0, dead_letters: 0, state: 'new' },
      ],
      orphans: { streams: [], sinks: [] },
    });
  });

  test('shows how a running process stands', async () => {
    const { config } = await aSetup();
    const sluice = startSluice(['run', '-c', config]);
    const caughtUp = async () => {
      const status = await jsonStatus(config);
      return status.sinks[0].position === 250 && status.streams[0].lag_ms !== null && status;
    };

    const status = await waitUntil(caughtUp, { what: 'a status that is caught up' });

    expect(status.running).toContain(`process ${sluice.pid}`);
    expect(status.streams[0]).toMatchObject({ error: null, state: expect.stringMatching(/^\w+$/) });
    expect(status.streams[0].checkpoint_at).toMatch(/Z$/);
    expect(status.sinks[0]).toMatchObject({ backlog: 0, error: null });
  });

  test('names the last error, and streams and sinks that have state and are not in the config', async () => {
    const { config, stateDir } = await aSetup();
    await once(config);
    const database = new DatabaseSync(join(stateDir, 'sluice.db'));
    database.exec(`
      UPDATE note SET facts = json_set(facts, '$.error',
        json('{"code":"upstream_refused","message":"it said\\u001b[2J no","next":"Ask."}'));
      UPDATE checkpoint SET stream = 'left/c-9';
      INSERT INTO position VALUES ('gone', 3, NULL, 0);`);
    database.close();

    const { stdout } = await runHere(['status', '-c', config]);

    expect(stdout).toContain('it said');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).toContain('stream left/c-9 has a checkpoint and is not in the config');
    expect(stdout).toContain('sink gone has a position and is not in the config');
    expect((await jsonStatus(config)).orphans).toEqual({ streams: ['left/c-9'], sinks: ['gone'] });
  });
});

describe('checkpoint', () => {
  test('show prints facts and no cursor', async () => {
    const { config, stateDir } = await aSetup();
    await once(config);
    const cursor = heldCursor(stateDir);

    const { stdout, exitCode } = await runHere([
      'checkpoint',
      'show',
      '-c',
      config,
      '--stream',
      'audit',
    ]);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^records known +250, since \d{4}/m);
    expect(stdout).toMatch(/^resumes at +cursor with digest [0-9a-f]{12}$/m);
    expect(cursor.length).toBeGreaterThan(6);
    expect(stdout).not.toContain(cursor);
  });

  test('an unknown stream is a usage error that names the near one', async () => {
    const { config } = await aSetup();

    const { stderr, exitCode } = await runHere([
      'checkpoint',
      'reset',
      '-c',
      config,
      '--stream',
      'audti',
    ]);

    expect(exitCode).toBe(64);
    expect(stderr).toContain('did you mean audit?');
  });

  test('reset reads everything again and delivers nothing twice', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await once(config);

    const { exitCode } = await runHere(['checkpoint', 'reset', '-c', config, '--stream', 'audit']);
    sandbox.control.resetRequests();
    const summary = await once(config);

    expect(exitCode).toBe(0);
    expect(summary).toContain('0 new records');
    expect(sandbox.control.requests()[auditPath]?.requests).toBeGreaterThan(2);
    expect(delivered()).toHaveLength(250);
  });

  test('reset --forget delivers everything again, with the same uids', async () => {
    const { config, delivered } = await aSetup();
    await once(config);
    const args = ['checkpoint', 'reset', '-c', config, '--stream', 'audit', '--forget'];

    const { stdout } = await runHere(args);
    await once(config);

    expect(stdout).toContain('250 records are forgotten');
    expect(delivered()).toHaveLength(500);
    expect(new Set(delivered()).size).toBe(250);
  });

  test('rewind resumes from a position of the time, and delivers nothing twice', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await once(config);
    const between = new Date().toISOString();
    sandbox.control.grow(auditPath, 120);
    await once(config);
    const args = ['checkpoint', 'rewind', '-c', config, '--stream', 'audit', '--to', between];

    const { stdout, exitCode } = await runHere(args);
    sandbox.control.resetRequests();
    const summary = await once(config);

    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^audit: the stream resumes where it was at 20.*digest [0-9a-f]{12}\)$/m,
    );
    expect(summary).toContain('0 new records');
    expect(sandbox.control.requests()[auditPath]?.requests).toBeLessThan(4);
    expect(delivered()).toHaveLength(370);
  });

  test('rewind --forget delivers records read since the time again, once, and nothing else', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await once(config);
    const between = new Date().toISOString();
    sandbox.control.grow(auditPath, 120);
    await once(config);
    const args = ['checkpoint', 'rewind', '-c', config, '--stream', 'audit'];

    const { stdout } = await runHere([...args, '--to', between, '--forget']);
    await once(config);
    await runHere(['checkpoint', 'reset', '-c', config, '--stream', 'audit']);
    await once(config);

    expect(stdout).toContain('120 records read since');
    const [before, again] = [delivered().slice(250, 370), delivered().slice(370)];
    expect(again).toHaveLength(120);
    expect(new Set(again)).toEqual(new Set(before));
  });

  test('rewind to before everything reads the list again from its beginning', async () => {
    const { config, delivered, sandbox } = await aSetup();
    await once(config);
    const args = ['checkpoint', 'rewind', '-c', config, '--stream', 'audit'];

    const early = await runHere([...args, '--to', '2001-01-01T00:00:00Z']);
    const wrong = await runHere([...args, '--to', 'yesterday']);
    sandbox.control.resetRequests();
    const summary = await once(config);

    expect(early.exitCode).toBe(0);
    expect(early.stdout).toContain('audit: the stream is read again from its start');
    expect(wrong.exitCode).toBe(64);
    expect(summary).toContain('0 new records');
    expect(sandbox.control.requests()[auditPath]?.requests).toBeGreaterThan(2);
    expect(delivered()).toHaveLength(250);
  });

  test('reset --forget beside a running process is carried out by that process', async () => {
    const { config, delivered } = await aSetup();
    const sluice = startSluice(['run', '-c', config]);
    const has = (count: number) => () =>
      existsSync(join(dirname(config), 'events.ndjson')) && delivered().length === count;
    await waitUntil(has(250), { what: '250 events' });
    const args = ['checkpoint', 'reset', '-c', config, '--stream', 'audit', '--forget'];

    const { stdout, stderr, exitCode } = await runHere(args);
    await waitUntil(has(500), { what: 'all events again' });

    expect([exitCode, stderr, sluice.running]).toEqual([0, '', true]);
    expect(stdout).toContain('audit: checkpoint deleted; the stream is read again from its start');
    expect(stdout).toContain('250 records are forgotten');
    expect(new Set(delivered()).size).toBe(250);
    await sluice.kill();
  });
});

describe('dead-letters', () => {
  /** A sink whose receiver rejects one event permanently, until it is set to accept. */
  async function aPickySink() {
    const receiver = await startHttpReceiver();
    const picky = 'evt_000000007"';
    receiver.answer(({ body }) => ({
      answer: 'reply',
      status: body.includes(picky) ? 400 : 200,
    }));
    const setup = await aSetup({
      sandbox: { events: 40 },
      sinks: [`  post: { type: http, url: "${receiver.url}", format: json }`],
    });
    return { ...setup, receiver, picky };
  }

  test('run --once exits 1 at one; list shows the rejected event and the reason, as a table and as JSON', async () => {
    const { config } = await aPickySink();
    const run = await runOnceHere(config);

    const table = await runHere(['dead-letters', 'list', '-c', config]);
    const json = await runHere(['dead-letters', 'list', '-c', config, '--sink', 'post', '--json']);

    expect(run.exitCode).toBe(1);
    expect(run.stdout).toContain('post: 39 delivered, 0 held, 1 dead letters; refused for good');
    const deadLetter = JSON.parse(json.stdout);
    expect(deadLetter).toMatchObject({ sink: 'post', source: 'audit', stream: 'audit' });
    expect(deadLetter.reason).toContain('400');
    expect(table.stdout.split('\n')[1]).toContain(deadLetter.uid);
  });

  test('retry puts a dead letter back for its sink while a process runs, and it is delivered', async () => {
    const { config, receiver, picky } = await aPickySink();
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('dead letter');
    await waitUntil(async () => (await jsonStatus(config)).sinks[0].dead_letters === 1, {
      what: 'the letter to be held',
    });
    receiver.answer({ answer: 'reply', status: 200 });
    const before = receiver.requests.length;

    const { stdout, exitCode } = await runHere(['dead-letters', 'retry', '-c', config]);

    expect(exitCode).toBe(0);
    expect(stdout).toContain('post: 1 put back');
    await receiver.waitFor((all) => all.slice(before).some(({ body }) => body.includes(picky)));
    await sluice.kill();
    const { stdout: left } = await runHere(['dead-letters', 'list', '-c', config]);
    expect(left).toBe('no dead letters\n');
    expect((await jsonStatus(config)).sinks[0]).toMatchObject({ backlog: 0, position: 41 });
  });

  test('drop deletes a dead letter and names it', async () => {
    const { config } = await aPickySink();
    await runOnceHere(config);
    const { exitCode: ofOldOnes } = await runOnceHere(config);

    const drop = ['dead-letters', 'drop', '-c', config, '--sink', 'post'];
    const unsaid = await runHere(drop);
    const held = (await jsonStatus(config)).sinks[0].dead_letters;
    const other = await runHere([...drop, '--yes', '--uid', 'f'.repeat(64)]);
    const letters = await runHere(['dead-letters', 'list', '-c', config, '--json']);
    const { uid } = JSON.parse(letters.stdout);
    const { stdout } = await runHere([...drop, '--yes', '--uid', uid]);

    expect(ofOldOnes).toBe(0);
    expect([unsaid.exitCode, held]).toEqual([1, 1]);
    expect(unsaid.stdout).toContain('1 dead letter would be deleted for good; nothing was dropped');
    expect([other.exitCode, other.stderr]).toEqual([64, expect.stringContaining('no dead letter')]);
    expect(stdout).toBe(`dropped 1 of post: ${uid}\n`);
    expect((await jsonStatus(config)).sinks[0].dead_letters).toBe(0);
  });

  test('retry keeps a dead letter that no route would carry', async () => {
    const { config, stateDir } = await aPickySink();
    await runOnceHere(config);
    const database = new DatabaseSync(join(stateDir, 'sluice.db'));
    database.exec("UPDATE dead_letter SET sink = 'gone'");
    database.close();

    const { stdout } = await runHere(['dead-letters', 'retry', '-c', config]);

    expect(stdout).toContain('1 stay dead letters: the sink gone is not in the config');
    const { stdout: listed } = await runHere(['dead-letters', 'list', '-c', config, '--json']);
    expect(JSON.parse(listed).sink).toBe('gone');
  });

  test('an unknown sink is a usage error that names the near one', async () => {
    const { config } = await aPickySink();
    await runOnceHere(config);

    const { stderr, exitCode } = await runHere([
      'dead-letters',
      'drop',
      '-c',
      config,
      '--sink',
      'psot',
    ]);

    expect(exitCode).toBe(64);
    expect(stderr).toContain('did you mean post?');
  });
});

function heldCursor(stateDir: string): string {
  const database = new DatabaseSync(join(stateDir, 'sluice.db'), { readOnly: true });
  try {
    const row = database.prepare("SELECT body FROM checkpoint WHERE stream = 'audit'").get();
    return JSON.parse(String(row?.body)).end.resume.cursor;
  } finally {
    database.close();
  }
}
