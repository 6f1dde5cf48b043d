// Opens archives for commands that show or send their contents, up to a checkpoint that a known key has signed. The key
// comes from --key, or from the config's sink that writes this archive. It never comes from the archive, which others
// can change. Invariant: with a known key, a command shows only content that this key's newest checkpoint proves;
// without one it reports that nothing is proven.

import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import {
  checkpointPath,
  keyOfLog,
  type ObjectStore,
  openNote,
  ProvenReader,
  parseCheckpoint,
  parseNote,
  readSmall,
  type SignedHead,
  shardOfLog,
  signerOf,
  signingSettings,
  type Verifier,
  withoutFence,
} from '../../archive/index.ts';
import { type Config, inShards } from '../../config/index.ts';
import { ExportError } from '../../contracts/index.ts';
import { keyOption, keysGiven, openArchive, shardAt } from './given.ts';

/** `--key` of commands that also work without it. */
export const trustedKeyOption = {
  value: keyOption.value,
  about: 'the public key that signs the archive now, or a file of keys',
  several: true,
} as const;

/**
 * The newest checkpoint, signed by one of the keys. `shard`: the shard whose log it has to be; undefined: the location
 * does not name one. Throws a SyntaxError if it is another's.
 */
export async function trustedHead(
  store: ObjectStore,
  trusted: readonly Verifier[],
  shard: number | undefined,
): Promise<SignedHead> {
  const head = await readHead(store);
  const keys = trusted.map((key) => keyOfLog(key, head.origin));
  const { by } = openNote(head.note, keys);
  if (by.every(({ name }) => name !== head.origin)) {
    throw new SyntaxError(`the key is not one of the log ${head.origin}`);
  }
  const own = trusted.map((key) => shardOfLog(key, head.origin)).find((found) => found !== null);
  if (shard !== undefined && own !== undefined && own !== shard) {
    throw new SyntaxError(`the log of shard ${own} is at the location of shard ${shard}`);
  }
  return { ...head, keys };
}

/** The newest checkpoint, its signature not checked. */
async function readHead(store: ObjectStore): Promise<SignedHead> {
  const note = (await readSmall(store, checkpointPath))?.body;
  if (note === undefined) {
    throw new ExportError(
      'sink_refused',
      `reading the archive at ${store.location}: there is no archive`,
      {
        next: 'Name the location of an archive. If this was one, its checkpoint was removed: restore it from a copy.',
      },
    );
  }
  return { note: withoutFence(note), ...parseCheckpoint(parseNote(note).text), keys: [] };
}

/**
 * The archive at a location, its entries proven against its newest checkpoint. `trusted`: keys, one of which must have
 * signed it; null: no key is known, and the signature is not checked. Throws an ExportError if none of them signed.
 */
export async function trustedArchive(
  location: string,
  trusted: readonly Verifier[] | null,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ProvenReader> {
  const { store } = await openArchive(location, env);
  try {
    if (trusted === null) return new ProvenReader(store, await readHead(store));
    return new ProvenReader(store, await trustedHead(store, trusted, shardAt(location)));
  } catch (error) {
    store.close();
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `reading the archive ${location}: ${error.message}`, {
      next: 'Nothing was read. If the key was rotated, or another key signs this archive, give the key that signs now as --key. Otherwise it was changed: `npx sluice archive verify` lists the breaks.',
      cause: error,
    });
  }
}

/** Warning for stderr: no key is known. */
export const notProvenText =
  'not proven: no key is known, so the signature of the archive was not checked. Give --key VKEY, the public key of the archive.';

/**
 * The keys that prove an archive: those of --key, else the key of the config's sink that writes it; null: no key is
 * known. Throws a UsageError for a --key that is not a key.
 */
export function keysFor(
  location: string,
  given: readonly string[] | undefined,
  config: Config | null,
): readonly Verifier[] | null {
  if (given !== undefined) return keysGiven(given);
  const keys = config === null ? [] : inShards(config).flatMap((one) => keysOf(one, location));
  return keys.length === 0 ? null : keys;
}

const archiveSettings = z.looseObject({ location: z.string(), ...signingSettings.shape });

/** The keys by which sinks of a config write the archive at a location, or those of its shards. */
function keysOf({ sinks }: Config, location: string): readonly Verifier[] {
  const asked = placeOf(location);
  return Object.values(sinks).flatMap(({ settings }) => {
    const { success, data } = archiveSettings.safeParse(settings);
    if (settings.type !== 'archive' || !success) return [];
    const place = placeOf(data.location);
    // With several shards, the location of all logs is accepted as well.
    const isAsked = place === asked || (data.shard !== undefined && place.startsWith(`${asked}/`));
    if (!isAsked) return [];
    try {
      return [signerOf(data).verifier];
    } catch (error) {
      // A command that only looks may have no right to read the key.
      if (error instanceof ExportError) return [];
      throw error;
    }
  });
}

/** A location in the form in which two are compared. */
function placeOf(location: string): string {
  if (location.startsWith('s3://')) return location.replace(/\/+$/, '');
  const path = resolve(location);
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
