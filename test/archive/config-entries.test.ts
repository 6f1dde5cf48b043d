// Which config was in force is entered into the log, at each start and when it changes; and entries that a newer version has
// written give no verdict, rather than a wrong one.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openArchiveLog } from '../../src/archive/recovery.ts';
import type { ConfigChange } from '../../src/archive/verify/findings.ts';
import type { Json } from '../../src/contracts/json.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { timeText } from '../../src/tools/time-text.ts';
import { aSetup, auditPath } from '../commands/a-setup.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { patienceMs, tempDir, waitUntil } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages, readArchive } from './a-writer.ts';

const signer = aSigner();

test('the config of each run is entered, and the report shows when it changed, also by a reload', {
  timeout: 3 * patienceMs,
}, async () => {
  const dir = tempDir();
  const key = join(dir, 'key');
  const vkey = (await runHere(['archive', 'keys', 'new', key])).stdout.trim();
  const location = join(dir, 'archive');
  const { config, sandbox } = await aSetup({
    sinks: [
      `  proof: { type: archive, location: ${location}, signing_key: "\${file:${key}}", checkpoint_every: 100ms }`,
    ],
  });
  const text = readFileSync(config, 'utf8');
  const hashOf = async () => {
    const { stdout } = await runHere(['check', '-c', config]);
    return /config SHA-256 ([0-9a-f]{64})/.exec(stdout)?.[1];
  };
  const report = async () => {
    const { stdout } = await runHere(['archive', 'verify', location, '--key', vkey, '--json']);
    return JSON.parse(stdout) as { verdict: string; configs: ConfigChange[] };
  };

  const first = await hashOf();
  await runOnceHere(config);
  writeFileSync(config, `# said otherwise\n${text.replace('sandbox-secret', 'sandbox-secret ')}`);
  const same = await hashOf();
  writeFileSync(config, `${text}shutdown: { timeout: 20s }\n`);
  const second = await hashOf();
  sandbox.control.grow(auditPath, 5);
  const running = startSluice(['run', '-c', config]);
  const seen = (count: number) => async () => (await report()).configs.length >= count;
  await waitUntil(seen(2), { what: 'the second config in the archive' });
  writeFileSync(
    config,
    `${text.replace('every: 100ms', 'every: 150ms')}shutdown: { timeout: 20s }\n`,
  );
  const third = await hashOf();
  await waitUntil(
    () =>
      running.stderr.some((line) => line.includes('config reloaded') || line.includes('no change')),
    {
      what: 'a reload',
    },
  );
  sandbox.control.grow(auditPath, 5);
  await waitUntil(seen(3), { what: 'the third config in the archive' });
  await running.kill('SIGTERM');
  const { verdict, configs } = await report();
  const html = join(dir, 'report.html');
  const lines = await runHere(['archive', 'verify', location, '--key', vkey, '--html', html]);

  expect(same).toBe(first);
  expect(new Set([first, second, third]).size).toBe(3);
  expect(verdict).toBe('whole');
  expect(configs.map(({ sha256 }) => sha256)).toEqual([first, second, third]);
  for (const shown of [lines.stdout, readFileSync(html, 'utf8')]) {
    for (const { at, index, sha256 } of configs) {
      expect(shown).toContain(`from ${at}, entry ${index}: ${sha256}`);
    }
  }
});

test('a writer enters the config with its first page, and again only when it is another', async () => {
  const dir = tempDir();
  let config = 'a'.repeat(64);
  const state: { mark: Json | null } = { mark: null };
  const open = () => aWriter({ store: openDirectory(dir), state, config: () => config });
  const pages = heldPages(8);
  const writer = await open();
  await archived(writer, pages.slice(0, 2));
  await archived(writer, pages.slice(2, 4));
  config = 'b'.repeat(64);
  await archived(writer, pages.slice(4, 6));
  await writer.close();
  const next = await open();
  await archived(next, pages.slice(6));
  await next.close();

  const { entries } = await readArchive(dir);
  expect(entries.flatMap((one) => (one.t === 'config' ? [one.sha256[0]] : []))).toEqual([
    ...['a', 'b', 'b'],
  ]);
  expect(entries.slice(0, 2).map(({ t }) => t)).toEqual(['start', 'config']);
});

/** An archive that a newer version has continued, with an entry of a kind that this version does not know. */
async function newerArchive(entry: object) {
  const location = tempDir();
  const store = openDirectory(location);
  const state: { mark: Json | null } = { mark: null };
  const writer = await aWriter({ store, state });
  await archived(writer, heldPages(3));
  await writer.close();
  const settings = { store, clock: systemClock(), signer, spool: 'spool-1', staleMs: 30_000 };
  const remember = async (mark: Json) => {
    state.mark = structuredClone(mark);
  };
  const log = await openArchiveLog({ ...settings, mark: state.mark, remember });
  log.append(entry as never);
  await log.publish([], Date.now());
  await log.deps.claim.renew(true);
  return { location, store, index: log.size - 1 };
}

const times = { first: timeText(0), last: timeText(0) };

test.each([
  ['of another kind', { t: 'redacted', at: timeText(0) }, 'redacted'],
  [
    'that says something else',
    { t: 'pruned', at: timeText(0), object: 'a', pages: 1, ...times, why: 'unwell' },
    'pruned',
  ],
])('a signed entry %s gives no verdict, and says why', async (_, entry, kind) => {
  const { location, index } = await newerArchive(entry);
  const verify = (vkey: string) => runHere(['archive', 'verify', location, '--key', vkey]);

  const verified = await verify(signer.verifier.vkey);
  const byOther = await verify(aSigner('archive.test', 2).verifier.vkey);
  const opened = aWriter({ store: openDirectory(location) });

  expect(verified).toMatchObject({ exitCode: 2, stdout: '' });
  const words = `entry ${index}: an entry of the kind ${kind} has a type that this version does not know`;
  expect(verified.stderr).toContain(words);
  expect(verified.stderr).toContain('no verdict');
  expect(byOther.exitCode).toBe(1);
  await expect(opened).rejects.toThrow('a newer version of sluice has written it');
});
