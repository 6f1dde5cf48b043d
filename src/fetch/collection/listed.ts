// The entities that a list shows, page by page: what is new or has changed is taken, or is to be
// asked by its id, and of one that is as it was no more is looked at than its digest. What must stay
// true: an id is one entity, however often it is listed, and what has no id is known by its content.

import { createHash } from 'node:crypto';
import type { Failure } from '../../contracts/answer.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import type { RecordList } from '../../tools/record-list.ts';
import { type Element, type Entity, elementOf, entityOf } from './entities.ts';
import { digestText, type KnownEntities } from './known.ts';
import type { Round } from './rotation.ts';

/** What a reading gives its entities to. */
export interface EntityTaker {
  /** What is known before; what the reading sees is noted there. */
  readonly known: Pick<KnownEntities, 'begin' | 'see' | 'unsee' | 'isAsListed' | 'isDenied'>;
  /** Entities that are new, may have changed, or were asked by their ids. */
  take(entities: readonly Entity[]): Promise<void>;
  /** Entities that are denied by their ids while others are not, as the list shows them. */
  deny(entities: readonly Entity[], failure: Failure): Promise<void>;
}

/** What a list shows of an entity that it does not show. */
export const nothingListed: Element = { value: {}, text: '{}', id: null };

/** The entities of a list, page by page. */
export class ListedEntities {
  /** Different keys so far. */
  count = 0;
  readonly round: Round;
  flaw: string | null = null;
  readonly #stream: CollectionStream;
  readonly #taker: EntityTaker;
  /** How often a key has come, where more than once. */
  readonly #times = new Map<string, number>();

  constructor(stream: CollectionStream, taker: EntityTaker, round: Round) {
    this.#stream = stream;
    this.#taker = taker;
    this.round = round;
  }

  begin(): void {
    this.#taker.known.begin();
    this.count = 0;
    this.#times.clear();
    this.round.clear();
    this.flaw = null;
  }

  async page(records: RecordList, fresh: readonly number[]): Promise<void> {
    const { entity, detail, holds } = this.#stream;
    const taken: Entity[] = [];
    for (const index of fresh) {
      const element = () => elementOf(records.at(index), records.raw(index), entity.ids);
      if (holds !== undefined && holds(element()?.value ?? {}) === false) continue;
      const id = idAt(records, index, this.#stream);
      const name = id ?? `sha256:${digestOf(records.raw(index))}`;
      const keyed = this.#keyOf(name, id !== null);
      if (keyed === null) continue;
      const [key, unique] = keyed;
      const { contents } = records;
      const words = [contents[index * 2] ?? 0, contents[index * 2 + 1] ?? 0] as const;
      const isKnown = this.#taker.known.isAsListed(key, ...words);
      if (detail !== undefined) {
        const isDenied = this.#taker.known.isDenied(key);
        const text = () => Buffer.from(records.raw(index)).toString();
        this.round.offer(key, { isUrgent: !isKnown, isDenied }, () => ({
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
   * The key of an element and the id in it. One that comes again is numbered; with an id of its own
   * it has moved meanwhile, and is one all the same: null.
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

const quote = 0x22;
const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** An element's id as text, found without parsing it where that is plain. */
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

/** Of an element without an id. */
function digestOf(element: Uint8Array): string {
  return createHash('sha256').update(element).digest('hex').slice(0, 16);
}
