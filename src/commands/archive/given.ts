// Arguments and options that the archive commands share: the location of an archive, and the keys that a reader trusts.

import { hash, type X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { authoritiesIn } from '../../archive/audit.ts';
import {
  ArchiveReader,
  acceptsByDefault,
  type Checkpoint,
  checkpointPath,
  entriesOf,
  manifestPath,
  type ObjectStore,
  openStore,
  ProvenReader,
  parseCheckpoint,
  parseManifest,
  parseNote,
  parseSigningKey,
  parseVkey,
  parseWitnessKey,
  readSmall,
  type Signer,
  type Verifier,
} from '../../archive/index.ts';
import { type Hold, holdsIn, type ReadRequest, signRequest } from '../../archive/operate.ts';
import { ExportError, errorCodeOf, errorText, UsageError } from '../../contracts/index.ts';
import { cleanText } from '../../tools/index.ts';
import type { CommandDeps } from '../shared/command.ts';

const shownMax = 120;

/** The location of an archive. */
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
export async function openArchive(
  location: string,
  env: CommandDeps['env'],
): Promise<ArchiveReader> {
  const endpoint = env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL;
  return new ArchiveReader(await openStore(location, { endpoint, region: env.AWS_REGION }));
}

/** Objects that a shard may have before it archives its first page. */
const beforeTheLog = /^\d+\/(?:archive\.json|writer|prune\.json|(?:holds|erase)\/.*)$/;

/**
 * The locations of the archives at a location: the location itself, and one below it for each shard of the state that
 * the archives were written from, by number. An archive at the location itself does not hide those of the shards.
 */
export async function archivesAt(
  location: string,
  env: CommandDeps['env'],
): Promise<readonly [string, ...string[]]> {
  const { store } = await openArchive(location, env);
  try {
    const isHere = (await store.facts(checkpointPath)) !== null;
    const numbers: string[] = [];
    /** Files at the location of an archive that cannot be read. */
    const inPlace: string[] = [];
    // Digits sort before the names of an archive's own objects.
    for (let name = await firstBehind(store, ''); name !== null && name < ':'; ) {
      const [number = '', ...below] = name.split('/');
      const isNumber = /^\d+$/.test(number);
      if (isNumber && below.length === 0) inPlace.push(number);
      else if (isNumber && (await hasBegun(store, number))) numbers.push(number);
      // Skips the objects below the location: "0" is the character after "/".
      name = await firstBehind(store, below.length === 0 ? name : `${number}0`);
    }
    const found = [...numbers, ...(isHere ? [] : inPlace)]
      // Of a number that is there as "1" and as "01" sluice writes the first.
      .sort((a, b) => Number(a) - Number(b) || a.length - b.length)
      .map((number) => `${location.replace(/\/+$/, '')}/${number}`);
    const hasOwn = found.length === 0 || isHere;
    const [first, ...others] = hasOwn ? [location, ...found] : found;
    return first === undefined ? [location] : [first, ...others];
  } catch (error) {
    // The reader of the archive reports the error.
    if (error instanceof ExportError) return [location];
    throw error;
  } finally {
    store.close();
  }
}

/** False for a shard that has archived nothing yet. */
async function hasBegun(store: ObjectStore, number: string): Promise<boolean> {
  for await (const { name } of store.list(`${number}/`)) {
    if (!beforeTheLog.test(name)) return true;
  }
  return false;
}

/** The shard whose archive belongs at the location; undefined: the location does not name a shard. */
export function shardAt(location: string): number | undefined {
  const [, number] = /\/(\d+)\/*$/.exec(`/${location}`) ?? [];
  return number === undefined ? undefined : Number(number);
}

async function firstBehind(store: ObjectStore, after: string): Promise<string | null> {
  for await (const { name } of store.list('', after)) return name;
  return null;
}

/** The keys of `--key`: each a vkey, or a file with one vkey a line. Throws a UsageError. */
export function keysGiven(given: readonly string[]): readonly Verifier[] {
  return keysOf('key', given, parseVkey);
}

/** The witnesses of `--witness`, and how many of them must have signed. Throws a UsageError. */
export function witnessesGiven(given: readonly string[], asked: string | undefined) {
  const keys = keysOf('witness', given, parseWitnessKey);
  const quorum = asked === undefined ? keys.length : Number(asked);
  if (Number.isInteger(quorum) && quorum >= 1 && quorum <= keys.length) return { keys, quorum };
  throw new UsageError(
    `--quorum: expected a number from 1 to ${keys.length}, as many as witnesses`,
  );
}

function keysOf(
  option: string,
  given: readonly string[],
  parse: (vkey: string) => Verifier,
): readonly Verifier[] {
  return given.flatMap((one) => {
    const lines = /^[^+]+\+[0-9a-f]{8}\+/.test(one)
      ? [one]
      : bytesGiven(option, one).toString('utf8').split('\n');
    return lines
      .filter((line) => line.trim() !== '')
      .map((line) => keyOf(line.trim(), option, parse));
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

/** The authorities that `--tsa` names. Throws a UsageError. */
export function authoritiesGiven(file: string): readonly X509Certificate[] {
  try {
    return authoritiesIn(bytesGiven('tsa', file).toString('utf8'));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`--tsa: ${cleanText(file, shownMax)}: ${error.message}`);
  }
}

/** The bytes of a file that an option names. Throws a UsageError. */
export function bytesGiven(option: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const isNone = errorCodeOf(error) === 'ENOENT';
    const why = isNone ? `there is no file ${file}${keyHint(option)}` : errorText(error);
    throw new UsageError(`--${option}: ${cleanText(why, shownMax)}`);
  }
}

function keyHint(option: string): string {
  return option === 'key' ? '; its operator prints the public key with archive keys show' : '';
}

function keyOf(line: string, option: string, parse: (vkey: string) => Verifier): Verifier {
  try {
    return parse(line);
  } catch (error) {
    throw new UsageError(`--${option}: ${cleanText(errorText(error), shownMax)}`);
  }
}

/**
 * The archive at a location, its entries proven against its newest checkpoint. The checkpoint's signature is not
 * checked.
 */
export async function provenArchive(
  location: string,
  env: CommandDeps['env'],
): Promise<ProvenReader> {
  const { store } = await openArchive(location, env);
  return new ProvenReader(store, await signedHead(store));
}

/** `--sign-with` of commands that request a removal. */
export const signWithOption = {
  value: 'file',
  about:
    'a private key that signs the request: the archive’s, or one of `operators`; required if accept_requests is false',
} as const;

/**
 * The signature of a request; undefined if no key is given. Throws an ExportError if the archive accepts signed
 * requests only.
 */
export async function signatureOf(
  store: ObjectStore,
  file: string | undefined,
  request: Pick<ReadRequest, 'kind' | 'wish'>,
): Promise<string | undefined> {
  const head = await signedHead(store);
  const { origin } = head;
  const { isOpen, archive } = await readably(store, async () => {
    const { body = Buffer.alloc(0) } = (await readSmall(store, manifestPath)) ?? {};
    let rule = acceptsByDefault(parseManifest(body)) ? 'accepted' : 'signed';
    for await (const { entry } of entriesOf(new ProvenReader(store, head), ['start'])) {
      rule = entry.requests ?? rule;
    }
    return { isOpen: rule === 'accepted', archive: hash('sha256', body, 'hex') };
  });
  if (file !== undefined) {
    return await signRequest(signingKeyGiven(file), { origin, archive }, request);
  }
  if (isOpen) return undefined;
  throw new ExportError(
    'sink_refused',
    `requesting a removal from ${store.location}: this archive carries out signed requests only`,
    {
      next: 'Give the archive’s private key, or an operator’s, as --sign-with FILE. Nothing was requested.',
    },
  );
}

/** The newest checkpoint. Throws an ExportError if the archive is damaged there. */
export async function signedHead(store: ObjectStore): Promise<Checkpoint> {
  return await readably(store, async () => {
    const found = await readSmall(store, checkpointPath);
    if (found === null) throw new SyntaxError('there is no archive');
    return parseCheckpoint(parseNote(found.body).text);
  });
}

/** The holds that were set. A hold that cannot be read keeps everything until it is repaired. */
export async function holdsAt(store: ObjectStore): Promise<readonly Hold[]> {
  return await readably(store, () => holdsIn(store));
}

/** Runs work on an archive. Damage becomes an ExportError that names the next step. */
export async function readably<T>(store: ObjectStore, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `reading ${store.location}: ${error.message}`, {
      next: 'Name the location of an archive, and repair the named object. `sluice archive verify` reports details.',
      cause: error,
    });
  }
}
