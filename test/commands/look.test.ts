// The commands that look at a running process: top and explain; and status, where its secrets are not at hand.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { explain } from '../../src/commands/explain.ts';
import { readConfigToLook } from '../../src/commands/shared/looking.ts';
import { status } from '../../src/commands/status.ts';
import { top } from '../../src/commands/top.ts';
import { UsageError } from '../../src/contracts/errors.ts';
import { received } from '../run/run-command.ts';
import { runOnceHere, startSluice } from '../support/cli.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';
import { aFailure, aMoment, aServer, aSink } from '../watch/a-moment.ts';
import { aSetup } from './a-setup.ts';

/** Of util-linux: gives a program a terminal. */
const script = '/usr/bin/script';
const mainFile = join(import.meta.dirname, '../../src/boot/sluice.js');

/** A config with a stream that is read, one that is halted, and the status on a port. */
async function aWatchedSetup() {
  const port = await freePort();
  const setup = await aSetup({
    more: [`status: { listen: "127.0.0.1:${port}", token: "\${env:TOKEN}" }`],
  });
  const text = readFileSync(setup.config, 'utf8').replace(
    'sinks:',
    '  lost: { type: audit_events, upstream: edge, every: 1h, path: /nothing }\nsinks:',
  );
  writeFileSync(
    setup.config,
    text.replace('client_secret: sandbox-secret', 'client_secret: "${env:SECRET}"'),
  );
  const env = { SECRET: 'sandbox-secret', TOKEN: 'a-token' };
  return { ...setup, env, port };
}

async function explained(config: string, stream: string, env = {}) {
  return (await received((deps) => explain.run({ stream, config }, deps), env)).out.join('\n');
}

describe('while a process runs', () => {
  test('top shows it, explain describes each stream, and status needs no secret', async () => {
    const { config, env, port } = await aWatchedSetup();
    const sluice = startSluice(['run', '-c', config], { env });
    await sluice.waitForLine('the stream is halted');
    const read = async () => {
      const { out } = await received((deps) => top.run({ config }, deps), env);
      return /^audit .* waiting .*its schedule/m.test(out.join('\n')) && out;
    };

    const screen = (await waitUntil(read, { what: 'a screen with audit read' })).join('\n');
    const [audit, lost, blind] = await Promise.all([
      explained(config, 'audit', env),
      explained(config, 'lost', env),
      explained(config, 'audit'),
    ]);
    const { out } = await received((deps) => status.run({ config }, deps));
    await sluice.kill();
    const after = await received((deps) => top.run({ config }, deps), env);

    expect(screen).toMatch(/^!! Stream lost is halted: .*404/m);
    expect(screen).toMatch(/^STREAM +STATE .*\nlost +halted/m);
    expect(screen).toMatch(/^disk +file +(idle|sending) /m);
    expect(audit).toMatch(/^audit: (waits for its schedule|is being read)/);
    expect(audit).toMatch(/^read from +audit_events of upstream edge, every 100ms$/m);
    expect(audit).toMatch(/^read +250 records in \d+ polls? since 20/m);
    expect(audit).toMatch(
      /^copied +[\d.]+ % of 250 lines of audit; \d+ of a shape not learned yet, \d+ with an unusual value$/m,
    );
    expect(audit).toMatch(
      /^checkpoint +saved \d+s ago; resumes at cursor with digest [0-9a-f]{12}$/m,
    );
    expect(lost).toMatch(/^lost: is halted, and waits for an operator/);
    expect(lost).toMatch(/^last error +upstream_refused: .*404/m);
    expect(lost).toMatch(/^request_id +req_\w+$/m);
    expect(lost).toMatch(/^next step +Check path/m);
    expect(blind).toContain('does not accept the credential of status as it reads here (401)');
    expect(out.join('\n')).toContain(`running: process ${sluice.pid}`);
    expect(out.join('\n')).toContain(
      'not set here, and not needed to look: ${env:SECRET}, ${env:TOKEN}',
    );
    expect(after.code).toBe(3);
    expect(after.err.join('\n')).toContain(
      `nothing answers at http://127.0.0.1:${port}: no process listens there`,
    );
  });
});

