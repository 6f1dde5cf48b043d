// Writing archives in tests: held pages in a row as a spool has them, a writer whose mark is kept as a state directory
// would keep it, a store that ends at a chosen call as a killed process does, and an archive read back whole by its
// checkpoint alone.

import { hash } from 'node:crypto';
import type { Anchors } from '../../src/archive/anchors/anchors.ts';
import { parseCheckpoint } from '../../src/archive/checkpoint.ts';
import { type Entry, type PageEntry, parseEntry } from '../../src/archive/entries.ts';
import { GrowingTree, readEntries } from '../../src/archive/growing-tree.ts';
import { checkpointPath } from '../../src/archive/layout.ts';
import { keyOfLog } from '../../src/archive/log-name.ts';
import { leafHash, rootOf } from '../../src/archive/merkle.ts';
import {
  openNote,
  parseNote,
  parseSigningKey,
  type Signer,
  signingKeyText,
  type Verifier,
} from '../../src/archive/note.ts';
import { ArchiveReader } from '../../src/archive/reader.ts';
import { pageRange, readPage } from '../../src/archive/segments.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import { type ArchiveWriter, openWriter } from '../../src/archive/writer.ts';
import type { Json } from '../../src/contracts/json.ts';
import { Secret } from '../../src/contracts/secret.ts';
import { type HeldPage, uidBytes } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import type { ObjectStore } from '../../src/objects/store.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aPage } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';

/** A key of that name, the same at each call. */
export function aSigner(name = 'archive.test', seed = 1): Signer {
  return parseSigningKey(signingKeyText(name, Buffer.alloc(32, seed)));
}

/** The secret key of `aSigner`, as a sink's settings have it. */
export function aSigningKey(name = 'archive.test', seed = 1): Secret {
  return new Secret(() => signingKeyText(name, Buffer.alloc(32, seed)));
}

/** Pages as a spool holds them, one behind the other from event `first` on. */
export function heldPages(count: number, first = 0, stream = 'audit'): readonly HeldPage[] {
  return Array.from({ length: count }, (_, i) => {
    const at = first + i * 3;
    const page = aPage({ stream, ids: [`${at}`, `${at + 1}`, `${at + 2}`] });
    return { ...page, first: at, count: 3 };
  });
}

/** The data that outlive a process, other than the archive. */
export interface State {
  mark: Json | null;
}

/** What a test may say about how a writer is opened. */
export interface WriterWishes {
  readonly store: ObjectStore;
  readonly state?: State;
  readonly spool?: string;
  /** The spool's present epoch. Default: 1. */
  readonly epoch?: number;
  readonly signer?: Signer;
  readonly checkpointEveryMs?: number;
  readonly bodiesMs?: number;
  /** Default: true. */
  readonly accept_requests?: boolean | undefined;
  /** True: accept_requests is as in a new archive whose config does not name it. */
  readonly isNew?: boolean;
  readonly operators?: readonly Verifier[];
  readonly config?: () => string;
  /** Epoch milliseconds, in place of the machine's. */
  readonly now?: () => number;
  readonly remember?: (mark: Json) => Promise<void>;
  /** The location as a config has it. */
  readonly configured?: string;
  /** The sink that writes, and those of the config. */
  readonly sink?: string;
  readonly sinks?: readonly string[];
  /** Who else is shown its checkpoints. */
  readonly anchors?: Anchors;
}

/** Opens a writer. */
export function aWriter({ store, state = { mark: null }, ...wishes }: WriterWishes) {
  return openWriter({
    store,
    clock: { ...systemClock(), ...(wishes.now && { now: wishes.now }) },
    signer: wishes.signer ?? aSigner(),
    numbering: {
      spool: wishes.spool ?? 'spool-1',
      epochs: [{ id: wishes.epoch ?? 1, until: null }],
    },
    config: wishes.config ?? (() => null),
    checkpointEveryMs: wishes.checkpointEveryMs ?? 60_000,
    mark: state.mark,
    signed: async () => undefined,
    bodiesMs: wishes.bodiesMs ?? null,
    accept_requests: wishes.isNew === true ? undefined : (wishes.accept_requests ?? true),
    ...(wishes.operators && { operators: wishes.operators }),
    ...(wishes.configured && { configured: wishes.configured }),
    ...(wishes.sink && { sink: wishes.sink }),
    ...(wishes.sinks && { sinks: wishes.sinks }),
    ...(wishes.anchors && { anchors: wishes.anchors }),
    log: silent,
    remember:
      wishes.remember ??
      (async (mark) => {
        state.mark = mark;
      }),
  });
}

