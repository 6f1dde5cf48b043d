// Every shell command of the pages: run as a reader would, or marked with what it needs that is not here. The blocks of
// getting-started.md run in order in one directory, in a real shell, where `npx sluice` is this checkout. A block whose
// comment says so runs on beside the others. The ports that the page names are exchanged for free ones.

import { once } from 'node:events';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Block, blocksOf, type Page, pages } from '../../docs/generate/page.ts';
import { aSetup } from '../commands/a-setup.ts';
import { unknownIn } from '../deploy/command-line.ts';
import { isRunning, spawnChild } from '../support/children.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { findRsyslog } from '../support/rsyslog-program.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';

const root = join(import.meta.dirname, '..', '..');
const shell = (page: Page) => blocksOf(page).filter(({ info }) => info === 'sh');
const isRun = ({ comment }: Block) => !/^not run: \S/.test(comment);
const readme: Page = { path: '../README.md', text: readFileSync(join(root, 'README.md'), 'utf8') };
const written = [...pages(), readme];

test.each(written)(
  '$path: sluice would understand each command, also within a sentence',
  ({ text }) => {
    const commands = [...text.matchAll(/(?:npx sluice|main\.ts) ([^`\n#|&>]*)/g)].map(
      ([, words = '']) => words,
    );

    for (const command of commands) {
      const words = command
        .trim()
        .split(/\s+/)
        .filter((word) => word !== 'COMMAND');
      if (words[0] === '' || words[0] === undefined) continue;
      expect([command, unknownIn(words)]).toEqual([command, []]);
    }
  },
);

describe('the commands run', () => {
  const runnable = pages().filter((page) => shell(page).some(isRun));

  test('of all but getting-started.md, on a config that has run', async () => {
    const { config, dir } = await aSetup({
      sinks: ['  siem: { type: file, path: events.ndjson }'],
    });
    const others = runnable.filter(({ path }) => path !== 'getting-started.md');
    const lines = others.flatMap((page) =>
      shell(page)
        .filter(isRun)
        .flatMap(({ text }) => text.trim().split('\n')),
    );
    const run = ['run', '-c', config, '--once'];
    expect((await runSluice(run, { cwd: dir })).exitCode).toBe(0);

    for (const line of lines) {
      const words = line.replace('sluice.yaml', config).split(' ').slice(2);
      const { exitCode, stderr } = await runHere(words);
      expect([line, exitCode, stderr]).toEqual([line, 0, '']);
    }
    expect(lines.length).toBeGreaterThan(8);
  });

  test('getting-started.md, from nothing to events in rsyslog', async () => {
    const reader = await aReader(tempDir('reader-'));

    for (const block of shell(pageOf('getting-started.md')).filter(isRun)) {
      const [, port, file] =
        /^runs until stopped; listens on (\d+)(?:, makes (\S+))?$/.exec(block.comment) ?? [];
      if (port === undefined) await reader.run(block.text);
      else await reader.start(block.text, port, file);
    }

    const events = readFileSync(join(reader.dir, 'events.log'), 'utf8').split('\n').slice(0, -1);
    const other = events.filter((line) => !/^<\d+>1 .* CEF:0\|.*\|cs6=[0-9a-f]{64} /.test(line));
    expect(events.length).toBeGreaterThanOrEqual(200);
    expect(other.slice(0, 2)).toEqual([]);
    expect(reader.said).toContain('"ready":true');
  });
});

function pageOf(path: string): Page {
  const page = pages().find((candidate) => candidate.path === path);
  if (page === undefined) throw new Error(`there is no page ${path}`);
  return page;
}

/** Someone at a terminal in `dir`. */
interface Reader {
  readonly dir: string;
  /** All that commands have written to stdout so far. */
  readonly said: string;
  /** Runs a block to its end, which has to be a good one; what it exports stays. */
  run(text: string): Promise<void>;
  /** Runs a block beside all others, from when it listens on the port that the page names, and has made the file. */
  start(text: string, port: string, file?: string): Promise<void>;
}

async function aReader(dir: string): Promise<Reader> {
  const ports = new Map<string, number>();
  for (const port of ['15514', '18080', '8686']) ports.set(port, await freePort());
  const bin = await programs();
  const env = {
    PATH: [bin, process.env.PATH].join(delimiter),
    HOME: dir,
    STATUS_PORT: String(ports.get('8686')),
  };
  const exported: string[] = [];
  let said = '';

  const begin = (text: string) => {
    const script = exchanged(text, ports);
    const child = spawnChild('bash', ['-euc', [...exported, script].join('\n')], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // as a group, so that what the shell has started ends with it
    });
    let out = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
      said += chunk;
    });
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      out += chunk;
    });
    return { child, output: () => out };
  };

  return {
    dir,
    get said() {
      return said;
    },
    async run(text) {
      const { child, output } = begin(text);
      await once(child, 'close');
      expect([text, child.exitCode, output()]).toEqual([text, 0, expect.anything()]);
      exported.push(...(text.match(/^export .*$/gm) ?? []));
    },
    async start(text, port, file) {
      const { child, output } = begin(text);
      afterThisTest(() => {
        if (child.pid !== undefined && isRunning(child)) process.kill(-child.pid, 'SIGKILL');
      });
      await waitUntil(
        async () => {
          if (!isRunning(child)) throw new Error(`it ended: ${text}\n${output()}`);
          const made = file === undefined || existsSync(join(dir, file));
          return made && (await listens(ports.get(port) ?? 0));
        },
        {
          what: () => `the block that listens on ${port}; it said: ${output()}`,
        },
      );
    },
  };
}

function exchanged(text: string, ports: ReadonlyMap<string, number>): string {
  return text.replace(/\b(15514|18080|8686)\b/g, (port) => String(ports.get(port)));
}

/** A directory with `npx`, which runs this checkout, and `rsyslogd`, which may be one that was fetched for the tests. */
async function programs(): Promise<string> {
  const bin = tempDir('bin-');
  const { command, moduleDirs, libraryDirs } = await findRsyslog();
  const sluice = join(root, 'src/boot/sluice.js');
  const files = {
    // `init` writes the usual port of the status by itself, which somebody else on this machine may have.
    npx: `shift\nexport PATH="${dirname(process.execPath)}:$PATH"\n[ "$1" = init ] || exec ${sluice} "$@"
${sluice} "$@" && sed -i "s/8686/$STATUS_PORT/" sluice.yaml`,
    rsyslogd: `LD_LIBRARY_PATH=${libraryDirs} exec ${command} -M ${moduleDirs} "$@"`,
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
