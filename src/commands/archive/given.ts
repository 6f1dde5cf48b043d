// What commands about archives are given: the place where one lies, and keys that a reader trusts.

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
import { ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { type ObjectStore, openStore } from '../../objects/index.ts';
import { cleanText } from '../../tools/index.ts';
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

/** What a shard that has archived nothing yet may have. */
const beforeTheLog = /^\d+\/(?:archive\.json|writer|prune\.json|(?:holds|erase)\/.*)$/;

/**
 * Where the archives at a location are: there, and below it one a shard of the state that they were written from, by
 * number. An archive in the place of the shards does not hide theirs.
 */
export async function archivesAt(
  location: string,
  env: Means['env'],
): Promise<readonly [string, ...string[]]> {
  const { store } = await openArchive(location, env);
  try {
    const isHere = (await store.facts(checkpointPath)) !== null;
    const numbers: string[] = [];
    /** Files in the place of an archive, which cannot be read. */
    const inPlace: string[] = [];
    // Digits come before what an archive's own names begin with.
    for (let name = await firstBehind(store, ''); name !== null && name < ':'; ) {
      const [number = '', ...below] = name.split('/');
      const isNumber = /^\d+$/.test(number);
      if (isNumber && below.length === 0) inPlace.push(number);
      else if (isNumber && (await hasBegun(store, number))) numbers.push(number);
      // What is below it is not of interest: "0" is what follows "/".
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
    // Whoever reads it says what is wrong.
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

/** The shard whose archive has its place there; undefined: the place says none. */
export function shardAt(location: string): number | undefined {
  const [, number] = /\/(\d+)\/*$/.exec(`/${location}`) ?? [];
  return number === undefined ? undefined : Number(number);
}

async function firstBehind(store: ObjectStore, after: string): Promise<string | null> {
  for await (const { name } of store.list('', after)) return name;
  return null;
}

/** The keys that `--key` gives: each a vkey, or a file with one a line. Throws a UsageError. */
export function keysGiven(given: readonly string[]): readonly Verifier[] {
  return keysOf('key', given, parseVkey);
}

/** The witnesses that `--witness` gives, and how many of them it takes. Throws a UsageError. */
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
    throw new UsageError(`--${option}: ${cleanText(errorText(error), shownMax)}`);
  }
}

function keyOf(line: string, option: string, parse: (vkey: string) => Verifier): Verifier {
  try {
    return parse(line);
  } catch (error) {
    throw new UsageError(`--${option}: ${cleanText(errorText(error), shownMax)}`);
  }
}

/** The archive at a location, its entries proven against its newest checkpoint, whose signature is not checked. */
export async function provenArchive(location: string, env: Means['env']): Promise<ProvenReader> {
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
 * The signature of a request; undefined where no key is given. Throws an ExportError where the archive carries out
 * signed requests only.
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
    `requesting a removal from ${store.place}: this archive carries out signed requests only`,
    {
      next: 'Give the archive’s private key, or an operator’s, as --sign-with FILE. Nothing was requested.',
    },
  );
}

/** What the newest checkpoint says; where the archive is damaged there, an ExportError says so. */
export async function signedHead(store: ObjectStore): Promise<Checkpoint> {
  return await readably(store, async () => {
    const found = await readSmall(store, checkpointPath);
    if (found === null) throw new SyntaxError('there is no archive');
    return parseCheckpoint(parseNote(found.body).text);
  });
}

/** The holds that were set. One that cannot be read has nothing go, until it is mended. */
export async function holdsAt(store: ObjectStore): Promise<readonly Hold[]> {
  return await readably(store, () => holdsIn(store));
}

/** Does work on an archive; a damaged one is an ExportError that says what to do. */
export async function readably<T>(store: ObjectStore, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `reading ${store.place}: ${error.message}`, {
      next: 'Name the location of an archive, and repair the named object. `sluice archive verify` reports details.',
      cause: error,
    });
  }
}
