// `prove` and `export` of archives that an attacker with write access and without the key has changed: with the key they
// end with an error that names the position, or with a proof and a copy that are true. They never end as a fault in sluice.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';
import { aSigner, heldPages, uidsOfPages } from './a-writer.ts';
import { type Attack, attacksIn } from './attacks.ts';
import { fullArchive } from './full-archive.ts';
import { forged, lakeAttacks, pageAttacks, threePages } from './page-attacks.ts';

const { vkey } = aSigner().verifier;
const key = ['--key', vkey];
const always = ['--from', '2000-01-01T00:00:00Z', '--to', '2100-01-01T00:00:00Z'];
const [uid = ''] = uidsOfPages(heldPages(3)).slice(-1);
let plain = '';
let withLake = '';
let full = { place: '', uids: [] as readonly string[] };

beforeAll(async () => {
  [plain, withLake, full] = await Promise.all([threePages(false), threePages(true), fullArchive()]);
});

async function changedBy(apply: (place: string) => unknown, from: string): Promise<string> {
  const place = join(tempDir(), 'archive');
  mkdirSync(dirname(place), { recursive: true });
  cpSync(from, place, { recursive: true });
  await apply(place);
  return place;
}

const proofIs = (place: string, of: string, record: string, more: readonly string[]) =>
  runHere(['archive', 'prove', place, '--uid', of, '--record', record, ...more]);
const copyOf = (place: string, out: string, more: readonly string[]) =>
  runHere(['archive', 'export', place, ...always, '--out', out, ...more]);

/** What prove writes is true, or it ends with an error that is none of sluice's own. */
async function expectTrueProof(place: string, of: string): Promise<number | null> {
  const dir = tempDir();
  const [proof, record] = [join(dir, 'proof'), join(dir, 'record')];
  const { exitCode, stdout, stderr } = await proofIs(place, of, record, key);
  expect(stderr).not.toContain('a fault in sluice');
  if (exitCode !== 0) {
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).not.toBe('');
    return exitCode;
  }
  writeFileSync(proof, `${stdout}`);
  const checked = await runHere(['archive', 'check-proof', proof, '--record', record, ...key]);
  expect(checked, stdout).toMatchObject({ exitCode: 0 });
  return exitCode;
}

/** The copy is whole, or export ends with an error that is none of sluice's own. */
async function expectTrueCopy(place: string): Promise<number | null> {
  const out = join(tempDir(), 'copy');
  const { exitCode, stdout, stderr } = await copyOf(place, out, key);
  expect(stderr).not.toContain('a fault in sluice');
  if (exitCode !== 0) {
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    // Without a checkpoint the part that was written is no archive.
    expect(existsSync(join(out, 'checkpoint'))).toBe(false);
    return exitCode;
  }
  const verified = await runHere(['archive', 'verify', out, ...key]);
  expect(verified, verified.stdout).toMatchObject({ exitCode: 0 });
  return exitCode;
}

describe.each(Object.entries(pageAttacks))('%s', (_, attack) => {
  test('prove and export refuse it, or write what is true', async () => {
    const place = await changedBy(attack, plain);

    await expectTrueProof(place, uid);
    expect(await expectTrueCopy(place)).toBe(1);
  });
});

test.each(Object.entries(lakeAttacks))('export of a lake: %s', async (_, attack) => {
  expect(await expectTrueCopy(await changedBy(attack, withLake))).toBe(1);
});

test.each(attacksIn(1).map(({ name, apply }) => [name, apply] as const))(
  'of an archive with everything: %s',
  async (_, apply: Attack['apply']) => {
    const place = await changedBy(apply, full.place);

    await expectTrueProof(place, full.uids.at(-1) ?? '');
    await expectTrueCopy(place);
  },
);

test('what is whole is proven and copied', async () => {
  expect(await expectTrueProof(full.place, full.uids.at(-1) ?? '')).toBe(0);
  expect(await expectTrueCopy(full.place)).toBe(0);
  expect(await expectTrueCopy(withLake)).toBe(0);
});

test('without a key both refuse a forged page', async () => {
  const place = await changedBy(pageAttacks['a page and its entry are replaced'] as never, plain);
  const out = join(tempDir(), 'copy');

  const proof = await proofIs(place, uid, join(tempDir(), 'record'), []);
  const copy = await copyOf(place, out, []);

  for (const { exitCode, stdout, stderr } of [proof, copy]) {
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).not.toContain(forged);
    expect(stderr).toMatch(/entry \d+ is not that of the signed tree/);
  }
});

test('a cosigned checkpoint that the key did not sign is not put into a proof', async () => {
  const place = await changedBy((at) => {
    const note = readFileSync(join(at, 'checkpoint'), 'utf8');
    const [, size = ''] = note.split('\n');
    const [kept = ''] = readdirSync(join(at, 'checkpoints'), {
      recursive: true,
      encoding: 'utf8',
    }).filter((name) => name.endsWith(`${size.padStart(20, '0')}.note`));
    const line = note.trimEnd().split('\n').at(-1) ?? '';
    const [dash = '', name = '', signature = ''] = line.split(' ');
    const bytes = Buffer.from(signature, 'base64');
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    const changed = note.replace(line, [dash, name, bytes.toString('base64')].join(' '));
    writeFileSync(join(at, 'checkpoints', kept.replace(/note$/, 'cosig')), changed);
  }, plain);

  expect(await expectTrueProof(place, uid)).toBe(0);
});
