// The source of parents: everything that another source commits is checked on its way into the spool, and parents found
// in it become durable in the same transaction, so none is lost when a process ends. A new or changed entity is a
// parent; so is a value in a record. Entities that a collection had before this stream began are loaded once, when the
// stream begins.

import { keyParts } from '../collection/index.ts';
import type { ParentsReading } from '../contracts/config.ts';
import type {
  Append,
  FetchSpool,
  Log,
  NewPage,
  ParentChange,
  ParentsStream,
  Stream,
} from '../contracts/index.ts';
import { sourceTextAt } from '../tools/index.ts';

/** How a source's parents are selected. */
export type PlannedParents = ParentsReading & {
  /** The parent ids in the records of a page. */
  readonly valuesIn?: (page: NewPage) => readonly string[];
};

/** A source that reads by parents, or from which others take their parents. */
interface Reader {
  readonly streams: readonly Stream[];
  readonly parents?: PlannedParents | undefined;
}

/** A stream of parents, and their selection. */
interface Follower {
  readonly stream: ParentsStream;
  readonly parents: PlannedParents;
}

/** Entities per batch. */
const entitiesAtOnce = 500;
/** Longest accepted id in characters; no real id is as long. */
const idCharsMax = 1_024;

/** All polled streams of parents. */
export class Feed {
  readonly #log: Log;
  readonly #followers = new Map<string, Follower>();
  readonly #reported = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adds a source: its streams receive their parents from now on. */
  add({ streams, parents }: Reader): void {
    for (const stream of streams) {
      if (stream.kind !== 'parents' || parents === undefined) continue;
      this.#followers.set(stream.name, { stream, parents });
    }
  }

  remove(name: string): void {
    this.#followers.delete(name);
  }

  /** The entry of a stream with the parents that others take from it. */
  withParents(entry: Append, from: Stream): Append {
    const found = this.#parentsIn(entry, from);
    return found.length === 0 ? entry : { ...entry, parents: [...(entry.parents ?? []), ...found] };
  }

  /** The parents that exist before a stream begins, in batches. */
  async *known(name: string, sources: ReadonlyMap<string, Reader>, spool: FetchSpool) {
    const follower = this.#followers.get(name);
    if (follower === undefined) return;
    const { stream, parents } = follower;
    const { each } = parents;
    if ('ids' in each) yield this.#usable(stream, each.ids);
    else {
      for (const from of sources.get(each.of)?.streams ?? []) {
        if (from.kind !== 'collection' || !isFor(stream, from)) continue;
        let key = '';
        for (;;) {
          const rows = [...(await spool.entities(from.name, { after: key, max: entitiesAtOnce }))];
          const last = rows.at(-1);
          if (last === undefined) break;
          yield this.#usable(
            stream,
            rows.flatMap((row) => idsIn(row, each.id)),
          );
          key = last[0];
        }
      }
    }
  }

  #parentsIn({ entities, pages }: Append, from: Stream): readonly ParentChange[] {
    const changes: ParentChange[] = [];
    for (const { stream, parents } of this.#followers.values()) {
      const { each, valuesIn } = parents;
      if ('ids' in each || each.of !== from.source || !isFor(stream, from)) continue;
      const ids = [
        ...(entities?.put ?? []).flatMap((row) => idsIn(row, each.id)),
        ...(entities !== undefined || valuesIn === undefined ? [] : pages.flatMap(valuesIn)),
      ];
      for (const id of new Set(this.#usable(stream, ids))) {
        changes.push({ stream: stream.name, id, as: 'noticed' });
      }
    }
    return changes;
  }

  /** Ids that a path can contain; one of the others is logged. */
  #usable(stream: ParentsStream, ids: readonly string[]): readonly string[] {
    return ids.filter((id) => {
      if (id.length <= idCharsMax && stream.listOf(id) !== null) return true;
      if (!this.#reported.has(stream.name)) {
        this.#reported.add(stream.name);
        const id_began = id.slice(0, 40);
        this.#log.warn('parent_id_skipped', 'an id cannot be part of a path; skipped', {
          stream: stream.name,
          id_began,
        });
      }
      return false;
    });
  }
}

/** Streams of one company do not use parents of another company. */
function isFor({ company }: ParentsStream, from: Stream): boolean {
  return company === undefined || from.company === undefined || company === from.company;
}

/** The id of an entity at a path; a part of an entity is no parent. */
function idsIn([key, body]: readonly [key: string, body: string], path: string): readonly string[] {
  if (keyParts(key).list !== null) return [];
  const { text } = JSON.parse(body) as { text?: unknown }; // state.ts of collections
  const source = typeof text === 'string' ? sourceTextAt(Buffer.from(text), path) : null;
  if (source === null || !/^["\d-]/.test(source)) return [];
  return [source.startsWith('"') ? (JSON.parse(source) as string) : source];
}
