// `sluice archive keys`: creates the key that signs an archive, and shows its public part. The private key has the text
// form of Go's golang.org/x/mod/sumdb/note, so that other tools can sign with it. Its name is the log's.

import { randomBytes } from 'node:crypto';
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { parseSigningKey, signingKeyText, verifierOfPem } from '../../archive/index.ts';
import { errorCodeOf, errorText, UsageError } from '../../contracts/index.ts';
import { type CommandGroup, defineCommand } from '../shared/command.ts';
import { signingKeyGiven } from './given.ts';
import { rotateKeys } from './rotate.ts';

const seedBytes = 32;
const fileMode = 0o600;

const newKey = defineCommand({
  name: 'new',
  about: 'create a signing key and print its public key, which verifies the archive',
  arguments: { file: { about: 'file to write; an existing file is not overwritten' } },
  options: {
    origin: {
      value: 'name',
      about: 'the archive’s name, such as siem.example/2026',
      usual: 'sluice',
    },
  },
  async run({ file, origin }, { out, err }) {
    const vkey = makeKey(file, origin);
    err(`wrote ${file}: keep a copy where the archive is not; without it nothing more is signed`);
    out(vkey);
    return 0;
  },
});

const showKey = defineCommand({
  name: 'show',
  about: 'print the public key of a signing key as a vkey',
  arguments: { file: { about: 'the signing key, or a public key in PEM' } },
  options: {
    origin: { value: 'name', about: 'the archive’s name, for a key in PEM', usual: 'sluice' },
  },
  async run({ file, origin }, { out }) {
    const text = asUsage(file, () => readFileSync(file, 'utf8'));
    const isPem = text.startsWith('-----BEGIN PUBLIC KEY-----');
    const { vkey } = isPem
      ? asUsage(file, () => verifierOfPem(origin, text))
      : signingKeyGiven(file).verifier;
    out(vkey);
    return 0;
  },
});

/** The commands below `keys`. */
export const keys: CommandGroup = {
  name: 'keys',
  about: 'make, show and replace the key that signs an archive',
  commands: [newKey, showKey, rotateKeys],
};

/** Makes the signing key of a log and writes it to a file that is not there yet; its public key. */
export function makeKey(file: string, origin: string): string {
  const text = asUsage('--origin', () => signingKeyText(origin, randomBytes(seedBytes)));
  writeKey(file, `${text}\n`);
  return publicKeyOf(text);
}

/** The public key of a signing key's text. */
export function publicKeyOf(text: string): string {
  return parseSigningKey(text).verifier.vkey;
}

/** Durable on return: no other key can replace one that has already signed. */
function writeKey(path: string, text: string): void {
  try {
    const file = openSync(path, 'wx', fileMode);
    try {
      fchmodSync(file, fileMode);
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw new UsageError(errorText(error));
    throw new UsageError(`${path} exists, and a key is never overwritten: name another file`);
  }
}

function asUsage<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new UsageError(`${what}: ${errorText(error)}`);
  }
}
