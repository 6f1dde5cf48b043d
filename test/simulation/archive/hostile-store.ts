// An object store in memory with two writers: the process under test, through a view that can end it at any call, and
// an attacker, who acts before each of its calls and sees and changes everything. Invariant: the last write of the
// process, the operator and the lake is kept for each name, so that the attacker can restore it.

import { ExportError } from '../../../src/contracts/errors.ts';
import type { ObjectStore } from '../../../src/objects/store.ts';

/** What the process does with the store next. */
export interface StoreCall {
  readonly kind: 'read' | 'list' | 'facts' | 'write' | 'remove';
  /** The object, or the prefix of a list. */
  readonly name: string;
}

/** Called before a call, and once it is done. */
export interface Watcher {
  before(call: StoreCall): void;
  after(call: StoreCall): void;
  /** The process has written an object. */
  wrote(name: string, body: Buffer): void;
  /** The process has removed an object. */
  removed(name: string): void;
}

/** What a process was killed with. */
class Killed extends Error {}

/** The process under test: it ends at its nth change of the store. */
export interface Life {
  changesLeft: number;
  isDead: boolean;
}

interface File {
  readonly body: Buffer;
  readonly tag: string;
}

/** The store. */
export class HostileStore {
  readonly files = new Map<string, File>();
  /** All versions that were written honestly, by name; null where it was removed. */
  readonly honest = new Map<string, (Buffer | null)[]>();
  #names: readonly string[] | null = null;
  #versions = 0;

  /** The names in their order. */
  get names(): readonly string[] {
    this.#names ??= [...this.files.keys()].sort();
    return this.#names;
  }

  body(name: string): Buffer | null {
    return this.files.get(name)?.body ?? null;
  }

  /** The version tag of an object; undefined: there is none. */
  tag(name: string): string | undefined {
    return this.files.get(name)?.tag;
  }

  /** Writes or removes (null) an object as the attacker does. `tag`: of a version that it is to look like. */
  forge(name: string, body: Buffer | null, tag?: string): void {
    if (body === null) this.#drop(name);
    else this.#set(name, body, tag);
  }

  /** Writes or removes an object as the process, the operator or the lake does. */
  write(name: string, body: Buffer | null): string {
    const versions = this.honest.get(name) ?? [];
    versions.push(body);
    this.honest.set(name, versions);
    if (body !== null) return this.#set(name, body);
    this.#drop(name);
    return '';
  }

  /** All objects as they are now. */
  snapshot(): ReadonlyMap<string, Buffer> {
    return new Map([...this.files].map(([name, { body }]) => [name, body]));
  }

  /** The store as a reader has it. */
  reader(): ObjectStore {
    return this.#view(null, null);
  }

  /** The store as the process under test has it. */
  view(watcher: Watcher, life: Life): ObjectStore {
    return this.#view(watcher, life);
  }

  #set(name: string, body: Buffer, tag?: string): string {
    if (!this.files.has(name)) this.#names = null;
    this.#versions += 1;
    const made = tag ?? `${this.#versions}`;
    this.files.set(name, { body, tag: made });
    return made;
  }

  #drop(name: string): void {
    if (this.files.delete(name)) this.#names = null;
  }

  #view(watcher: Watcher | null, life: Life | null): ObjectStore {
    const call = <T>(kind: StoreCall['kind'], name: string, work: () => T): T => {
      if (life?.isDead) throw new Killed();
      const isChange = kind === 'write' || kind === 'remove';
      if (life !== null && isChange) {
        life.changesLeft -= 1;
        if (life.changesLeft < 0) life.isDead = true;
        if (life.isDead) throw new Killed();
      }
      watcher?.before({ kind, name });
      try {
        return work();
      } finally {
        watcher?.after({ kind, name });
      }
    };
    const put = (name: string, parts: readonly Uint8Array[]) => {
      const body = Buffer.concat(parts);
      const tag = this.write(name, body);
      watcher?.wrote(name, body);
      return tag;
    };
    const self = this;
    return {
      location: 'memory',
      create: async (name, parts) =>
        call('write', name, () => {
          if (this.files.has(name)) return 'exists';
          put(name, parts);
          return 'created';
        }),
      replace: async (name, parts, tag) =>
        call('write', name, () => {
          if ((this.files.get(name)?.tag ?? null) !== tag) return null;
          return put(name, parts);
        }),
      put: async (name, parts) => {
        call('write', name, () => put(name, parts));
      },
      read: async (name, range) =>
        call('read', name, () => {
          const file = this.files.get(name);
          if (file === undefined) return null;
          const { from = 0, length = file.body.length } = range ?? {};
          return { body: file.body.subarray(from, from + length), tag: file.tag };
        }),
      facts: async (name) =>
        call('facts', name, () => {
          const file = this.files.get(name);
          if (file === undefined) return null;
          return { bytes: file.body.length, tag: file.tag, metadata: {} };
        }),
      async *list(prefix, after = '') {
        const listed = call('list', prefix, () =>
          self.names
            .filter((name) => name.startsWith(prefix) && name > after)
            .map((name) => ({ name, bytes: self.files.get(name)?.body.length ?? 0 })),
        );
        yield* listed;
      },
      remove: async (name) => {
        call('remove', name, () => {
          this.write(name, null);
          watcher?.removed(name);
        });
      },
      removeOlder: async () => undefined,
      hold: async () => undefined,
      locks: async () => false,
      close: () => undefined,
    };
  }
}

/** True for what ends a process on purpose, or what it reports of a store that was changed. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Killed || error instanceof ExportError || error instanceof SyntaxError;
}
