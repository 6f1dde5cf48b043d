// Reads the cuts in a lake, for the process that resumes writing it: their end and listed events decide which events
// are not written again. Invariant: a cut counts only if all of its bytes are signed by the archive's key, or match the
// signed log; any other is ignored as if it did not exist.

import { hash } from 'node:crypto';
import type { ObjectContent, ObjectStore } from '../objects/index.ts';
import { parseCheckpoint } from './checkpoint.ts';
import { cutBytesMax, signerOfCut } from './cut-signature.ts';
import { checkpointPath, manifestPath, parseManifest } from './layout.ts';
import { loggedEntries } from './logged.ts';
import { openNote, type Verifier } from './note.ts';
import { ProvenReader } from './proven-reader.ts';
import { readSmall } from './small-objects.ts';

/** The required owner of cuts. */
interface Owner {
  readonly key: Verifier;
  readonly archive: string;
}

/** Dependencies of reading cuts. */
interface CutDeps {
  readonly store: ObjectStore;
  /** The key that signs the archive, and the SHA-256 of `archive.json`; null: unknown, and every cut counts. */
  key(): Promise<Owner | null>;
  /** Reports a cut that does not count, with the reason. */
  refused(object: string, why: string): void;
}

/** The cuts of one lake. */
export class StoredLakeCuts {
  readonly #deps: CutDeps;
  #cuts: LoggedCuts | null = null;
  /** Cuts are read one at a time, because each may be long. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(deps: CutDeps) {
    this.#deps = deps;
  }

  /** The cut with that name; null: there is none that counts. */
  async read(object: string): Promise<ObjectContent | null> {
    const reading = this.#turn.then(() => this.#read(object));
    this.#turn = reading.catch(() => undefined);
    return await reading;
  }

  async #read(object: string): Promise<ObjectContent | null> {
    const { store, key, refused } = this.#deps;
    const found = await readSmall(store, object, cutBytesMax);
    const by = found === null ? null : await key();
    if (found === null || by === null) return found;
    const why = flawOf(found.body, object, by);
    if (why === null) return found;
    // An earlier key has signed it, or a version without signatures wrote it.
    const { entered, mayBeUnsigned } = await this.#logged(by.key);
    const sha256 = entered.get(object);
    if (sha256 === hash('sha256', found.body, 'hex')) return found;
    if (why === unsigned && sha256 === undefined && mayBeUnsigned) return found;
    refused(object, why);
    return null;
  }

  /** The cuts in the signed log. */
  async #logged(by: Verifier): Promise<LoggedCuts> {
    const { store } = this.#deps;
    const none = { size: 0, entered: new Map<string, string>(), mayBeUnsigned: false };
    const [note, manifest] = [
      await readSmall(store, checkpointPath),
      await readSmall(store, manifestPath),
    ];
    if (note === null || manifest === null) return none;
    try {
      const head = parseCheckpoint(openNote(note.body, [by]).text);
      if (this.#cuts?.size !== head.size) {
        this.#cuts = await loggedCuts(new ProvenReader(store, head), manifest.body);
      }
      return this.#cuts;
    } catch (error) {
      if (error instanceof SyntaxError) return none;
      throw error;
    }
  }
}

const unsigned = 'the archive’s key has not signed it';

/** Why the key has not signed a cut; null: it has. */
function flawOf(body: Uint8Array, object: string, { key, archive }: Owner): string | null {
  try {
    const cut = { origin: key.name, archive, object };
    return signerOfCut(body, cut, [key]) === null ? unsigned : null;
  } catch (error) {
    if (error instanceof SyntaxError) return error.message;
    throw error;
  }
}

interface LoggedCuts {
  /** Number of entries read. */
  readonly size: number;
  /** The SHA-256 of each cut by its name, in hex. */
  readonly entered: ReadonlyMap<string, string>;
  /** True in an archive of a version that did not sign cuts, until a signed one is entered. */
  readonly mayBeUnsigned: boolean;
}

async function loggedCuts(reader: ProvenReader, manifest: Uint8Array): Promise<LoggedCuts> {
  const entered = new Map<string, string>();
  let archive: string | null = null;
  let isSigned = parseManifest(manifest).cuts === 'signed';
  const { size } = reader.head;
  for await (const { entry } of loggedEntries(reader, size)) {
    if (entry.t === 'start') archive = entry.archive;
    if (entry.t !== 'lake_cut') continue;
    entered.set(entry.object, entry.sha256);
    isSigned ||= entry.by !== undefined;
  }
  return { size, entered, mayBeUnsigned: archive === hash('sha256', manifest, 'hex') && !isSigned };
}