/** Adds pages and has them published. */
export async function archived(writer: ArchiveWriter, pages: readonly HeldPage[]): Promise<void> {
  const added = writer.add(pages);
  await Promise.all([writer.flush(), added]);
}

/** What a process was killed with: nothing that it does afterwards counts. */
export class Killed extends Error {}

/** Where a process is killed: at its nth change of the store, before or after that is done. */
export interface Kill {
  /** Counts down with each change. */
  left: number;
  readonly when: 'before' | 'after';
  isDead: boolean;
}

/** A store whose process is killed at one of its changes. */
export function mortal(store: ObjectStore, kill: Kill): ObjectStore {
  const change = async <T>(work: () => Promise<T>): Promise<T> => {
    if (kill.isDead) throw new Killed();
    kill.left -= 1;
    if (kill.left > 0) return await work();
    kill.isDead = true;
    if (kill.when === 'after') await work();
    throw new Killed();
  };
  return {
    ...store,
    create: (...by) => change(() => store.create(...by)),
    replace: (...by) => change(() => store.replace(...by)),
    put: (...by) => change(() => store.put(...by)),
    remove: (...by) => change(() => store.remove(...by)),
    removeOlder: (...by) => change(() => store.removeOlder(...by)),
  };
}

/** An archive read back. */
export interface ReadArchive {
  readonly size: number;
  readonly root: string;
  readonly entries: readonly Entry[];
  /** Uids of the events in order. */
  readonly uids: readonly string[];
}

/** Reads an archive whole, checking its root, chains, segments and bodies on the way. */
export async function readArchive(
  place: string | ObjectStore,
  signer = aSigner(),
): Promise<ReadArchive> {
  const store = typeof place === 'string' ? openDirectory(place) : place;
  const read = async (name: string) => {
    const found = await store.read(name);
    if (found === null) throw new Error(`${name} is missing`);
    return found.body;
  };
  const note = await read(checkpointPath);
  const { origin } = parseCheckpoint(parseNote(note).text);
  const { text } = openNote(note, [keyOfLog(signer.verifier, origin)]);
  const { size, root } = parseCheckpoint(text);
  const lines: Buffer[] = [];
  for await (const entry of readEntries(store, 0, size)) lines.push(entry);
  const leaves = lines.map((line) => leafHash(line));
  const tree = await GrowingTree.read(store, size);
  for (const found of [tree.root, rootOf(leaves)]) {
    if (!found.equals(root)) throw new Error('the tree is not the one that was signed');
  }
  const entries = lines.map(parseEntry);
  const uids: string[] = [];
  const heads = new Map<string, readonly [number, string]>();
  for (const [index, entry] of entries.entries()) {
    if (entry.t === 'segment' || entry.t === 'checkpoint') {
      const found = hash('sha256', await read(entry.object), 'hex');
      if (found !== entry.sha256) throw new Error(`${entry.object} is another`);
    }
    if (entry.t !== 'page') continue;
    const [seq, prev] = heads.get(entry.stream) ?? [0, null];
    if (entry.seq !== seq || entry.prev !== prev) throw new Error(`the chain breaks at ${index}`);
    heads.set(entry.stream, [seq + 1, leaves[index]?.toString('hex') ?? '']);
    uids.push(...(await uidsOf(store, entry)));
  }
  const trusted = [signer.verifier];
  const { breaks } = await verifyArchive(new ArchiveReader(store), { trusted });
  if (breaks.length > 0) throw new Error(`verify: ${JSON.stringify(breaks)}`);
  return { size, root: Buffer.from(root).toString('hex'), entries, uids };
}

async function uidsOf(store: ObjectStore, entry: PageEntry): Promise<string[]> {
  const found = await store.read(entry.body.segment, pageRange(entry));
  const { uids } = await readPage(entry, found?.body ?? Buffer.alloc(0));
  const bytes = Buffer.from(uids);
  return Array.from({ length: entry.kept }, (_, i) =>
    bytes.toString('hex', i * uidBytes, (i + 1) * uidBytes),
  );
}

/** Uids of the events of pages. */
export function uidsOfPages(pages: readonly HeldPage[]): readonly string[] {
  return pages.flatMap(({ uids }) => Buffer.from(uids).toString('hex').match(/.{64}/g) ?? []);
}
