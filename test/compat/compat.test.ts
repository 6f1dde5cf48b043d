// States and configs of each released version, made by its own program (make-main.ts), opened by this one: the config is
// valid, an event that was delivered is not delivered again, and none is missing.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { runHere, runSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';
import { allRecords, firstHalf, serveRecords, upstreamUrl } from './upstream.ts';

const here = import.meta.dirname;
const versions = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

interface Event {
  readonly uid: string;
  readonly name: string;
}

function eventsIn(text: string): readonly Event[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .map(({ metadata, unmapped }) => ({
      uid: metadata.uid,
      name: metadata.event_code ?? unmapped,
    }));
}

/** A directory with the config and state of a version. */
function installed(version: string): string {
  const dir = tempDir();
  for (const part of ['state', 'out']) mkdirSync(join(dir, part), { mode: 0o700 });
  const from = join(here, version);
  writeFileSync(join(dir, 'sluice.yaml'), readFileSync(join(from, 'sluice.yaml')));
  for (const name of readdirSync(join(from, 'state'))) {
    const bytes = readFileSync(join(from, 'state', name));
    const to = join(dir, 'state', name.replace(/\.zst$/, ''));
    writeFileSync(to, name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes, { mode: 0o600 });
  }
  return dir;
}

test('there is a state of each version since 0.1.0', () => {
  const changelog = readFileSync(join(here, '../../CHANGELOG.md'), 'utf8');
  const released = [...changelog.matchAll(/^## (\d+\.\d+\.0)$/gm)].map(([, version]) => version);

  expect(released).toContain('0.1.0');
  // The newest version may be this program before its release: docs/contributing/releasing.md says when its state is made.
  const { version } = JSON.parse(readFileSync(join(here, '../../package.json'), 'utf8'));
  expect(versions).toEqual(expect.arrayContaining(released.filter((one) => one !== version)));
  expect(released).toEqual(expect.arrayContaining(versions));
});

describe.each(versions)('%s', (version) => {
  const expected: { readonly delivered: readonly string[] } = JSON.parse(
    readFileSync(join(here, version, 'expected.json'), 'utf8'),
  );

  async function run(records: typeof allRecords) {
    const upstream = await serveRecords(() => records);
    afterThisTest(async () => upstream.close());
    const late = await startHttpReceiver();
    const dir = installed(version);
    const env = { UPSTREAM_URL: upstreamUrl, UPSTREAM_SECRET: 's', LATE_URL: late.url };
    const file = join(dir, 'sluice.yaml');
    const checked = await runHere(['check', '-c', file], env);
    const once = await runSluice(['run', '-c', 'sluice.yaml', '--once'], { cwd: dir, env });
    expect(once.exitCode, once.stderr).toBe(0);
    const own = (event: Event) => event.name !== 'upstream.ends';
    const disk = eventsIn(
      readFileSync(join(dir, 'out/disk.ndjson'), { encoding: 'utf8', flag: 'a+' }),
    );
    const sent = late.requests.flatMap(({ body }) => eventsIn(body.toString('utf8')));
    return { checked, disk: disk.filter(own), late: sent.filter(own) };
  }

  test('the config is valid', async () => {
    const { checked } = await run(firstHalf());

    expect(checked, checked.stderr).toMatchObject({ exitCode: 0 });
  });

  test('the same records give no event again, and what it stored is delivered', async () => {
    const { disk, late } = await run(firstHalf());

    expect(disk).toEqual([]);
    expect(late.map(({ uid }) => uid).toSorted()).toEqual(expected.delivered.toSorted());
  });

  test('each new record gives one event, to every sink', async () => {
    const audit = allRecords['/v1/audit/events'] as readonly object[];
    const logs = allRecords['/api/logs/v1/companies/c-1/web'] as readonly object[];
    const { disk, late } = await run(allRecords);

    expect(disk).toHaveLength(audit.length / 2 + logs.length / 2);
    const uids = disk.map(({ uid }) => uid);
    expect(new Set([...uids, ...expected.delivered]).size).toBe(
      uids.length + expected.delivered.length,
    );
    expect(late.map(({ uid }) => uid).toSorted()).toEqual(
      [...expected.delivered, ...uids].toSorted(),
    );
  });
});
