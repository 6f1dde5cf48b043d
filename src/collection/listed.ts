// The entities of a list, page by page. New or changed ones are accepted, or queued for a request by id. For an
// unchanged one only its digest is compared. Invariants: an id is one entity, however often it is listed; an element
// without id is known by its content. Content that differs from all known content is matched at the end of the list
// (match.ts).

import { createHash } from 'node:crypto';
import type { CollectionStream, Failure } from '../contracts/index.ts';
import { losslessText, type RecordList } from '../tools/index.ts';
import { freshKey } from './content-keys.ts';
import { type Element, type Entity, elementOf, entityOf } from './entities.ts';
import type { EntityRules } from './judge.ts';
import { digestText, type KnownEntities } from './known.ts';
import { type KnownElement, matchElements } from './match.ts';
import type { RotationShare } from './rotation.ts';

/** The receiver of a reading's entities. */
export interface EntityTaker {
  /** The state before the reading; seen entities are marked in it. */
  readonly known: Pick<
    KnownEntities,
    | 'begin'
    | 'see'
    | 'unsee'
    | 'isSeen'
    | 'has'
    | 'isAsListed'
    | 'isDenied'
    | 'unnamed'
    | 'unnamedAsListed'
    | 'states'
  >;
  /** The comparison rules for a kind of entity. */
  rulesOf(kind: string): EntityRules;
  /** Accepts entities that are new, may have changed, or were requested by id. */
  take(entities: readonly Entity[]): Promise<void>;
  /** Marks entities that are denied by id while others are not; they are given as listed. */
  deny(entities: readonly Entity[], failure: Failure): Promise<void>;
}

/** The list element of an entity that is not in a list. */
export const nothingListed: Element = { value: {}, text: '{}', id: null };

/** An element without an id and with unknown content. */
interface Stranger {
  readonly ownKey: string;
  readonly element: Element;
  readonly text: string;
  readonly listed: string;
}

/** Limit in bytes for elements kept until the end of the list; further ones count as new entities. */
const strangersBytesMax = 32 * 1024 * 1024;

/** The entities of a list, page by page. */
export class ListedEntities {
  /** Number of different keys so far. */
  count = 0;
  readonly share: RotationShare;
  flaw: string | null = null;
  readonly #stream: CollectionStream;
  readonly #taker: EntityTaker;
  /** How often a key was seen, if more than once. */
  readonly #times = new Map<string, number>();
  #strangers: Stranger[] = [];
  #strangersBytes = 0;
  /** The list that contains the keys made from content. */
  readonly #group: string;

  constructor(stream: CollectionStream, taker: EntityTaker, share: RotationShare) {
    this.#stream = stream;
    this.#taker = taker;
    this.share = share;
    this.#group = JSON.stringify([stream.entity.kind]);
  }

  begin(): void {
    this.#taker.known.begin();
    this.count = 0;
    this.#times.clear();
    this.#strangers = [];
    this.#strangersBytes = 0;
    this.share.clear();
    this.flaw = null;
  }

