// Where parents come from: what another source commits is looked through on its way into the spool,
// and what it shows of parents becomes durable in the same transaction, so that none is lost
// whenever a process ends. An entity that is put is a parent that is new or has changed; so is a
// value in a record. What stood in a collection before anybody asked by it is looked through once,
// when the stream begins.

import type { ParentsReading } from '../../contracts/definition.ts';
import type { ParentsStream, Stream } from '../../contracts/source.ts';
import type { Append, FetchSpool, NewPage, ParentChange } from '../../contracts/spool.ts';
import type { Log } from '../../contracts/tools.ts';
import { sourceTextAt } from '../../tools/records.ts';
import { keyParts } from '../collection/entities.ts';

/** What a source's parents are taken by. */
export type PlannedParents = ParentsReading & {
  /** The values in the records of a page that are to be taken. */
  readonly valuesIn?: (page: NewPage) => readonly string[];
};

/** A source, as far as it may read by parents, or others may take theirs from it. */
interface Reader {
  readonly streams: readonly Stream[];
  readonly parents?: PlannedParents | undefined;
}

/** A stream of parents, and where they come from. */
interface Follower {
  readonly stream: ParentsStream;
  readonly parents: PlannedParents;
}

/** Entities looked through at a time. */
const entitiesAtOnce = 500;
/** No id of anything is as long. */
const idCharsMax = 1_024;

/** All streams of parents that are polled. */
export class Feed {
  readonly #log: Log;
  readonly #followers = new Map<string, Follower>();
  readonly #told = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** From now on the source's streams get their parents. */
  add({ streams, parents }: Reader): void {
    for (const stream of streams) {
      if (stream.kind !== 'parents' || parents === undefined) continue;
      this.#followers.set(stream.name, { stream, parents });
    }
  }

  remove(name: string): void {
    this.#followers.delete(name);
  }

  /** The spool, as a stream that others may take their parents from uses it. */
  spoolOf(from: Stream, spool: FetchSpool): FetchSpool {
    return {
      append: (entry) => {
        const parents = this.#parentsIn(entry, from);
        const whole = { ...entry, parents: [...(entry.parents ?? []), ...parents] };
        return spool.append(parents.length === 0 ? entry : whole);
      },
      recall: (stream) => spool.recall(stream),
      trail: (stream) => spool.trail(stream),
      entities: (stream, which) => spool.entities(stream, which),
      room: (signal) => spool.room(signal),
      parents: spool.parents,
    };
  }

  /** The parents of a stream that are there before anything is read: a few at a time. */
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

  /** Ids that a path can hold; of others one is told. */
  #usable(stream: ParentsStream, ids: readonly string[]): readonly string[] {
    return ids.filter((id) => {
      if (id.length <= idCharsMax && stream.listOf(id) !== null) return true;
      if (!this.#told.has(stream.name)) {
        this.#told.add(stream.name);
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

/** Streams of one company take none of another's. */
function isFor({ company }: ParentsStream, from: Stream): boolean {
  return company === undefined || from.company === undefined || company === from.company;
}

/** The id that an entity shows at a path; a part of one is no parent. */
function idsIn([key, body]: readonly [key: string, body: string], path: string): readonly string[] {
  if (keyParts(key).list !== null) return [];
  const { text } = JSON.parse(body) as { text?: unknown }; // state.ts of collections
  const source = typeof text === 'string' ? sourceTextAt(Buffer.from(text), path) : null;
  if (source === null || !/^["\d-]/.test(source)) return [];
  return [source.startsWith('"') ? (JSON.parse(source) as string) : source];
}
