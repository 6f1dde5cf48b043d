// Opens an archive for writing: a new one, or one in the state in which its last writer ended. The store's checkpoint
// gives the log's size, the mark (heads.ts) the tree that was about to be signed. Invariants: nothing is written before
// the owner of the archive is known; a tree that may have been signed is signed again, or nothing is; an archive with
// less than this state has seen signed is rejected, because a second root for one size would prove the archive false.

import { hash, randomBytes } from 'node:crypto';
import type { Clock, Json } from '../contracts/index.ts';
import type { ObjectContent, ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import { type Checkpoint, parseCheckpoint } from './checkpoint.ts';
import { Claim, refuseClaimed, takenOver } from './claim.ts';
import { GrowingTree, readEntries } from './growing-tree.ts';
import {
  addToHeads,
  earlierLogs,
  type Heads,
  noHeads,
  parseMark,
  type SigningMark,
} from './heads.ts';
import {
  acceptsByDefault,
  checkpointPath,
  checkpointSizeOf,
  encodeManifest,
  keptCheckpointPath,
  keptCheckpointsPrefix,
  manifestPath,
  parseManifest,
} from './layout.ts';
import { ArchiveLog, type LogDeps, type Published } from './log.ts';
import { signerOfLog } from './log-name.ts';
import { loggedEntries } from './logged.ts';
import { emptyRoot, leafHash, rootAt } from './merkle.ts';
import {
  fenceLine,
  openNote,
  parseNote,
  type Signer,
  type Verifier,
  withoutFence,
} from './note.ts';
import { ProvenReader } from './proven-reader.ts';
import {
  CheckpointGoneError,
  ElsewhereError,
  OtherKeyError,
  reported,
  UnprovenCopyError,
} from './refusals.ts';
import { readSmall } from './small-objects.ts';

/** Settings of an archive opened for writing. */
export interface ArchiveLogSettings {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly signer: Signer;
  /** The log's shard, if the key signs several logs. */
  readonly shard?: number | undefined;
  /** The next key during a rotation; signs as well. */
  readonly next?: Signer;
  /** The spool whose pages are archived. */
  readonly spool: string;
  /** The spool's present epoch. */
  readonly epoch?: number;
  /** Another claim is valid for this long after its renewal, milliseconds. */
  readonly staleMs: number;
  /** Default: as the archive says; in a new one only signed requests. */
  readonly accept_requests?: boolean | undefined;
  /** Keys that may sign requests beside the archive's own. Default: none. */
  readonly operators?: readonly Verifier[] | undefined;
  /** The location as the config names it; for another process the same text may be another directory. */
  readonly configured?: string | undefined;
  /** The last stored mark; null: nothing is known. */
  readonly mark: Json | null;
  remember(mark: Json): Promise<void>;
}

/** The checkpoint in the store. */
interface StoredCheckpoint extends Checkpoint {
  readonly tag: string;
  readonly note: Uint8Array;
}

/** Opens the archive. Throws an ExportError with the reason and the next step if it cannot be opened. */
export async function openArchiveLog(settings: ArchiveLogSettings): Promise<ArchiveLog> {
  return await reported(settings.store, () => opened(settings));
}

/** A check beside a process that signs is repeated so often. */
const checksMax = 5;

/**
 * Checks without writing that this key signs the archive, that it continues the mark, and that no other state is
 * writing to it; the archive may not exist yet. Returns its newest checkpoint (null: none), and the signer of the next
 * one.
 */
export async function checkArchive(
  asked: Pick<ArchiveLogSettings, 'store' | 'signer' | 'shard' | 'configured' | 'mark' | 'staleMs'>,
  now: number,
): Promise<{ readonly newest: Published | null; readonly signer: Signer }> {
  const { store } = asked;
  const head = async () => {
    const found = await readSmall(store, checkpointPath);
    return found && hash('sha256', found.body, 'hex');
  };
  return await reported(store, async () => {
    for (let tries = 1; ; tries += 1) {
      const before = await head();
      try {
        return await checked(asked, now);
      } catch (error) {
        // A process that signed meanwhile is no flaw: this saw its log partly before that, and partly after.
        if (tries === checksMax || (await head()) === before) throw error;
      }
    }
  });
}

async function checked({ staleMs, ...asked }: Parameters<typeof checkArchive>[0], now: number) {
  const { store } = asked;
  const { manifest, stored, known, signer } = await look(asked);
  if (manifest === null) return { newest: null, signer };
  const { key } = checkedManifest(manifest.body, signer);
  const archive = hash('sha256', manifest.body, 'hex');
  const about = { stored, known, key, archive, now };
  const { published: newest } = await read(store, [signer], about);
  // Before the first checkpoint this state's own process, which cannot sign yet, may hold the claim.
  if (newest !== null && known === null) await refuseClaimed(store, { now, staleMs });
  return { newest, signer };
}

/**
 * Throws if the store should be the one that the state has written, and is not: one directory name can be two
 * directories for two processes, and each log would have a part of every stream.
 */
function refuseElsewhere(
  { location, configured: before }: SigningMark,
  of: Pick<ArchiveLogSettings, 'store' | 'configured'> & { readonly isGone: boolean },
): void {
  const { store, configured, isGone } = of;
  if (location === store.location) {
    throw new ElsewhereError(
      isGone
        ? 'it is gone: archive.json is not where it was'
        : 'it is another archive than the one that this state has written there',
    );
  }
  if (configured === undefined || configured !== before) return;
  throw new ElsewhereError(`this state has written it in ${location}, and it is not here`);
}

/** The stored objects as far as they show a flaw, and the mark if it belongs to them. */
async function look(
  asked: Pick<ArchiveLogSettings, 'store' | 'signer' | 'shard' | 'configured' | 'mark'>,
) {
  const { store, shard, configured } = asked;
  const mark = asked.mark === null ? null : parseMark(asked.mark);
  const found = await readSmall(store, manifestPath);
  const archive = found && hash('sha256', found.body, 'hex');
  const known = mark?.archive === archive ? mark : null;
  const origin = found && parseManifest(found.body).origin;
  const signer = signerOfLog(asked.signer, { shard, origin });
  if (found !== null) checkedManifest(found.body, signer);
  const stored = await readStoredCheckpoint(store, signer);
  if (found === null && stored !== null) {
    throw new SyntaxError(
      'a checkpoint is there, and no archive.json: it is none of sluice, or damaged',
    );
  }
  if (mark !== null && known === null) {
    refuseElsewhere(mark, { store, configured, isGone: found === null });
  }
  await refuseBehindKept(store, Math.max(stored?.size ?? 0, known?.size ?? 0), { known, signer });
  const earlier = earlierLogs(asked.mark, known === null);
  return { manifest: found, stored, known, signer, earlier };
}

/**
 * Throws if a permanent copy of a checkpoint has more entries than the known signed ones: a copy is stored after its
 * signature, so its entries would be overwritten, and another root signed for one size. Also throws if that copy proves
 * nothing, because it may be a damaged true one.
 */
async function refuseBehindKept(
  store: ObjectStore,
  size: number,
  { known, signer }: { readonly known: SigningMark | null; readonly signer: Signer },
) {
  const last = known === null ? undefined : keptCheckpointPath(known.size, known.at);
  let [newest, copy] = [size, ''];
  let unproven: string | null = null;
  for await (const { name } of store.list(keptCheckpointsPrefix, last)) {
    const kept = name.endsWith('.note') ? (checkpointSizeOf(name) ?? 0) : 0;
    if (kept <= newest) continue;
    if (await isSignedCopy(store, { name, size: kept }, signer)) [newest, copy] = [kept, name];
    else unproven ??= name;
  }
  if (copy === '' && unproven !== null) throw new UnprovenCopyError(unproven, size);
  if (copy === '') return;
  throw new CheckpointGoneError(
    `its checkpoint is of ${size} entries, and ${newest} were signed: it is gone, or an older one was put back`,
    copy,
  );
}

/** Whether the key has signed a stored copy, and its size is that of its name. */
async function isSignedCopy(
  store: ObjectStore,
  { name, size }: { readonly name: string; readonly size: number },
  { verifier }: Signer,
): Promise<boolean> {
  try {
    const found = await readSmall(store, name);
    const text = found && openNote(found.body, [verifier]).text;
    return text !== null && parseCheckpoint(text).size === size;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

async function opened(settings: ArchiveLogSettings): Promise<ArchiveLog> {
  const { store, clock, next, shard } = settings;
  const { manifest, stored: found, known, signer, earlier } = await look(settings);
  const claim = await Claim.take(settings);
  const stored = found && (await fenced(store, found));
  const isBegun = manifest !== null && (found !== null || known !== null);
  const bytes = isBegun
    ? manifest.body
    : newManifest(signer, clock.now(), settings.accept_requests);
  if (!isBegun) await writeManifest(store, bytes, manifest);
  const { key, salt, requests, cuts } = checkedManifest(bytes, signer);
  const origin = signer.verifier.name;
  const deps = {
    store,
    claim,
    origin,
    archive: hash('sha256', bytes, 'hex'),
    salt: Buffer.from(salt, 'hex'),
    signers: next === undefined ? [signer] : [signer, signerOfLog(next, { shard, origin })],
    remember: settings.remember,
    configured: settings.configured,
    earlier,
    hasSignedCuts: cuts === 'signed',
    rules: {
      acceptsUnsigned: settings.accept_requests ?? acceptsByDefault({ requests, cuts }),
      operators: settings.operators ?? [],
    },
    isResumedFromStore: stored !== null && (known === null || known.size < stored.size),
  };
  const { archive } = deps;
  return await resumed(deps, { stored, known, key, archive, now: clock.now() });
}

/** Objects from before the first signature prove nothing: others may have written or changed them. */
async function writeManifest(
  store: ObjectStore,
  bytes: Uint8Array,
  found: ObjectContent | null,
): Promise<void> {
  const isWritten =
    found === null
      ? (await store.create(manifestPath, [bytes])) === 'created'
      : (await store.replace(manifestPath, [bytes], found.tag)) !== null;
  if (!isWritten) throw takenOver(store);
}

/**
 * Rewrites the checkpoint as another version of itself. An earlier writer that is still running can then sign no more:
 * its objects, which no checkpoint covers, are about to be overwritten.
 */
async function fenced(store: ObjectStore, stored: StoredCheckpoint): Promise<StoredCheckpoint> {
  const tag = await store.replace(checkpointPath, [stored.note, fenceLine()], stored.tag);
  if (tag === null) throw takenOver(store);
  return { ...stored, tag };
}

function newManifest(
  { verifier }: Signer,
  now: number,
  acceptsRequests: boolean | undefined,
): Uint8Array {
  const salt = randomBytes(32).toString('hex');
  const { name: origin, vkey: key } = verifier;
  const rule = acceptsRequests === true ? {} : { requests: 'signed' as const };
  return encodeManifest({ origin, key, salt, created_at: timeText(now), ...rule, cuts: 'signed' });
}

function checkedManifest(bytes: Uint8Array, { verifier }: Signer) {
  const manifest = parseManifest(bytes);
  if (manifest.origin !== verifier.name) {
    throw new OtherKeyError(
      `it is the archive ${manifest.origin}, and the signing key is one of ${verifier.name}`,
    );
  }
  return manifest;
}

async function readStoredCheckpoint(
  store: ObjectStore,
  { verifier }: Signer,
): Promise<StoredCheckpoint | null> {
  const found = await readSmall(store, checkpointPath);
  if (found === null) return null;
  const { keyId, name } = verifier;
  if (!parseNote(found.body).signatures.some((one) => one.keyId.equals(keyId))) {
    throw new OtherKeyError(
      `no known key has signed its checkpoint: signing_key is ${name}+${keyId.toString('hex')}`,
    );
  }
  const checkpoint = parseCheckpoint(openNote(found.body, [verifier]).text);
  if (checkpoint.origin !== name) {
    throw new SyntaxError(`its checkpoint is of another log, ${checkpoint.origin}`);
  }
  return { ...checkpoint, tag: found.tag, note: withoutFence(found.body) };
}

interface Known {
  readonly stored: StoredCheckpoint | null;
  readonly known: SigningMark | null;
  /** The archive's first key. */
  readonly key: string;
  /** SHA-256 of `archive.json`, in hex. */
  readonly archive: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** The log with all signed entries, and with those of the mark that were about to be signed. */
async function resumed(deps: LogDeps, about: Known): Promise<ArchiveLog> {
  const { stored, known } = about;
  const { published, ...found } = await read(deps.store, deps.signers, about);
  const log = new ArchiveLog(deps, { ...found, tag: stored?.tag ?? null, published });
  if (known !== null && known.size > (stored?.size ?? 0)) await log.sign(known.at);
  else if (published !== null) await log.keep(published);
  return log;
}

/** The same, read and compared. */
async function read(
  store: ObjectStore,
  signers: readonly Signer[],
  { stored, known, key, archive, now }: Known,
) {
  const size = stored?.size ?? 0;
  if (known !== null && known.size > size && (await isCut(store, size, known.size))) {
    throw new SyntaxError(
      `it ends at entry ${size}, and ${known.size} were signed: an older copy was put back, or its end is gone`,
    );
  }
  const tree = await GrowingTree.read(store, size);
  if (stored !== null && !tree.root.equals(stored.root)) {
    throw new SyntaxError(`its tiles are not those of its checkpoint of size ${size}`);
  }
  const isAhead = known !== null && known.size > size;
  const root = isAhead ? Buffer.from(known.root, 'hex') : (stored?.root ?? emptyRoot);
  const signed = { size: isAhead ? known.size : size, root };
  const heads = await headsAt(new ProvenReader(store, signed), { known, key });
  // The file has the key of cursor hashes and the rule for requests; without a mark only the log vouches for the file.
  if (heads.archive !== null && heads.archive !== archive) {
    throw new SyntaxError('archive.json is not the one that the log names: it was changed');
  }
  if (signers.every(({ verifier }) => verifier.vkey !== heads.key)) {
    throw new OtherKeyError(`its present key is ${heads.key}, and the signing key another`);
  }
  const isOwn = known === null || known.size === size;
  const published: Published | null =
    stored === null
      ? null
      : {
          size,
          root: tree.root.toString('hex'),
          at: (isOwn ? known?.at : null) ?? now,
          note: stored.note,
        };
  if (known !== null && known.size > size) {
    for await (const entry of readEntries(store, size, known.size)) tree.append(entry);
  }
  if (known !== null && known.size >= size && tree.root.toString('hex') !== known.root) {
    throw new SyntaxError(
      'it differs from the signed one: an older copy was restored, or it was changed',
    );
  }
  return { tree, heads, published };
}

/** Whether entries are missing that were durable before the mark was stored. */
async function isCut(store: ObjectStore, from: number, size: number): Promise<boolean> {
  try {
    for await (const _ of readEntries(store, from, size));
    return false;
  } catch (error) {
    if (error instanceof SyntaxError) return true;
    throw error;
  }
}

/** The log's state, from the mark if it belongs to this log, and from its proven entries. */
async function headsAt(
  reader: ProvenReader,
  { known, key }: { known: SigningMark | null; key: string },
): Promise<Heads> {
  const { size } = reader.head;
  // The mark of a version without daily totals has the other fields: its entries are read again.
  const days = known?.heads.days ?? null;
  const from = known === null || days === null ? 0 : known.size;
  const heads =
    known === null || days === null ? noHeads(key) : structuredClone({ ...known.heads, days });
  if (known !== null && known.size < size) {
    const root = await rootAt(known.size, reader.hashes);
    if (root.toString('hex') !== known.root) {
      throw new SyntaxError(`it does not begin with the log signed at size ${known.size}`);
    }
  }
  for await (const { entry, bytes } of loggedEntries(reader, size, from)) {
    addToHeads(heads, entry, leafHash(bytes));
  }
  return heads;
}
