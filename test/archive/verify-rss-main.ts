// Run by any-file-memory.test.ts as a process of its own: verifies an archive once for each of its files, with 4 GiB of
// zeros in place of the file, and writes the highest resident memory of the process so far as a line of JSON for each.

import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runProgram } from '../../src/boot/program.ts';

const [dir = '', vkey = '', ...names] = process.argv.slice(2);
const sparseBytes = 4 * 2 ** 30;

const verified = async (name: string) => {
  // What the verifications before have left is not this one's.
  globalThis.gc?.();
  let lines = 0;
  const exitCode = await runProgram(['archive', 'verify', dir, '--key', vkey, '--json'], {
    env: {},
    out: () => {
      lines += 1;
    },
    err: (line) => process.stderr.write(`${name}: ${line}\n`),
    unread: new AbortController().signal,
    exit: (code) => process.exit(code),
  });
  // Not maxRSS, which begins with the memory of the process that started this one.
  const [, kib = 'Infinity'] =
    /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const mib = Math.round(Number(kib) / 1024);
  process.stdout.write(`${JSON.stringify({ name, exitCode, lines, mib })}\n`);
};

await verified('');
for (const name of names) {
  const path = join(dir, name);
  const bytes = readFileSync(path);
  rmSync(path);
  writeFileSync(path, '');
  truncateSync(path, sparseBytes);
  await verified(name);
  rmSync(path);
  writeFileSync(path, bytes);
}
