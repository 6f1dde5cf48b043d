// A spool around another one: passes all calls on, and a subclass changes some. Each stream has several of them, so it is
// a class with one reference, and not an object with a function for each call.

import type {
  Append,
  EntityChoice,
  FetchSpool,
  HeldParents,
  StreamMemory,
  TrailEntry,
} from '../contracts/index.ts';

/** Passes all calls on to the inner spool. */
export class SpoolAround implements FetchSpool {
  protected readonly inner: FetchSpool;

  constructor(inner: FetchSpool) {
    this.inner = inner;
  }

  get parents(): HeldParents {
    return this.inner.parents;
  }

  get groupBytes(): number | undefined {
    return this.inner.groupBytes;
  }

  append(entry: Append): Promise<number> {
    return this.inner.append(entry);
  }

  recall(stream: string): Promise<StreamMemory> {
    return this.inner.recall(stream);
  }

  trail(stream: string): Promise<readonly TrailEntry[]> {
    return this.inner.trail(stream);
  }

  entities(stream: string, which: EntityChoice): Promise<ReadonlyMap<string, string>> {
    return this.inner.entities(stream, which);
  }

  room(signal: AbortSignal): Promise<void> {
    return this.inner.room(signal);
  }
}
