// Secrets by `${exec:…}` in the real program: what runs when, that a rotated secret applies while sluice runs, that the
// secret is in no log, state, page or process title, and that no command outlives sluice. And each recipe of
// docs/secrets.md with a stand-in for its tool.

import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/index.ts';
import { isAlive } from '../support/children.ts';
import { runHere, runSluice, startSluice } from '../support/cli.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { aSetup, auditPath } from './a-setup.ts';

/** A setup whose client secret is printed by a command, from a file that the test rotates. */
async function withCommand(more: readonly string[] = []) {
  const setup = await aSetup({ sandbox: { events: 20 }, more });
  const [secretFile, runsFile] = [join(setup.dir, 'vault'), join(setup.dir, 'runs')];
  const helper = join(setup.dir, 'vault-helper');
  const command = (lines: string) => {
    writeFileSync(helper, `#!/bin/sh\necho run >> ${runsFile}\n${lines}\n`);
    chmodSync(helper, 0o755);
  };
  command(`echo "warning: secret is $(cat ${secretFile})" >&2\ncat ${secretFile}`);
  writeFileSync(secretFile, 'sandbox-secret\n');
  const text = readFileSync(setup.config, 'utf8');
  writeFileSync(setup.config, text.replace('sandbox-secret', `\${exec:${helper} kv get x}`));
  const runs = () => {
    try {
      return readFileSync(runsFile, 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  return { ...setup, secretFile, helper, command, runs };
}

test('a rotated secret applies while sluice runs, and no secret is in a log, state or title', async () => {
  const { config, dir, sandbox, secretFile, runs, delivered, command } = await withCommand([
    'status: { listen: "127.0.0.1:0" }',
    'log: { level: debug }',
  ]);
  const sluice = startSluice(['run', '-c', config]);
  await waitUntil(() => delivered().length >= 20, { what: 'the first events' });
  expect(runs()).toBe(1);
  const titles = readdirSync('/proc').flatMap((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      return [];
    }
  });

  writeFileSync(secretFile, 'sandbox-secret-2\n');
  sandbox.control.rotateSecret('sandbox-secret-2');
  sandbox.control.revokeTokens();
  sandbox.control.grow(auditPath, 5);
  await waitUntil(() => delivered().length >= 25, { what: 'events with the rotated secret' });
  expect(runs()).toBeGreaterThan(1);

  // Later the command fails: the last value stays in use.
  command('exit 1');
  sandbox.control.grow(auditPath, 5);
  await waitUntil(() => delivered().length >= 30, { what: 'events with the kept secret' });
  const { exitCode, stderr } = await sluice.kill();

  expect(exitCode).toBe(0);
  const state = readdirSync(join(dir, 'state')).map((name) =>
    readFileSync(join(dir, 'state', name), 'latin1'),
  );
  for (const text of [stderr, ...state, ...titles]) expect(text).not.toContain('sandbox-secret');
});

test('check runs the commands, and check --without-secrets and status run none', async () => {
  const { config, runs, helper, command } = await withCommand();

  const without = await runHere(['check', '-c', config, '--without-secrets']);
  await runHere(['status', '-c', config]);
  expect([without.exitCode, runs()]).toEqual([0, 0]);

  expect((await runHere(['check', '-c', config], { PATH: process.env.PATH ?? '' })).exitCode).toBe(
    0,
  );
  expect(runs()).toBe(1);
  command('echo $SECRET >&2; exit 4');

  const failed = await runSluice(['check', '-c', config], { env: { SECRET: 'hunter2' } });

  expect(failed.exitCode).toBe(2);
  expect(failed.stderr).toContain(`\${exec:${helper} …}: it ended with exit code 4`);
  expect(failed.stderr + failed.stdout).not.toMatch(/hunter2|kv get/);
});

test('300 secrets: check runs each command once, and reports each that fails', async () => {
  const { config, helper, command, runs } = await withCommand();
  const headers = Array.from(
    { length: 300 },
    (_, n) => `      x-h${n}: "\${exec:${helper} ${n}}"`,
  ).join('\n');
  const text = readFileSync(config, 'utf8');
  writeFileSync(
    config,
    `${text}  post:\n    type: http\n    url: http://127.0.0.1:9\n    headers:\n${headers}\n`,
  );
  command('test "$1" = 299 && exit 1; echo $1');

  const { exitCode, stderr } = await runSluice(['check', '-c', config]);

  expect(exitCode).toBe(2);
  expect(stderr.match(/it ended with exit code 1/g)).toHaveLength(1);
  expect(stderr).toContain('sinks.post.headers.x-h299');
  expect(runs()).toBe(301);
});

test('a command that runs when sluice stops ends with it', async () => {
  const { config, dir, command } = await withCommand();
  const pidFile = join(dir, 'pid');
  command(`echo $$ > ${pidFile}; sleep 600`);
  const sluice = startSluice(['run', '-c', config]);
  const pid = await waitUntil(
    () => {
      try {
        return Number(readFileSync(pidFile, 'utf8'));
      } catch {
        return null;
      }
    },
    { what: 'the command to start' },
  );

  await sluice.kill('SIGINT');

  await waitUntil(() => !isAlive(pid), { what: 'the command to end' });
});

/** Stand-ins for the tools of the recipes: each checks its arguments as the real one would. */
const tools: Readonly<Record<string, string>> = {
  vault: `[ "$*" = "kv get -mount=secret -field=client_secret sluice/edge" ] || exit 2; printf value`,
  aws: `[ "$*" = "secretsmanager get-secret-value --secret-id sluice/edge --query SecretString --output text" ] || exit 2; echo value`,
  gcloud: `[ "$*" = "secrets versions access latest --secret=sluice-edge" ] || exit 2; printf value`,
  az: `[ "$*" = "keyvault secret show --vault-name siem --name sluice-edge --query value --output tsv" ] || exit 2; echo value`,
};

test.each(Object.entries(tools))('the recipe for %s in docs/secrets.md', async (name, lines) => {
  const page = readFileSync('docs/secrets.md', 'utf8');
  const recipe = new RegExp(`\\$\\{exec:${name} [^}]*\\}`).exec(page)?.[0];
  const bin = join(tempDir('tools-'), 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, name), `#!/bin/sh\n${lines}\n`);
  chmodSync(join(bin, name), 0o755);
  const file = join(bin, 'sluice.yaml');
  writeFileSync(
    file,
    `upstreams: { edge: { api: unified, base_url: "https://a.example/v1", auth: { api_key: '${recipe}' } } }
sources: { audit: { type: audit_events, upstream: edge } }
sinks: { screen: { type: stdout } }
`,
  );

  const config = await loadConfig(file, {
    env: { PATH: [bin, process.env.PATH].join(delimiter) },
  });

  expect(config.upstreams.edge?.auth.api_key?.reveal()).toBe('value');
});