describe('top on a terminal', () => {
  test('redraws in place, keeps the last status while no process answers, and restores the terminal', async ({
    skip,
  }) => {
    if (!existsSync(script)) skip(`a terminal is made by ${script}, and it is not here`);
    const error = aFailure('no\u001b[2J');
    const server = await aServer(() => aMoment({ sinks: [aSink({ state: 'refused', error })] }));
    const { port } = new URL(server.url);
    const { config } = await aSetup({ more: [`status: { listen: "127.0.0.1:${port}" }`] });
    const terminal = aTerminal(['top', '-c', config]);
    const screens = () => terminal.text.split('\u001b[H').slice(1);
    const shows = (text: string) =>
      waitUntil(() => screens().at(-1)?.includes(text), {
        what: () => `${text}, and not ${JSON.stringify(terminal.text)}`,
      });

    await shows('siem refuses everything');
    await server.close();
    await shows('nothing answers at');
    const last = screens().at(-1);
    terminal.type('q');
    const code = await terminal.ended;

    expect(code).toBe(0);
    expect(last).toContain('siem refuses everything');
    expect(last).toContain('\u001b[31mrefused');
    expect(terminal.text).not.toContain('\u001b[2J');
    expect(terminal.text).toMatch(/^\u001b\[\?1049h/);
    expect(terminal.text).toMatch(/\u001b\[\?1049l$/);
    expect(terminal.text.split('\u001b[?25l')).toHaveLength(2);
    expect(terminal.text.split('\u001b[?25h')).toHaveLength(2);
  });
});

describe('if no process can answer', () => {
  test('top names the missing part and ends with 3', async () => {
    const { config } = await aSetup();

    const { out, err, code } = await received((deps) => top.run({ config }, deps));

    expect(code).toBe(3);
    expect(out).toEqual([]);
    expect(err.join('\n')).toContain('has no status.listen');
    expect(err.join('\n')).toContain('status: { listen: 127.0.0.1:8686 }');
  });

  test('another server on that port is not believed', async () => {
    const stranger = createServer((_request, response) =>
      response.end('{"streams":"\u001b[2J","at":1}'),
    );
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => stranger.close());
    const { port } = stranger.address() as AddressInfo;
    const { config } = await aSetup({ more: [`status: { listen: "127.0.0.1:${port}" }`] });

    const { err, code } = await received((deps) => top.run({ config }, deps));

    expect(code).toBe(3);
    expect(err.join('\n')).toContain('is not sluice, or is another version (200)');
  });
});

describe('explain', () => {
  test('says of a stream that was never read how it would begin', async () => {
    const { config, stateDir } = await aSetup();

    const reported = await explained(config, 'audit');

    expect(reported).toMatch(/^audit: is not read, since nothing runs .*; it has read nothing yet/);
    expect(reported).toMatch(/^checkpoint +none: it starts from the beginning$/m);
    expect(reported).toMatch(new RegExp(`^next step +npx sluice run -c ${config}$`, 'm'));
    expect(existsSync(stateDir)).toBe(false);
  });

  test('and where, if not from the beginning', async () => {
    const path = 'type: audit_events, upstream: edge';
    const sources = [
      `  late: { ${path}, start: 2020-01-31T00:00:00Z }`,
      `  news: { ${path}, start: now }`,
    ];
    const { config } = await aSetup({ sandbox: { events: 3 }, sources });

    expect(await explained(config, 'late')).toMatch(/^checkpoint .*starts at 2020-01-31T00:00:00/m);
    const sluice = startSluice(['run', '-c', config]);
    await sluice.waitForLine('the stream starts from the beginning');
    await sluice.waitForLine('"start":"2020-01-31T00:00:00.000Z"');
    await sluice.waitForLine('the stream starts now, without existing records');
    await sluice.kill('SIGTERM');
  });

  test('shows the learned facts after a run, and prints no cursor', async () => {
    const { config } = await aSetup({ sandbox: { events: 5 } });
    await runOnceHere(config);

    const reported = await explained(config, 'audit');

    expect(reported).toContain('it resumes from its checkpoint');
    expect(reported).toMatch(/^read whole +\d+s ago$/m);
    expect(reported).toMatch(/^order +not known yet: sluice requests both ends/m);
    expect(reported).toMatch(/^checkpoint +saved \d+s ago; resumes at \S/m);
  });

  test('an unknown stream is a usage error that names the near one', async () => {
    const { config } = await aSetup();

    await expect(explained(config, 'audti')).rejects.toThrow(UsageError);
    await expect(explained(config, 'audti')).rejects.toThrow('did you mean audit?');
  });
});

test('only unreadable values get placeholders, and are named', () => {
  const config = join(tempDir(), 'sluice.yaml');
  const auth = 'client_id: "${env:ID}", client_secret: "${file:/nowhere/secret}"';
  writeFileSync(
    config,
    [
      'state: { dir: "${env:DIR}", keep: "${env:KEEP:-2h}" } # not ${env:COMMENTED}',
      `upstreams: { a: { api: unified, ends: never, base_url: "\${env:URL}", auth: { ${auth} } } }`,
      'sources: { audit: { type: audit_events, upstream: a } }',
      'sinks: { screen: { type: stdout } }',
    ].join('\n'),
  );

  const looked = readConfigToLook(config, { DIR: '/var/lib/mine', ID: '' });

  expect(looked.config.state).toMatchObject({ dir: '/var/lib/mine', keepMs: 7_200_000 });
  expect(looked.unread).toEqual(['${env:URL}', '${env:ID}', '${file:/nowhere/secret}']);
});

test('status still reports every flaw of a config other than its secrets', async () => {
  const config = join(tempDir(), 'bad.yaml');
  writeFileSync(config, 'upstreams: { a: { api: unifed, base_url: "${env:NOT_SET}" } }\n');

  await expect(received((deps) => status.run({ config }, deps))).rejects.toThrow(
    /api: .*did you mean unified[\s\S]*NOT_SET is not set/,
  );
});

/** Sluice on a terminal of its own. */
function aTerminal(args: readonly string[]) {
  const command = [process.execPath, mainFile, ...args].map((word) => `'${word}'`).join(' ');
  const child = spawn(script, ['-qefc', command, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', SHELL: '/bin/sh' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  afterThisTest(() => child.kill('SIGKILL'));
  const terminal = {
    text: '',
    type: (keys: string) => child.stdin.write(keys),
    ended: new Promise<number | null>((resolve) => child.once('close', resolve)),
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    terminal.text += text;
  });
  return terminal;
}
