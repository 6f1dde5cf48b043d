// `${exec:…}`: how a command is split, when it runs again, and that a failure keeps the last value. And the program
// that the command runs: hung, failing, talkative, missing; with nothing of its output in an error.

import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { CommandValues, type SecretCommand, splitCommand } from '../../src/config/commands.ts';
import { parseConfig } from '../../src/config/config.ts';
import { type Config, loadConfig, reloadConfig } from '../../src/config/index.ts';
import { runCommand } from '../../src/config/run-command.ts';
import { ExportError } from '../../src/contracts/index.ts';
import { refreshSecrets } from '../../src/tools/index.ts';
import { isAlive } from '../support/children.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { aConfig, flawLines } from './config-text.ts';

const canary = 'hunter2-canary';

/** An executable shell script. */
function script(lines: string, mode = 0o755): string {
  const file = join(tempDir('exec-'), 'secret-helper');
  writeFileSync(file, `#!/bin/sh\n${lines}\n`);
  chmodSync(file, mode);
  return file;
}

function aCommand(text: string): SecretCommand {
  const command = splitCommand(text);
  if (command === null) throw new Error(`no command: ${text}`);
  return command;
}

test.each([
  ['vault kv get', ['vault', 'kv', 'get']],
  ['a  b ', ['a', 'b']],
  ['sh -c "echo a b"', ['sh', '-c', 'echo a b']],
  [`jq '.a[0] | "x"'`, ['jq', '.a[0] | "x"']],
  ['a --name="b c"d ""', ['a', '--name=b cd', '']],
  ['a "b', null],
  ['', null],
  ['  ', null],
  ['"" b', null],
])('splitCommand splits %j into %j', (text, args) => {
  expect(splitCommand(text)?.args ?? null).toEqual(args);
});

describe('values', () => {
  function someValues() {
    let now = 0;
    const runs: string[] = [];
    const open: PromiseWithResolvers<string>[] = [];
    const values = new CommandValues(
      ({ text }) => {
        runs.push(text);
        const answer = Promise.withResolvers<string>();
        open.push(answer);
        return answer.promise;
      },
      () => now,
    );
    const pass = (ms: number) => {
      now += ms;
    };
    return { values, runs, open, pass };
  }

  test('a command runs once when the config is read, and again at most once in 30 s', async () => {
    const { values, runs, open, pass } = someValues();
    const command = aCommand('get');
    const first = [values.prepare([command], {}), values.prepare([command], {})];
    open[0]?.resolve('one');
    await Promise.all(first);
    await values.prepare([command], {});
    pass(29_999);
    const early = values.refresh(command, {});
    // Checked before the wait: a second run would never end here.
    expect([runs.length, values.value(command)]).toEqual([1, 'one']);
    await early;

    pass(1);
    const again = [values.refresh(command, {}), values.refresh(command, {})];
    expect(values.value(command)).toBe('one');
    open[1]?.resolve('two');
    await Promise.all(again);

    expect([runs.length, values.value(command)]).toEqual([2, 'two']);
  });

  test('a failure keeps the last value, is reported, and is not repeated for 30 s', async () => {
    const { values, runs, open, pass } = someValues();
    const command = aCommand('get');
    const failures: string[] = [];
    values.onFailure((_, { message }) => failures.push(message));
    const first = values.prepare([command], {});
    open[0]?.resolve('one');
    await first;
    pass(30_000);
    const again = values.refresh(command, {});
    open[1]?.reject(new ExportError('config_invalid', 'no network', { next: '' }));
    await again;
    const soon = values.refresh(command, {});

    expect(runs).toHaveLength(2);
    await soon;
    expect(values.value(command)).toBe('one');
    expect(failures).toEqual(['no network']);
  });

  test('300 commands run at most 16 at a time', async () => {
    let [running, most] = [0, 0];
    const values = new CommandValues(
      async ({ text }) => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return `value of ${text}`;
      },
      () => 0,
    );
    const commands = Array.from({ length: 300 }, (_, n) => aCommand(`get ${n}`));

    await values.prepare(commands, {});

    expect(most).toBe(16);
    expect(values.value(aCommand('get 299'))).toBe('value of get 299');
  });
});

describe('the program', () => {
  const run = async (text: string) => {
    const env = { PATH: process.env.PATH };
    return await runCommand(aCommand(text).args, { env, name: '${exec:helper …}' });
  };

  test.each([
    ['echo value', 'value'],
    ['printf value', 'value'],
    ['printf "a\\nb\\n"', 'a\nb'],
    ['printf "a\\n\\n"', 'a\n'],
    ['printf "a\\r\\n"', 'a'],
    ['echo " a "', ' a '],
    ['echo $1', 'one two'],
  ])('its output without the newline at its end: %s', async (lines, value) => {
    expect(await run(`${script(lines)} "one two"`)).toBe(value);
  });

  test.each([
    ['exit 1', `echo ${canary}; echo ${canary} >&2; exit 1`, 'it ended with exit code 1'],
    ['a signal', `echo ${canary}; kill -9 $$`, 'it was ended by SIGKILL'],
    ['nothing', `echo ${canary} >&2`, 'it wrote nothing to standard output'],
    ['no text', 'printf "\\377"', 'its output is not UTF-8 text'],
    ['1 MB', `yes ${canary} | head -c 1000000; sleep 600`, 'its output is larger than 64 KiB'],
  ])('%s is a failure that shows no output', async (_, lines, why) => {
    const failure = await run(`${script(lines)} ${canary}`).catch((error: unknown) => error);

    expect(failure).toMatchObject({ message: `\${exec:helper …}: ${why}` });
    expect(JSON.stringify(failure) + String(failure)).not.toContain(canary);
  });

  test('a hung command ends after 10 s, with the children that it started', async () => {
    const pidFile = join(tempDir('exec-'), 'pid');
    const failure = run(script(`sleep 600 & echo $! > ${pidFile}; wait`));

    await expect(failure).rejects.toThrow('it was still running after 10 s');
    const pid = Number(readFileSync(pidFile, 'utf8'));
    await waitUntil(() => !isAlive(pid), { what: 'the child of the hung command to end' });
  });

  test('a missing program and one without rights have a next step', async () => {
    await expect(run('/nowhere/vault kv')).rejects.toMatchObject({
      message: '${exec:helper …}: it cannot be started: there is no such program',
      next: 'Install the program, or write its full path.',
    });
    await expect(run(script('echo a', 0o644))).rejects.toMatchObject({
      message: '${exec:helper …}: it cannot be started: the user of sluice may not execute it',
    });
  });
});

