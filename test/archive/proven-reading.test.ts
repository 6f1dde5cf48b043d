// `search` and `replay` of archives that somebody with write access and without the key has changed: they show and send
// nothing that the key's checkpoint does not prove, and name the position where the proof ends.

import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { signingKeyText } from '../../src/archive/note.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { runHere, runSluice } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { archived, aSigner, aWriter, heldPages } from './a-writer.ts';
import { forged, forgePage, lakeAttacks, pageAttacks, threePages } from './page-attacks.ts';

const { vkey } = aSigner().verifier;
let plain = '';
let withLake = '';

beforeAll(async () => {
  [plain, withLake] = await Promise.all([threePages(false), threePages(true)]);
});

/** A config whose sink writes the archive; `other` names its location otherwise. */
function aConfig(place: string, key = signingKeyText('archive.test', Buffer.alloc(32, 1))) {
  const dir = tempDir();
  const out = join(dir, 'out.ndjson');
  writeFileSync(join(dir, 'archive.key'), key);
  const file = join(dir, 'sluice.yaml');
  writeFileSync(
    file,
    `state: { dir: ${join(dir, 'state')} }
upstreams: { edge: { api: unified, ends: never, base_url: "https://edge.example/v1", auth: { api_key: k } } }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks:
  disk: { type: file, path: ${out}, format: json }
  proof: { type: archive, location: ${place}, signing_key: "\${file:${join(dir, 'archive.key')}}" }
`,
  );
  return { file, sent: () => (existsSync(out) ? readFileSync(out, 'utf8') : '') };
}

async function changedBy(attack: (place: string) => unknown, from: string): Promise<string> {
  const place = join(tempDir(), 'archive');
  mkdirSync(dirname(place), { recursive: true });
  cpSync(from, place, { recursive: true });
  await attack(place);
  return place;
}

const raw = (place: string, ...more: readonly string[]) =>
  runSluice(['archive', 'search', place, '--raw', ...more]);
const search = (place: string, ...more: readonly string[]) =>
  runHere(['archive', 'search', place, ...more]);

describe.each(Object.entries(pageAttacks))('%s', (_, attack) => {
  test('search --raw, search -c and replay refuse it', async () => {
    const place = await changedBy(attack, plain);
    const { file, sent } = aConfig(place);

    const runs = [
      await raw(place, '--key', vkey),
      await search(place, '-c', file),
      await search(place, '-c', file, '--key', vkey),
      await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']),
    ];

    for (const { exitCode, stdout, stderr } of runs) {
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
      expect(stdout).not.toContain(forged);
      expect(stderr).toMatch(/entr|page|tile|checkpoint|key|root|segment/);
      expect(stderr).not.toContain('a fault in sluice');
    }
    expect(sent()).not.toContain(forged);
  });
});

test.each(Object.entries(lakeAttacks))('search of a lake: %s', async (_, attack) => {
  const place = await changedBy(attack, withLake);
  const { file } = aConfig(place);

  for (const more of [
    ['--key', vkey],
    ['-c', file],
  ]) {
    const { exitCode, stderr } = await search(place, ...more);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1 });
    expect(stderr).toMatch(/lake\/\S+ (differs|is damaged)|entry \d+ is not that/);
  }
});

test('whole content is shown and sent, by the key of the config or by --key', async () => {
  const place = await changedBy(() => undefined, withLake);
  const { file, sent } = aConfig(place);

  const byRaw = await raw(place, '--key', vkey);
  const byLake = await search(place, '-c', file);
  const replayed = await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']);

  expect(byRaw).toMatchObject({ exitCode: 0, stderr: '' });
  expect(byRaw.stdout.split('\n').length).toBe(10);
  expect(byLake).toMatchObject({ exitCode: 0, stderr: '' });
  expect(byLake.stdout.split('\n').filter(Boolean).length).toBe(9);
  expect(replayed.exitCode).toBe(0);
  expect(sent().split('\n').length).toBe(10);
});

test('without a key search says that nothing was proven, and replay refuses', async () => {
  const place = await changedBy(() => undefined, plain);
  const { file, sent } = aConfig(join(tempDir(), 'another'));

  expect(await raw(place)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('not proven: no key is known'),
  });
  expect(await search(place, '-c', file)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringContaining('not proven'),
  });
  const replayed = await runHere(['archive', 'replay', '-c', file, place, '--sink', 'disk']);
  expect(replayed.exitCode).toBe(1);
  expect(replayed.stderr).toContain('--key VKEY');
  expect(sent()).toBe('');
});

test('a forged page is not shown without a key either', async () => {
  const place = await changedBy(forgePage, plain);

  const { exitCode, stdout, stderr } = await raw(place);

  expect(exitCode).toBe(1);
  expect(stdout).not.toContain(forged);
  expect(stderr).toMatch(/entry \d+ is not that of the signed tree/);
});

test('a key of another name, and a log at the location of another shard, are refused', async () => {
  const root = tempDir();
  for (const [shard, at] of [
    [0, 1],
    [1, 0],
  ]) {
    const signer = aSigner(`archive.test/${shard}`, 1);
    const writer = await aWriter({ store: openDirectory(join(root, `${at}`)), signer });
    await archived(writer, heldPages(1));
    await writer.close();
  }

  const swapped = await raw(root, '--key', vkey);
  const other = await raw(plain, '--key', aSigner('other.test', 1).verifier.vkey);

  expect(swapped).toMatchObject({ exitCode: 1, stdout: '' });
  expect(swapped.stderr).toContain('the log of shard 1 is at the location of shard 0');
  expect(other).toMatchObject({ exitCode: 1, stdout: '' });
});
