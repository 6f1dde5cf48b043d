// Objects as files of a directory. Invariants, also across a power cut and with concurrent
// processes: a file under an object's name is complete, and a resolved change is durable. So each
// file is written in `.sluice/`, flushed, and gets its name in one step: by `link`, which fails if
// the name exists, or by `rename`, which replaces. A version is replaced under a lock that the
// system releases when its process ends. Whatever the umask, only the owner writes and only the
// group may also read: objects contain security events.

import { randomUUID } from 'node:crypto';
import { type BigIntStats, constants, renameSync, statSync } from 'node:fs';
import { link, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import {
  ExportError,
  errorCodeOf,
  errorText,
  flushNames,
  makeDirectory,
} from '../contracts/index.ts';
import { takeLock } from '../hold/index.ts';
import { checkedName, type ListedObject, type ObjectRange, type ObjectStore } from './store.ts';

/** Directory of files that have no final name yet. */
const workshop = '.sluice';
/** Files left there by an ended process are deleted at this age. */
const leftOverMs = 60 * 60 * 1000;
const directoryMode = 0o750;
const fileMode = 0o640;

/** The objects of a directory, which is created with the first object. */
export function openDirectory(path: string): ObjectStore {
  const root = resolve(path);
  const files = new Files(root);
  const reported = async <T>(doing: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const isOurs = error instanceof ExportError && error.code === 'broken_invariant';
      throw isOurs ? error : failure(`${doing} in ${root}`, error);
    }
  };
  return {
    location: root,
    create: (name, body) => reported(`writing ${name}`, () => files.create(name, body)),
    replace: (name, body, tag) => reported(`writing ${name}`, () => files.replace(name, body, tag)),
    put: (name, body) => reported(`writing ${name}`, () => files.put(name, body)),
    read: (name, range) => reported(`reading ${name}`, () => files.read(name, range)),
    facts: (name) => reported(`looking at ${name}`, () => files.facts(name)),
    async *list(prefix, after = '') {
      const found = files.list('', prefix, after);
      for (;;) {
        const next = await reported('listing objects', () => found.next());
        if (next.done) return;
        yield next.value;
      }
    },
    remove: (name) => reported(`removing ${name}`, () => files.remove(name)),
    removeOlder: async () => undefined,
    hold: async () => undefined,
    locks: async () => false,
    close: () => undefined,
  };
}

class Files {
  readonly #root: string;
  #isTidy = false;

  constructor(root: string) {
    this.#root = root;
  }

  async create(name: string, body: readonly Uint8Array[]): Promise<'created' | 'exists'> {
    return (await this.replace(name, body, null)) === null ? 'exists' : 'created';
  }

