// A reader of the pages: runs their shell blocks in order in one directory, in a real shell, where `npx sluice` is this
// checkout. A block whose comment says so runs on beside the others. The ports that a page names are exchanged for free ones.

import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { Block } from '../../docs/generate/page.ts';
import { isRunning, spawnChild } from '../support/children.ts';
import { afterThisTest, freePort, tempDir, waitUntil } from '../support/temp.ts';

const root = join(import.meta.dirname, '..', '..');

/** Someone at a terminal in `dir`. */
export interface Reader {
  readonly dir: string;
  /** All that commands have written to stdout so far. */
  readonly said: string;
  /** A file of the project as the reader has it: with the ports of this run. */
  copy(path: string): void;
  /** A port that the page names, as it is in this run. */
  portOf(named: string): number;
  /** Runs a block to its end, which has to be a good one; what it exports stays. */
  run(text: string): Promise<void>;
  /** Runs a block beside all others, from when it listens on the port that the page names, and has made the file. */
  start(text: string, port: string, file?: string): Promise<void>;
}

/** A reader in `dir`; `more`: programs beside npx, each the lines of a shell script by its name. */
export async function aReader(
  dir: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Reader> {
  const ports = new Map<string, number>();
  for (const port of ['15514', '8686']) ports.set(port, await freePort());
  // The sandbox serves its second API at the next port.
  const port = await freePair();
  ports.set('18080', port).set('18081', port + 1);
  const bin = programs(more);
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
    portOf: (named) => ports.get(named) ?? 0,
    copy(path) {
      const text = readFileSync(join(root, path), 'utf8');
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), exchanged(text, ports));
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
  return text.replace(/\b(15514|1808[01]|8686)\b/g, (port) => String(ports.get(port)));
}

async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort();
    if (!(await listens(port + 1))) return port;
  }
}

/** A directory with `npx`, which runs this checkout, and more. */
function programs(more: Readonly<Record<string, string>>): string {
  const bin = tempDir('bin-');
  const sluice = join(root, 'src/boot/sluice.js');
  const files = {
    // `init` writes the usual port of the status by itself, which somebody else on this machine may have.
    npx: `shift\nexport PATH="${dirname(process.execPath)}:$PATH"\n[ "$1" = init ] || exec ${sluice} "$@"
${sluice} "$@" && sed -i "s/8686/$STATUS_PORT/" sluice.yaml`,
    ...more,
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return bin;
}

/** Runs a page's blocks in order; those that say so run beside the others. */
export async function follow(reader: Reader, blocks: readonly Block[]): Promise<void> {
  for (const block of blocks) {
    const [, port, file] =
      /^runs until stopped; listens on (\d+)(?:, makes (\S+))?$/.exec(block.comment) ?? [];
    if (port === undefined) await reader.run(block.text);
    else await reader.start(block.text, port, file);
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
