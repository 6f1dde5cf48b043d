// `node test/compat/make-main.ts VERSION PROGRAM...`: makes the state and the expected events of a version with its own
// program, for example `node test/compat/make-main.ts 0.3.0 ./sluice-0.3.0`. Run it once for each release. The config is
// VERSION/sluice.yaml; if there is none, the one of the version before, so that what it has is read by each later version.

import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { constants, zstdCompressSync } from 'node:zlib';
import { firstHalf, serveRecords, upstreamUrl } from './upstream.ts';

const [, , version = '', program = '', ...before] = process.argv;
const fixture = join(import.meta.dirname, version);
const dir = mkdtempSync(join(tmpdir(), 'sluice-compat-'));
mkdirSync(join(dir, 'out'));
if (!existsSync(join(fixture, 'sluice.yaml'))) {
  const [last = ''] = readdirSync(import.meta.dirname, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  mkdirSync(fixture);
  const config = readFileSync(join(import.meta.dirname, last, 'sluice.yaml'), 'utf8');
  writeFileSync(join(fixture, 'sluice.yaml'), config.replaceAll(last, version));
}
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

/** Events of the records, without those that sluice adds by itself. */
function delivered(): readonly string[] {
  const path = join(dir, 'out/disk.ndjson');
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  return lines
    .map((line) => JSON.parse(line).metadata)
    .filter(({ event_code }) => event_code !== 'upstream.ends')
    .map(({ uid }) => uid);
}

// Until nothing new comes. compat.test.ts fails if that was too early.
let uids = delivered();
for (let quietS = 0; quietS < 20; quietS += 1) {
  await setTimeout(1_000);
  if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
  const now = delivered();
  if (now.length !== uids.length || now.length === 0) quietS = 0;
  uids = now;
}
child.kill();
await new Promise((resolve) => child.once('exit', resolve));
upstream.close();
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