  async put(name: string, body: readonly Uint8Array[]): Promise<void> {
    const path = this.#pathOf(name);
    await this.#writing(path, body, async (written) => {
      await rename(written, path);
      await flushNames(path);
    });
  }

  async replace(name: string, body: readonly Uint8Array[], tag: string | null) {
    const path = this.#pathOf(name);
    return await this.#writing(path, body, async (written) => {
      const after = tagOf(await stat(written, { bigint: true }));
      const isOurs = tag === null ? await linked(written, path) : this.#swapped(written, path, tag);
      // Also for an existing name: the process that created it may have ended before flushing.
      await flushNames(path);
      return isOurs ? after : null;
    });
  }

  /**
   * Nothing is awaited in here: processes exclude each other by the lock, and this process by being
   * synchronous.
   */
  #swapped(written: string, path: string, tag: string): boolean {
    using _lock = takeLock(join(this.#root, workshop));
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (found === undefined || tagOf(found) !== tag) return false;
    renameSync(written, path);
    return true;
  }

  async read(name: string, range?: ObjectRange) {
    // Non-blocking: opening a pipe would wait for a writer that may never come.
    const flags = constants.O_RDONLY | constants.O_NONBLOCK;
    await using file = await unlessNone(open(this.#pathOf(name), flags));
    if (file === null) return null;
    const found = await file.stat({ bigint: true });
    if (!found.isFile()) return null;
    const from = Math.min(range?.from ?? 0, Number(found.size));
    const length = Math.min(range?.length ?? Number.POSITIVE_INFINITY, Number(found.size) - from);
    const body = Buffer.allocUnsafeSlow(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await file.read(body, filled, length - filled, from + filled);
      if (bytesRead === 0) break; // Another process has truncated it.
      filled += bytesRead;
    }
    return { body: body.subarray(0, filled), tag: tagOf(found) };
  }

  async facts(name: string) {
    const found = await unlessNone(stat(this.#pathOf(name), { bigint: true }));
    if (found === null || !found.isFile()) return null;
    return { bytes: Number(found.size), tag: tagOf(found), metadata: {} };
  }

  /**
   * Files below `directory` (empty, or a name that ends in `/`), in the order of whole names. Links
   * may form cycles, or several ways to one directory, so each directory is visited once.
   */
  async *list(
    directory: string,
    prefix: string,
    after: string,
    followed = new Set<string>(),
  ): AsyncGenerator<ListedObject> {
    const path = join(this.#root, directory);
    const entries = (await unlessNone(readdir(path, { withFileTypes: true }))) ?? [];
    const names: { readonly name: string; readonly bytes: number | null }[] = [];
    for (const entry of entries.filter((one) => !one.name.startsWith('.'))) {
      const name = `${directory}${entry.name}`;
      if (!name.startsWith(prefix) && !prefix.startsWith(`${name}/`)) continue;
      const found = await unlessNone(stat(join(this.#root, name)));
      const place = entry.isSymbolicLink() ? `${found?.dev}-${found?.ino}` : null;
      if (found?.isFile()) names.push({ name, bytes: found.size });
      if (!found?.isDirectory() || (place !== null && followed.has(place))) continue;
      if (place !== null) followed.add(place);
      names.push({ name: `${name}/`, bytes: null });
    }
    for (const { name, bytes } of names.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (bytes !== null) {
        if (name > after) yield { name, bytes };
      } else if (name > after || after.startsWith(name)) {
        yield* this.list(name, prefix, after, followed);
      }
    }
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf(name);
    if ((await unlessGone(unlink(path).then(() => true))) !== null) await flushNames(path);
  }

  #pathOf(name: string): string {
    return join(this.#root, checkedName(name));
  }

  /** Writes a durable temporary file, for `use` to give it its name at `path`. */
  async #writing<T>(
    path: string,
    body: readonly Uint8Array[],
    use: (written: string) => Promise<T>,
  ): Promise<T> {
    const beside = join(this.#root, workshop);
    await makeDurable(dirname(path));
    makeDirectory(beside, directoryMode);
    if (!this.#isTidy) await tidy(beside);
    this.#isTidy = true;
    const written = join(beside, `${randomUUID()}.part`);
    try {
      const file = await open(written, 'wx', fileMode);
      try {
        // The system accepts at most 2 GiB at once, and may write less than requested.
        for (const bytes of body) await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      return await use(written);
    } finally {
      await unlessGone(unlink(written));
    }
  }
}

/** The tag of a file's version: each version is written as a new file. */
function tagOf({ ino, mtimeNs, size }: BigIntStats): string {
  return `${ino}-${mtimeNs}-${size}`;
}

/** Creates a directory and its parents; each is durable once its own directory is flushed. */
async function makeDurable(path: string): Promise<void> {
  if ((await unlessGone(stat(path))) !== null) return;
  await makeDurable(dirname(path));
  if (makeDirectory(path, directoryMode)) await flushNames(path);
}

async function tidy(beside: string): Promise<void> {
  for (const entry of (await readdir(beside)).filter((one) => one.endsWith('.part'))) {
    const path = join(beside, entry);
    const found = await unlessGone(stat(path));
    if (found !== null && Date.now() - found.mtimeMs > leftOverMs) await unlessGone(unlink(path));
  }
}

/** Gives a file another name; false if that exists. */
async function linked(file: string, name: string): Promise<boolean> {
  try {
    await link(file, name);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

async function unlessGone<T>(work: Promise<T>): Promise<T | null> {
  return await work.catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
}

/** Other file types at the name are no objects either, as in a bucket. */
const none: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENXIO']);

async function unlessNone<T>(work: Promise<T>): Promise<T | null> {
  return await work.catch((error: unknown) => {
    if (none.has(errorCodeOf(error))) return null;
    throw error;
  });
}

function failure(doing: string, error: unknown): ExportError {
  const code = errorCodeOf(error);
  const message = `${doing}: ${error instanceof ExportError ? error.message : code || errorText(error)}`;
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new ExportError('disk_full', message, {
        next: 'Free space on that disk; nothing was lost, the events stay held.',
        cause: error,
      });
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'EEXIST':
    case 'EISDIR':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return new ExportError('sink_refused', message, {
        next: 'Let the user that runs sluice read and write there (the file system must know hard links), or name another directory; nothing was lost.',
        cause: error,
      });
    default:
      return new ExportError('sink_unreachable', message, {
        next: 'It is tried again by itself; nothing was lost.',
        cause: error,
      });
  }
}
