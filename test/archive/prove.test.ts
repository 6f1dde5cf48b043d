// Proofs that a record is in an archive: made by the command, checked by the command, by a hundred
// lines of Python and by Go, none of which needs the archive.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseVkey } from '../../src/archive/note.ts';
import { checkProof } from '../../src/archive/proof.ts';
import { type NaiveArchive, naiveArchive, writeNaive } from '../support/archive/naive-archive.ts';
import { oraclesFor } from '../support/archive/oracles.ts';
import { needCommands } from '../support/cache.ts';
import { runProgram } from '../support/children.ts';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

const script = join(import.meta.dirname, '../support/archive/check_proof.py');
const buildMs = 600_000;

const archive = naiveArchive([
  {
    pages: [
      { stream: 'audit', records: 1 },
      { stream: 'audit', records: 0 },
    ],
  },
  { pages: Array.from({ length: 300 }, (_, i) => ({ stream: 'logs/a', records: i % 6 })) },
  { pages: [{ stream: 'logs/a' }], rotates: true },
  { pages: [{ stream: 'audit', records: 7, kept: [1, 3, 6] }] },
]);
const [uids = [], key = ''] = [archive.uids.flat(), archive.vkeys[1]];

/** A proof in files, as the command has written it. */
async function proven(uid: string, of: NaiveArchive = archive) {
  const dir = tempDir();
  writeNaive(of, dir);
  const record = join(dir, 'record.json');
  const proof = join(dir, 'record.tlog-proof');
  const made = await runHere(['archive', 'prove', dir, '--uid', uid, '--record', record]);
  writeFileSync(proof, made.stdout);
  return { ...made, record, proof };
}

const checked = (proof: string, record: string, vkey = key) =>
  runHere(['archive', 'check-proof', proof, '--record', record, '--key', vkey]);

beforeAll(() => needCommands(['python3'], ['python3'], 'Proofs are checked by Python as well.'));

describe('a proof by --match', () => {
  test('is that of --uid, for exactly these bytes only', async () => {
    const { proof, record } = await proven(uids[400] ?? '');
    const dir = tempDir();
    writeNaive(archive, dir);
    const bytes = readFileSync(record);
    const almost = join(dir, 'almost.json');
    writeFileSync(almost, Buffer.concat([bytes, Buffer.from('\n')]));

    const matched = await runHere(['archive', 'prove', dir, '--match', record]);
    const missed = await runHere(['archive', 'prove', dir, '--match', almost]);
    const both = await runHere(['archive', 'prove', dir, '--match', record, '--uid', 'x']);
    const neither = await runHere(['archive', 'prove', dir]);

    expect(matched).toMatchObject({ exitCode: 0, stdout: readFileSync(proof, 'utf8') });
    expect(missed).toMatchObject({ exitCode: 1, stdout: '' });
    expect(missed.stderr).toContain('ends with a line end');
    expect([both.exitCode, neither.exitCode]).toEqual([64, 64]);
  });

  test('is found among the shards of a location, and is an error where a page cannot be read', async () => {
    const { record } = await proven(uids[3] ?? '');
    const root = tempDir();
    const other = naiveArchive([{ pages: [{ stream: 'other' }] }]);
    writeNaive(other, join(root, '0'));
    writeNaive(archive, join(root, '1'));
    const files = new Map([...archive.files].filter(([name]) => !name.startsWith('segments/')));
    const bodiless = tempDir();
    writeNaive({ files }, bodiless);

    const matched = await runHere(['archive', 'prove', root, '--match', record]);
    const unread = await runHere(['archive', 'prove', bodiless, '--match', record]);

    expect(matched.exitCode).toBe(0);
    expect(unread).toMatchObject({ exitCode: 1, stdout: '' });
    expect(unread.stderr).toMatch(/segments\/.* is missing or damaged/);
  });
});

describe('a proof', () => {
  test('is true by sluice, by Python and by Go', { timeout: buildMs }, async (context) => {
    const { oracle } = await oraclesFor(context);
    const chosen = [0, 1, 2, 400, uids.length - 3, uids.length - 1];

    for (const uid of chosen.map((i) => uids[i] ?? '')) {
      const { proof, record } = await proven(uid);
      const here = await checked(proof, record);
      const python = await runProgram('python3', [script, proof, record, key]);
      const go = await oracle('proof', proof, key, record);

      expect(here).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('true: ') });
      expect(python).toMatchObject({ exitCode: 0, errors: '' });
      expect(go).toMatchObject({ exitCode: 0, errors: '' });
      expect(go.output.split(' ')[0]).toBe(python.output.trim());
    }
  });

  test('of another record, with another key, or of another record’s position is false', async () => {
    const { proof, record } = await proven(uids[5] ?? '');
    const other = await proven(uids[6] ?? '');
    const stranger = naiveArchive([{ pages: [] }]).vkeys[0] ?? '';

    for (const [file, of, vkey] of [
      [proof, other.record, key],
      [other.proof, record, key],
      [proof, record, stranger],
      [record, record, key],
    ] as const) {
      const here = await checked(file, of, vkey);
      const python = await runProgram('python3', [script, file, of, vkey]);
      expect(here).toMatchObject({ exitCode: 1, stdout: '' });
      expect(here.stderr).toContain('FALSE: ');
      expect(python.exitCode).toBe(1);
    }
  });

  test('with any bit of the proof or of the record changed is false', async () => {
    const { proof, record } = await proven(uids.at(-1) ?? '');
    const texts = { proof: readFileSync(proof), record: readFileSync(record) };
    const trusted = [parseVkey(key)];
    const isTrue = (file: Buffer, of: Buffer) => {
      try {
        return checkProof(file.toString('utf8'), of, trusted).index > 0;
      } catch (error) {
        if (error instanceof SyntaxError) return false;
        throw error;
      }
    };
    const taken: string[] = [];
    for (const name of ['proof', 'record'] as const) {
      for (let at = 0; at < texts[name].length; at += 1) {
        const bad = Buffer.from(texts[name]);
        bad[at] = (bad[at] ?? 0) ^ (1 << (at % 8));
        const [file, of] = name === 'proof' ? [bad, texts.record] : [texts.proof, bad];
        if (isTrue(file, of)) taken.push(`${name} ${at}: ${bad.subarray(at - 20, at + 20)}`);
      }
    }

    expect(isTrue(texts.proof, texts.record)).toBe(true);
    expect(taken).toEqual([]);
  });

  test('is not created for a missing record, nor from an archive that is damaged there', async () => {
    const files = new Map(archive.files);
    const tile = Buffer.from(files.get('tile/0/000') ?? []);
    tile[32 * 4] = (tile[32 * 4] ?? 0) ^ 1;
    files.set('tile/0/000', tile);
    const isSegment = (name: string) => name.startsWith('segments/');
    const bodiless = new Map([...archive.files].filter(([name]) => !isSegment(name)));

    const nothing = await proven('00'.repeat(32));
    const damaged = await proven(uids[0] ?? '', { ...archive, files });
    const unread = await proven(uids[0] ?? '', { ...archive, files: bodiless });
    const wrong = await proven('x');

    expect(nothing).toMatchObject({ exitCode: 1, stdout: '' });
    expect(damaged).toMatchObject({ exitCode: 1, stdout: '' });
    expect(damaged.stderr).toContain('does not lead to the signed root');
    expect(unread).toMatchObject({ exitCode: 1, stdout: '' });
    expect(unread.stderr).toMatch(
      /no page that is whole has it, and segments\/.* is missing or damaged/,
    );
    expect(wrong.exitCode).toBe(64);
  });
});
