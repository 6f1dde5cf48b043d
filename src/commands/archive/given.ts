// What commands about archives are given: the place where one lies, and keys that a reader trusts.

import { readFileSync } from 'node:fs';
import { parseSigningKey, parseVkey, type Signer, type Verifier } from '../../archive/note.ts';
import { ArchiveReader } from '../../archive/reader.ts';
import { errorText, UsageError } from '../../contracts/errors.ts';
import { openStore } from '../../objects/open.ts';
import { cleanText } from '../../tools/clean-text.ts';
import type { Means } from '../shared/command.ts';

const shownMax = 120;

/** The place of an archive. */
export const locationArgument = {
  about: 'a directory, or s3://BUCKET/PREFIX with the usual credentials',
} as const;

/** Public keys. */
export const keyOption = {
  value: 'vkey',
  about: 'a public key that you trust, or a file of them; not one from the archive itself',
  several: true,
  needed: true,
} as const;

/** The archive at a location. Another service than AWS is named as its own tools have it named. */
export async function openArchive(location: string, env: Means['env']): Promise<ArchiveReader> {
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
  return new ArchiveReader(await openStore(location, { endpoint, region: env.AWS_REGION }));
}

/** The keys that `--key` gives: each a vkey, or a file with one a line. Throws a UsageError. */
export function keysGiven(given: readonly string[]): readonly Verifier[] {
  return given.flatMap((one) => {
    const lines = /^[^+]+\+[0-9a-f]{8}\+/.test(one)
      ? [one]
      : bytesGiven('key', one).toString('utf8').split('\n');
    return lines.filter((line) => line.trim() !== '').map((line) => keyOf(line.trim()));
  });
}

/** The signing key in a file. Throws a UsageError, which does not show the key. */
export function signingKeyGiven(file: string): Signer {
  try {
    return parseSigningKey(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`${cleanText(file, shownMax)}: ${cleanText(errorText(error), shownMax)}`);
  }
}

/** The bytes of a file that an option names. Throws a UsageError. */
export function bytesGiven(option: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`--${option}: ${cleanText(errorText(error), shownMax)}`);
  }
}

function keyOf(line: string): Verifier {
  try {
    return parseVkey(line);
  } catch (error) {
    throw new UsageError(`--key: ${cleanText(errorText(error), shownMax)}`);
  }
}
