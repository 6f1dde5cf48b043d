// Signed notes against the example of golang.org/x/mod/sumdb/note, whose keys and signature others made, and what a note
// must not be for anybody to believe it.

import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkpointText, parseCheckpoint } from '../../src/archive/checkpoint.ts';
import {
  openNote,
  parseNote,
  parseSigningKey,
  parseVkey,
  signingKeyText,
  signNote,
} from '../../src/archive/note.ts';

const skey = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz';
const vkey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
const text =
  'If you think cryptography is the answer to your problem,\nthen you don’t know what your problem is.\n'.replace(
    '’',
    "'",
  );
const signature =
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
const unknown =
  '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n';

const known = [parseVkey(vkey)];

function aSigner(name = 'log.test') {
  return parseSigningKey(signingKeyText(name, randomBytes(32)));
}

describe('the example of x/mod/sumdb/note', () => {
  test('the key’s signature verifies elsewhere', async () => {
    const signer = parseSigningKey(skey);

    expect(signer.verifier.vkey).toBe(vkey);
    expect(await signNote(text, [signer])).toBe(`${text}\n${signature}`);
  });

  test('the note opens, also beside a signature of an unknown key', () => {
    const opened = openNote(Buffer.from(`${text}\n${unknown}${signature}`), known);

    expect(opened.text).toBe(text);
    expect(opened.by).toEqual(known);
    expect(opened.signatures.map(({ name }) => name)).toEqual(['EnochRoot', 'PeterNeumann']);
  });
});

describe('keys', () => {
  test('a key is read back from its text', () => {
    const signer = aSigner('sluice.example/2026');

    expect(parseVkey(signer.verifier.vkey).vkey).toBe(signer.verifier.vkey);
  });

  test.each([
    ['nothing', ''],
    ['an id that does not fit', vkey.replace('c74f20a3', 'c74f20a4')],
    ['another kind of key', 'x+c74f20a3+BBpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'],
    ['one byte less', vkey.slice(0, -4)],
    ['a name with a blank', vkey.replace('Peter', 'Peter ')],
  ])('%s is no vkey', (_, bad) => {
    expect(() => parseVkey(bad)).toThrow(SyntaxError);
  });

  test('a bad signing key is refused without being shown', () => {
    const bad = skey.replace('c74f20a3', 'c74f20a4');

    expect(() => parseSigningKey(bad)).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('AYEK') }),
    );
  });
});

describe('a note is not believed', () => {
  test('with each single bit of its text or its known signature changed', async () => {
    const signer = aSigner();
    const note = Buffer.from(await signNote('log.test\n7\nAAAA\n', [signer]));

    for (let bit = 0; bit < note.length * 8; bit += 1) {
      const bad = Buffer.from(note);
      bad[bit >> 3] = (bad[bit >> 3] ?? 0) ^ (1 << (bit & 7));

      expect(() => openNote(bad, [signer.verifier]), `bit ${bit}`).toThrow(SyntaxError);
    }
  });

  test('where one of two known keys has signed wrongly', async () => {
    const [one, other] = [aSigner(), aSigner()];
    const good = await signNote('a\n', [one, other]);
    const forged = (await signNote('b\n', [other])).split('\n').at(-2) ?? '';
    const bad = good.replace(/— [^\n]*\n$/, `${forged}\n`);

    expect(() => openNote(Buffer.from(bad), [one.verifier, other.verifier])).toThrow(/wrong/);
    expect(openNote(Buffer.from(bad), [one.verifier]).by).toEqual([one.verifier]);
    expect(openNote(Buffer.from(good), [one.verifier, other.verifier]).by).toHaveLength(2);
  });

  test('of a key with the same name and another id', async () => {
    const [asked, signed] = [aSigner(), aSigner()];
    const note = await signNote('a\n', [signed]);

    expect(() => openNote(Buffer.from(note), [asked.verifier])).toThrow(/no known key/);
  });

  test.each([
    ['no signatures', 'text\n'],
    ['no blank line', `text\n${signature}`],
    ['a cut end', `${text}\n${signature}`.slice(0, -1)],
    ['a hyphen for the dash', `${text}\n${signature.replace('—', '-')}`],
    ['a control character', `te\rxt\n\n${signature}`],
    ['too many signatures', `${text}\n${signature.repeat(101)}`],
  ])('with %s', (_, bad) => {
    expect(() => parseNote(Buffer.from(bad))).toThrow(SyntaxError);
  });

  test('that is no UTF-8', () => {
    const bad = Buffer.concat([Buffer.of(0xff), Buffer.from(`\n\n${signature}`)]);

    expect(() => parseNote(bad)).toThrow(SyntaxError);
  });
});

describe('checkpoints', () => {
  test('one is read as it was written, its extensions passed over', () => {
    const checkpoint = { origin: 'log.test', size: 12, root: Buffer.alloc(32, 9) };
    const written = checkpointText(checkpoint);

    expect(parseCheckpoint(`${written}an extension\n`)).toEqual(checkpoint);
  });

  test.each(['', 'o\n', 'o\n-1\nAA==\n', 'o\n01\nAA==\n', 'o\n1\nAA==\n', '\n1\nAA==\n'])(
    '%j is none',
    (bad) => {
      expect(() => parseCheckpoint(bad)).toThrow(SyntaxError);
    },
  );
});