  async page(records: RecordList, fresh: readonly number[]): Promise<void> {
    const { entity, detail, holds } = this.#stream;
    const taken: Entity[] = [];
    for (const index of fresh) {
      const element = () => elementOf(records.at(index), records.raw(index), entity.ids);
      const id = idAt(records, index, this.#stream);
      // Another company may have become the first one; an entity that was reported is not missing by that.
      const isReported = id !== null && this.#taker.known.has(JSON.stringify([entity.kind, id]));
      if (holds?.(element()?.value ?? {}) === false && !isReported) continue;
      if (id === null && this.#isUnnamed(records, index)) continue;
      const name = id ?? `sha256:${digestOf(records.raw(index))}`;
      const keyed = this.#keyOf(name, id !== null);
      if (keyed === null) continue;
      const [key, unique] = keyed;
      const { contents } = records;
      const words = [contents[index * 2] ?? 0, contents[index * 2 + 1] ?? 0] as const;
      const isKnown = this.#taker.known.isAsListed(key, ...words);
      if (detail !== undefined) {
        const isDenied = this.#taker.known.isDenied(key);
        const text = () => losslessText(records.raw(index));
        this.share.offer(key, { isUrgent: !isKnown, isDenied }, () => ({
          ...{ id, text: text(), listed: digestText(...words) },
        }));
      } else if (!isKnown) {
        const { value, text } = element() ?? nothingListed;
        const own = entityOf([entity.kind, unique], { value, text, id: unique });
        taken.push({ ...own, listed: digestText(...words) });
      }
    }
    if (taken.length > 0) await this.#taker.take(taken);
  }

  /**
   * Handles an element without an id if other elements of the list are known: one with known content is marked as seen,
   * any other waits for the end of the list. False: it is a new entity.
   */
  #isUnnamed(records: RecordList, index: number): boolean {
    const { known } = this.#taker;
    const { entity, detail } = this.#stream;
    if (detail !== undefined || known.unnamed(this.#group).size === 0) return false;
    const { contents } = records;
    const words = [contents[index * 2] ?? 0, contents[index * 2 + 1] ?? 0] as const;
    const bytes = records.raw(index);
    const ownKey = JSON.stringify([entity.kind, `sha256:${digestOf(bytes)}`]);
    const isOwn = !known.isSeen(ownKey) && known.isAsListed(ownKey, ...words);
    const key = isOwn ? ownKey : known.unnamedAsListed(this.#group, ...words);
    if (key !== null) {
      known.see(key);
      this.count += 1;
      return true;
    }
    if (this.#strangersBytes > strangersBytesMax) return false;
    const element = elementOf(records.at(index), bytes, entity.ids) ?? nothingListed;
    this.#strangersBytes += element.text.length;
    this.#strangers.push({ ownKey, element, text: element.text, listed: digestText(...words) });
    this.count += 1;
    return true;
  }

  /**
   * Matches the elements without ids at the end of a list. `isPart`: the list may be incomplete, so a similar element
   * says nothing in this reading.
   */
  async end(isPart: boolean): Promise<void> {
    const strangers = this.#strangers;
    this.#strangers = [];
    if (strangers.length === 0) return;
    const { known } = this.#taker;
    const { kind } = this.#stream.entity;
    const elements = await knownElements(this.#taker, this.#group, null);
    const { keys, sure } = matchElements(elements, strangers, this.#taker.rulesOf(kind));
    const taken: Entity[] = [];
    for (const [at, { ownKey, element, text, listed }] of strangers.entries()) {
      if (isPart && keys.has(at) && !sure.has(at)) continue;
      const key = keys.get(at) ?? freshKey(ownKey, (one) => known.has(one) || known.isSeen(one));
      known.see(key);
      const [, id = ''] = JSON.parse(key) as readonly string[]; // made here alone
      taken.push({ ...entityOf([kind, id], { ...element, text, id }), listed });
    }
    for (let from = 0; from < taken.length; from += takenAtOnce) {
      await this.#taker.take(taken.slice(from, from + takenAtOnce));
    }
  }

  /**
   * The key of an element and its id. A repeated element without an id is numbered. A repeated element with an id has
   * moved meanwhile and is the same entity: null.
   */
  #keyOf(name: string, isId: boolean): readonly [key: string, id: string] | null {
    const { kind } = this.#stream.entity;
    const key = JSON.stringify([kind, name]);
    if (this.#taker.known.see(key)) {
      this.count += 1;
      return [key, name];
    }
    if (isId) {
      this.flaw = 'an id is listed twice';
      return null;
    }
    const times = (this.#times.get(key) ?? 1) + 1;
    this.#times.set(key, times);
    const id = `${name}#${times}`;
    const numbered = JSON.stringify([kind, id]);
    this.#taker.known.see(numbered);
    return [numbered, id];
  }
}

/** Entities per call of `take`. */
const takenAtOnce = 200;

/** The known elements of a list without ids. `order`: their ids in the order of the list. */
export async function knownElements(
  { known }: EntityTaker,
  group: string,
  order: readonly string[] | null,
): Promise<readonly KnownElement[]> {
  const places = new Map(order?.map((id, place) => [id, place]));
  const elements: KnownElement[] = [];
  const all = [...known.unnamed(group)];
  for (let from = 0; from < all.length; from += takenAtOnce) {
    for (const [key, { id, text }] of await known.states(all.slice(from, from + takenAtOnce))) {
      elements.push({ key, text, place: places.get(id) ?? null, isSeen: known.isSeen(key) });
    }
  }
  return elements;
}

const quote = 0x22;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** An element's id as text, found without parsing if it is plain. */
export function idAt(
  records: RecordList,
  index: number,
  { entity }: CollectionStream,
): string | null {
  const source = records.idText(index) ?? '';
  const first = source.charCodeAt(0);
  if (first === quote && source.length > 2 && !source.includes('\\')) return source.slice(1, -1);
  if (first === minus || (first >= zero && first <= nine)) return source;
  return elementOf(records.at(index), records.raw(index), entity.ids)?.id ?? null;
}

/** The content digest of an element without an id. */
function digestOf(element: Uint8Array): string {
  return createHash('sha256').update(element).digest('hex').slice(0, 16);
}
