// `node test/compat/make-main.ts VERSION PROGRAM...`: makes the state and the expected events of a version with its own
// program, for example `node test/compat/make-main.ts 0.3.0 ./sluice-0.3.0`. Run it once for each release.

import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { constants, zstdCompressSync } from 'node:zlib';
import { firstHalf, serveRecords, upstreamUrl } from './upstream.ts';

const [, , version = '', program = '', ...before] = process.argv;
const fixture = join(import.meta.dirname, version);
const dir = mkdtempSync(join(tmpdir(), 'sluice-compat-'));
mkdirSync(join(dir, 'out'));
cpSync(join(fixture, 'sluice.yaml'), join(dir, 'sluice.yaml'));
const upstream = await serveRecords(firstHalf);
const env = {
  ...process.env,
  ...{ UPSTREAM_URL: upstreamUrl, UPSTREAM_SECRET: 's', LATE_URL: 'http://127.0.0.1:1' },
};
const child = spawn(program, [...before, 'run', '-c', 'sluice.yaml'], {
  cwd: dir,
  env,
  stdio: 'inherit',
});
await setTimeout(30_000);
child.kill();
await new Promise((resolve) => child.once('exit', resolve));
upstream.close();
const lines = readFileSync(join(dir, 'out/disk.ndjson'), 'utf8').trim().split('\n');
const uids = lines.map((line) => JSON.parse(line).metadata.uid);
rmSync(join(fixture, 'state'), { recursive: true, force: true });
const state = join(fixture, 'state');
mkdirSync(state);
const level = { params: { [constants.ZSTD_c_compressionLevel]: 19 } };
for (const name of ['sluice.db', 'delivered.json']) {
  const bytes = readFileSync(join(dir, 'state', name));
  writeFileSync(join(state, `${name}.zst`), zstdCompressSync(bytes, level));
}
writeFileSync(join(fixture, 'expected.json'), `${JSON.stringify({ delivered: uids }, null, 2)}\n`);
rmSync(dir, { recursive: true });