describe('in a config', () => {
  const withSecret = (value: string) =>
    aConfig({
      sinks: `  post: { type: http, url: "https://h.example", headers: { Authorization: ${value} } }`,
    });

  async function headerOf(text: string): Promise<string> {
    const file = join(tempDir('exec-'), 'c.yaml');
    writeFileSync(file, text);
    const config = await loadConfig(file, { env: { PATH: process.env.PATH } });
    const headers = config.sinks.post?.settings.headers as Record<string, { reveal(): string }>;
    return headers.Authorization?.reveal() ?? '';
  }

  test.each([
    ['${exec:SCRIPT a b}', '2 a|b'],
    ['"Bearer ${exec:SCRIPT a}"', 'Bearer 1 a|'],
    ['${exec:SCRIPT "a b" c}', '2 a b|c'],
    ['\'${exec:SCRIPT "a b" c}\'', '2 a b|c'],
    ["'${exec:SCRIPT ''a b'' c}'", '2 a b|c'],
    ["${exec:SCRIPT 'a b' c}", '2 a b|c'],
    ['${exec:SCRIPT "{a: b}" c}', '2 {a: b}|c'],
    ['"${exec:SCRIPT \\"a b\\" c}"', '2 a b|c'],
    ['$${exec:SCRIPT}', '${exec:SCRIPT}'],
  ])('%s reads as %s', async (written, meant) => {
    const helper = script('echo "$# $1|$2"');

    const value = await headerOf(withSecret(written.replace('SCRIPT', helper)));

    expect(value).toBe(meant.replace('SCRIPT', helper));
  });

  test('a command in a comment never runs', async () => {
    const touched = join(tempDir('exec-'), 'touched');
    const helper = script(`touch ${touched}; echo a`);

    await headerOf(`# was: \${exec:${helper}}\n${withSecret('b')}`);

    expect(existsSync(touched)).toBe(false);
  });

  test('a failing command is an error of its setting, without its arguments', async () => {
    const helper = script('exit 3');
    const file = join(tempDir('exec-'), 'c.yaml');
    writeFileSync(file, withSecret(`\${exec:${helper} ${canary}}`));

    const failure = await loadConfig(file, { env: {} }).catch((error: Error) => error.message);

    expect(failure).toContain(`\${exec:${helper} …}: it ended with exit code 3`);
    expect(failure).toContain('sinks.post.headers.Authorization');
    expect(failure).not.toContain(canary);
  });

  test('placeholders stand for commands, and the copy of the config keeps them as written', () => {
    const written = '${exec:/nowhere/vault kv get a}';
    const text = withSecret(written);

    const config = parseConfig(text, 'c.yaml', { env: {}, placeholders: 'all' });

    expect(config.unset).toEqual(['${exec:/nowhere/vault …}']);
    expect(JSON.stringify(config.kept)).toContain(written);
    expect(flawLines(text).join()).toContain('${exec:/nowhere/vault …} was not run here');
  });

  test('a reload runs the commands again; another reading of the config does not', async () => {
    const count = join(tempDir('exec-'), 'count');
    const helper = script(`echo x >> ${count}; wc -l < ${count}`);
    const file = join(tempDir('exec-'), 'c.yaml');
    writeFileSync(
      file,
      aConfig({ sinks: `  post: { type: http, url: "https://\${exec:${helper}}.example" }` }),
    );
    const env = { PATH: process.env.PATH };
    const later = performance.now() + 30_000;
    const urlOf = ({ sinks }: Config) => sinks.post?.settings.url;

    expect(urlOf(await loadConfig(file, { env }))).toBe('https://1.example');
    const now = vi.spyOn(performance, 'now').mockReturnValue(later + 30_000);
    afterThisTest(() => now.mockRestore());
    expect(urlOf(await loadConfig(file, { env }))).toBe('https://1.example');
    expect(urlOf(await reloadConfig(file, { env }))).toBe('https://2.example');
    expect(urlOf(await reloadConfig(file, { env }))).toBe('https://2.example');
  });

  test('refreshSecrets runs the commands of all secrets of the settings again', async () => {
    const count = join(tempDir('exec-'), 'count');
    const helper = script(`echo x >> ${count}; wc -l < ${count}`);
    const file = join(tempDir('exec-'), 'c.yaml');
    writeFileSync(file, withSecret(`\${exec:${helper}}`));
    const { sinks } = await loadConfig(file, { env: { PATH: process.env.PATH } });

    await refreshSecrets(sinks.post?.settings);

    // Within 30 s it is not run again; commands.test.ts has the rule with a clock.
    expect(readFileSync(count, 'utf8')).toBe('x\n');
  });
});
