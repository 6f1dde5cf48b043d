// Opens an archive from its settings, and probes it before; separate from its declaration, which
// every command loads.

import {
  parseVkey,
  signerOf,
  staleMsOf,
  type WitnessSettings,
  witnessing,
} from '../../../src/archive/index.ts';
import {
  type Anchor,
  checkArchive,
  type StampSettings,
  segmentBytesMax,
  timeStamper,
} from '../../../src/archive/write.ts';
import {
  ExportError,
  errorCodeOf,
  errorText,
  type Json,
  type Secret,
  type Sink,
  type SinkOpening,
  type Tools,
  untilAborted,
} from '../../../src/contracts/index.ts';
import { type ObjectStore, openStore } from '../../../src/objects/index.ts';
import { probeDirectory } from '../../shared/writable-directory.ts';
import { checkLocks, type LockSettings, lockedStore } from './locked.ts';
import { OpenArchive } from './open-archive.ts';
import { probeAnchors, probeBucket } from './probes.ts';

/** The external witnesses of checkpoints. */
interface AnchorSettings {
  readonly tsa?: Omit<StampSettings, 'proxy'> | undefined;
  readonly witnesses?: readonly WitnessSettings[] | undefined;
  readonly proxy?: Secret | undefined;
}

/** Location, signer and retention of an archive (milliseconds). */
type ArchiveSettings = AnchorSettings &
  Parameters<typeof openStore>[1] &
  Parameters<typeof signerOf>[0] & {
    readonly location: string;
    readonly object_lock?: LockSettings | undefined;
    readonly keep?: { readonly bodies: number } | undefined;
    readonly accept_requests?: boolean | undefined;
    readonly operators?: readonly string[] | undefined;
    /** Locations of the other shards' archives, by number; never in a config (config/shards.ts). */
    readonly others?: Readonly<Record<string, string>> | undefined;
    readonly checkpointEveryMs: number;
  };

/**
 * Opens it; a checkpoint is signed every `checkpointEveryMs`. Throws the errors of opening a store.
 */
export async function openArchiveSink(
  settings: ArchiveSettings,
  opening: SinkOpening,
): Promise<Sink> {
  const { location, object_lock: lock, checkpointEveryMs, shard } = settings;
  const found = await openStore(location, settings);
  const store = lock === undefined ? found : lockedStore(found, lock, opening.tools.clock);
  const signer = () => signerOf(settings);
  const bodiesMs = settings.keep?.bodies ?? null;
  const anchors = anchorsOf(settings, store, opening.tools);
  const operators = settings.operators?.map((vkey) => parseVkey(vkey.trim()));
  const { accept_requests, others } = settings;
  const siblings =
    others === undefined
      ? undefined
      : Object.entries(others).map(([number, place]) => ({
          shard: Number(number),
          open: () => openStore(place, settings),
        }));
  const who = { configured: location, signer, shard, anchors, operators, siblings };
  return new OpenArchive({ store, ...who, checkpointEveryMs, bodiesMs, accept_requests }, opening);
}

/**
 * Probes every requirement of the first write; `mark`: the mark in the state. Throws an
 * ExportError.
 */
export async function probeArchive(
  settings: ArchiveSettings,
  {
    tools,
    signal,
    mark,
  }: { readonly tools: Tools; readonly signal: AbortSignal; readonly mark: Json | null },
): Promise<void> {
  const { location, object_lock: lock, keep } = settings;
  const isBucket = location.startsWith('s3://');
  if (!isBucket) await probeRoom(location);
  const store = await openStore(location, settings);
  const looked = async () => {
    if (lock !== undefined) await checkLocks(store);
    const now = tools.clock.now();
    const { newest, signer } = await checkArchive(
      {
        ...{ store, signer: signerOf(settings), shard: settings.shard, mark },
        configured: location,
        staleMs: staleMsOf(settings.checkpointEveryMs),
      },
      now,
    );
    if (isBucket) await probeBucket(store, { deletes: keep !== undefined });
    // Neither a checkpoint nor a text that could pass for one.
    await signer.sign(Buffer.from('sluice checks that this key signs\n'));
    const anchors = anchorsOf(settings, store, tools);
    await probeAnchors(anchors, { newest, signer, now }, signal);
  };
  await untilAborted(looked(), signal, () => store.close()).finally(() => store.close());
}

function anchorsOf(
  { tsa, witnesses, proxy }: AnchorSettings,
  store: ObjectStore,
  { http }: Pick<Tools, 'http'>,
): readonly Anchor[] {
  return [
    ...(tsa === undefined ? [] : [timeStamper({ ...tsa, proxy }, http)]),
    ...(witnesses === undefined ? [] : [witnessing(witnesses, { store, http, proxy })]),
  ];
}

const mib = (bytes: number) => Math.floor(bytes / (1024 * 1024));

/** Throws if files cannot be created there, or space is low. */
async function probeRoom(location: string): Promise<void> {
  const free = await probeDirectory(location).catch((error) => {
    const what = errorCodeOf(error) || errorText(error);
    if (what === 'ENOSPC' || what === 'EDQUOT') return 0;
    throw new ExportError('sink_refused', `looking whether ${location} can be written: ${what}`, {
      next: 'Let the user that runs sluice write there, or change location.',
      cause: error,
    });
  });
  if (free >= segmentBytesMax) return;
  throw new ExportError(
    'disk_full',
    `the disk of ${location} has ${mib(free)} MiB free, and one checkpoint may need ${mib(segmentBytesMax)}`,
    { next: 'Free space on that disk, or change location.' },
  );
}
