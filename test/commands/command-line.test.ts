// The command line as a whole: what shells complete, and what it loads.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { shellCompletion } from '../../src/commands/completion.ts';
import { wholeCommandLine } from '../../src/commands/index.ts';
import { received } from '../run/run-command.ts';
import { runProgram } from '../support/children.ts';
import { tempDir } from '../support/temp.ts';

const tests = join(import.meta.dirname, '../../config/tests/compliance-archive.yaml');
/** The file of one command: neither the list of them nor anything that commands share. */
const commandFile = /^src\/commands\/(?!index\.ts$)[^/]+$/;
const mainFile = join(import.meta.dirname, '../../src/boot/sluice.js');
const sourcesFile = join(import.meta.dirname, '../../src/boot/main.ts');

async function scriptFor(shell: 'bash' | 'zsh' | 'fish'): Promise<string> {
  const { out } = await received((deps) => shellCompletion(wholeCommandLine).run({ shell }, deps));
  const file = join(tempDir(), `sluice.${shell}`);
  writeFileSync(file, out.join('\n'));
  return file;
}

describe('completion', () => {
  test('bash completes commands, options, values and files, behind npx as well', async () => {
    const file = await scriptFor('bash');
    const dir = tempDir();
    writeFileSync(join(dir, 'a file.yaml'), '');
    const lines = [
      ['sluice', 'ch'],
      ['npx', 'sluice', 'dead-letters', ''],
      ['node_modules/.bin/sluice', 'dead-letters', 'list', '--s'],
      ['sluice', 'run', '--log-level', ''],
      ['sluice', 'check', '-c', 'run', '--co'],
      ['sluice', 'test', 'a'],
      ['sluice', 'status', '--config', ''],
      ['sluice', 'completion', 'f'],
      ['sluice', 'init', '--sink', 'k'],
      ['sluice', 'run', '--timeout', ''],
      ['sluice', 'backfill', ''],
      ['sluice', 'backfill', 'cancel', '--c'],
      ['npx', 'another', ''],
    ];
    const asked = lines.map((words) => {
      const quoted = words.map((word) => `'${word}'`).join(' ');
      return `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _sluice; (IFS='|'; echo "\${COMPREPLY[*]}")`;
    });

    const { output } = await runProgram('bash', [
      ...['--norc', '-c', `cd '${dir}'; source '${file}'; ${asked.join('; ')}`],
    ]);

    expect(output.split('\n').slice(0, -1)).toEqual([
      'check|checkpoint',
      'list|retry|drop|add|-h|--help',
      '--sink|--since',
      'debug|info|warn|error',
      '--config|--connect',
      'a file.yaml',
      'a file.yaml',
      'fish',
      'kafka',
      '',
      'list|cancel|-c|--config|--source|--from|--to|--restart|--log-level|-h|--help',
      '--config',
      '',
    ]);
  });

  test.for(['zsh', 'fish'] as const)('%s can read its script', async (shell, { skip }) => {
    if (!has(shell)) skip(`${shell} is not installed here`);
    const file = await scriptFor(shell);

    const { exitCode, errors } = await runProgram(shell, ['-n', file]);

    expect(errors).toBe('');
    expect(exitCode).toBe(0);
  });

  test('each shell’s script names every command and option there is', async () => {
    const texts = await Promise.all(
      (['bash', 'zsh', 'fish'] as const).map(async (shell) => {
        const { out } = await received((deps) =>
          shellCompletion(wholeCommandLine).run({ shell }, deps),
        );
        return out.join('\n');
      }),
    );
    const words = await everyWord();

    expect(words).toContain('dead-letters');
    expect(words).toContain('--connect');
    for (const text of texts) {
      const missing = words.filter((word) => !text.includes(word.replace(/^--/, '')));
      expect(missing).toEqual([]);
    }
  });
});

async function everyWord(): Promise<readonly string[]> {
  const words: string[] = [];
  const visit = (command: Command) => {
    for (const one of command.createHelp().visibleCommands(command)) {
      words.push(one.name());
      visit(one);
    }
    words.push(...command.options.flatMap(({ long }) => long ?? []));
  };
  await received(async (deps) => {
    visit(await wholeCommandLine(deps));
    return 0;
  });
  return words;
}

function has(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe('starting', () => {
  /** Names of the packages, and of our own files, that a command line loads. */
  async function loadedBy(...args: readonly string[]): Promise<readonly string[]> {
    const hook = join(tempDir(), 'hook.mjs');
    writeFileSync(
      hook,
      `import { registerHooks } from 'node:module';
       const urls = [];
       registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
       process.on('exit', () => process.stderr.write('\\nLOADED ' + urls.join(' ')));`,
    );
    const run = ['--import', hook, sourcesFile, ...args];
    const { errors, exitCode } = await runProgram(process.execPath, run);
    expect(exitCode).toBe(0);
    const [, urls = ''] = errors.split('LOADED ');
    return urls.split(' ').flatMap((url) => {
      const [, name] =
        /node_modules\/((?:@[^/]+\/)?[^/]+)|\/((?:src|connectors|formats)\/.+)$/
          .exec(url)
          ?.filter(Boolean) ?? [];
      return name ?? [];
    });
  }

  const heavy = /^(undici|kafkajs|@platformatic|@opentelemetry|syslog-client|pino)/;

  test('--help loads the declarations of the commands, and no client', async () => {
    const all = await loadedBy('--help');
    const one = await loadedBy('top', '--help');

    expect([...all, ...one].filter((name) => heavy.test(name))).toEqual([]);
    expect(one.filter((name) => commandFile.test(name))).toEqual(['src/commands/top.ts']);
  });

  test.each(['check', 'status', 'test'])(
    '%s loads no client, and no other command',
    async (command) => {
      const loaded = await loadedBy(command, ...(command === 'test' ? [tests] : ['-c', aConfig()]));

      const commands = loaded.filter((name) => commandFile.test(name));
      expect(loaded).toContain('zod');
      expect(loaded.filter((name) => heavy.test(name))).toEqual([]);
      expect(commands).toEqual([`src/commands/${command}.ts`]);
    },
  );
});

/** A config with one sink of each client. */
function aConfig(): string {
  const file = join(tempDir(), 'sluice.yaml');
  writeFileSync(
    file,
    [
      'upstreams: { a: { api: unified, ends: never, base_url: "https://a.example/v1", auth: { api_key: k } } }',
      'sources: { audit: { type: audit_events, upstream: a } }',
      'sinks:',
      '  siem: { type: syslog, address: "udp://127.0.0.1:514" }',
      '  lake: { type: kafka, brokers: ["k:9092"], topic: t }',
      '  post: { type: http, url: "https://i.example/" }',
    ].join('\n'),
  );
  return file;
}

const olderNode = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) =>
    existsSync(path) &&
    /^v(1\d|2[0-5])\./.test(execFileSync(path, ['--version'], { encoding: 'utf8' })),
);
test.skipIf(olderNode === undefined)(
  'an older Node gets the required version, and no stack (skipped where no older Node is installed)',
  () => {
    const { status, stderr } = spawnSync(olderNode ?? '', [mainFile, '--help'], {
      encoding: 'utf8',
    });

    expect(status).toBe(1);
    expect(stderr).toMatch(/^sluice needs Node 26 or newer, and this is v\d+/);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  },
);
