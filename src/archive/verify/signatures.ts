// The log's keys in order, and the signatures of its checkpoints. The first key is in archive.json, each further one in
// an entry, and the first checkpoint over that entry is also signed by the previous key. So trust extends from a key
// that the reader has to every later one. For earlier keys no signature is needed: the tree, signed by a trusted key,
// names them.

import { type Checkpoint, parseCheckpoint } from '../checkpoint.ts';
import { keyOfLog } from '../log-name.ts';
import { openNote, parseNote, parseVkey, type Verifier } from '../note.ts';

/** A key, and the entry from which on it signs. */
interface LogKey {
  readonly key: Verifier;
  /** Index of its entry; -1 for the first key, which has none. */
  readonly index: number;
  /** True if a checkpoint over its entry is also signed by the previous key. */
  isHandedOn: boolean;
}

/** The keys of a log, as far as its entries were read. */
export class LogKeys {
  readonly #keys: LogKey[];

  constructor(first: Verifier) {
    this.#keys = [{ key: first, index: -1, isHandedOn: false }];
  }

  /** The log's name. */
  get origin(): string {
    return this.#keys[0]?.key.name ?? '';
  }

  /** The vkey of the last named key. */
  get present(): string {
    return this.#keys.at(-1)?.key.vkey ?? '';
  }

  /** Adds a key from the entry at `index`. */
  add(key: Verifier, index: number): void {
    this.#keys.push({ key, index, isHandedOn: false });
  }

  /**
   * A checkpoint signed by its key. Throws a SyntaxError if it is none, or is not signed by the key that signs at its
   * size.
   */
  open(bytes: Uint8Array): Checkpoint & { readonly by: readonly Verifier[] } {
    const { text } = parseNote(bytes);
    const checkpoint = parseCheckpoint(text);
    const place = this.#keys.findLastIndex(({ index }) => index < checkpoint.size);
    const current = this.#keys[place];
    const before = this.#keys[place - 1];
    if (current === undefined) throw new SyntaxError('no key signs at that size');
    if (checkpoint.origin !== current.key.name) {
      throw new SyntaxError(`the checkpoint is of another log, ${checkpoint.origin}`);
    }
    const { by } = openNote(
      bytes,
      before === undefined ? [current.key] : [current.key, before.key],
    );
    if (!by.includes(current.key)) {
      throw new SyntaxError('the checkpoint is signed by a key that had been replaced');
    }
    if (before !== undefined && by.includes(before.key)) current.isHandedOn = true;
    return { ...checkpoint, by };
  }

  /** Why the reader's trusted keys do not lead to the newest key; null: they do. */
  whyUntrusted(trusted: readonly Verifier[]): string | null {
    const given = trusted.map((key) => keyOfLog(key, this.origin).vkey);
    const isGiven = ({ key }: LogKey) => given.includes(key.vkey);
    const from = this.#keys.findLastIndex(isGiven);
    if (from < 0) return 'the log has none of the keys that were given';
    const missing = this.#keys.slice(from + 1).find(({ isHandedOn }) => !isHandedOn);
    if (missing === undefined) return null;
    return `no checkpoint hands on from the given key to ${missing.key.vkey}, the key of entry ${missing.index}`;
  }
}

/** Public keys in a possibly damaged text: each key has its own checksum. */
export function vkeysIn(bytes: Uint8Array | null): readonly Verifier[] {
  const text = Buffer.from(bytes ?? []).toString('utf8');
  return (text.match(/(?<![^\s"+])[^\s"+]+\+[0-9a-f]{8}\+[\w+/=]+/g) ?? []).flatMap((vkey) => {
    try {
      return [parseVkey(vkey)];
    } catch {
      return [];
    }
  });
}
