// One reading of a collection: its one entity, or its list and then entities by their ids, where the
// list shows no more than a part of them; not all of these in each reading (rotation.ts). List and
// entities can disagree while somebody works on them: one that is listed and answered with 404 is
// looked for in the list once more; if it is still there, nothing is known of it in this reading.
// What must stay true: a reading says that it is complete only if every request of it was answered
// as it should be. One that is not is good for what it shows. Of an entity that is as it was, no
// more is looked at than its digest.

import { createHash } from 'node:crypto';
import type { Answer, Failure } from '../../contracts/answer.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import type { RecordList } from '../../tools/record-list.ts';
import { nonsense } from '../list/body.ts';
import {
  detailEntities,
  type Element,
  type Entity,
  elementOf,
  entityOf,
  keyParts,
} from './entities.ts';
import { digestText, type KnownEntities } from './known.ts';
import { type Rotation, Round, type RoundMeans } from './rotation.ts';
import { type ReaderMeans, WholeList } from './whole-list.ts';

/** What a reading gives its entities to. */
export interface EntityTaker {
  /** What is known before; what the reading sees is noted there. */
  readonly known: Pick<KnownEntities, 'begin' | 'see' | 'unsee' | 'isAsListed' | 'isDenied'>;
  /** Entities that are new, may have changed, or were asked by their ids. */
  take(entities: readonly Entity[]): Promise<void>;
  /** Entities that are denied by their ids while others are not, as the list shows them. */
  deny(entities: readonly Entity[], failure: Failure): Promise<void>;
}

/** One reading. What is missing from an incomplete one says nothing. */
export interface Reading {
  /** Keys of the entities whose parts were seen as well; null: there is nothing to ask by an id. */
  readonly asked: ReadonlySet<string> | null;
  /** Why it may not be complete; null: it is. */
  readonly flaw: Failure | null;
  readonly isEndless: boolean;
  /** New and changed entities that are still to be asked by their ids. */
  readonly left: number;
  readonly rotation?: Rotation;
}

/** What is known of one entity; `flaw` where it cannot be told. */
type DetailRead = readonly Entity[] | 'gone' | { readonly flaw: Failure };

/** So many are not denied each by itself. */
const deniedMax = 10;

const nothingListed: Element = { value: {}, text: '{}', id: null };

/** Reads one collection. */
export class CollectionReader {
  readonly #stream: CollectionStream;
  readonly #list: WholeList;

  constructor(means: ReaderMeans) {
    this.#stream = means.stream;
    this.#list = new WholeList(means);
  }

  /** One reading of everything. A failure is one of the list's first page. */
  async read(
    taker: EntityTaker,
    { rotation, ...means }: RoundMeans & { readonly rotation?: Rotation | undefined },
    signal: AbortSignal,
  ): Promise<Answer<Reading>> {
    if (this.#stream.single === true) return await this.#readSingle(taker, signal);
    const listed = new ListedEntities(this.#stream, taker, new Round(rotation, means));
    const listing = await this.#list.read(listed, signal);
    if (listing.outcome !== 'ok') return listing;
    const { isEndless } = listing;
    const { round } = listed;
    let flaw = listing.flaw ?? this.#flawed(listed.flaw);
    if (this.#stream.detail === undefined) {
      return { outcome: 'ok', asked: null, flaw, isEndless, left: 0 };
    }
    const details = await this.#readDetails({ taker, listed }, signal);
    flaw ??= details.flaw;
    const { left, after } = round;
    return { outcome: 'ok', asked: details.asked, flaw, isEndless, left, rotation: after };
  }

  async #readSingle(taker: EntityTaker, signal: AbortSignal): Promise<Answer<Reading>> {
    const answer = await askSingle(this.#stream, signal);
    if (answer.outcome !== 'ok') return answer;
    const { entities } = answer;
    taker.known.begin();
    for (const { key } of entities) taker.known.see(key);
    await taker.take(entities);
    return { outcome: 'ok', asked: null, flaw: null, isEndless: false, left: 0 };
  }

  async #readDetails(
    { taker, listed }: { readonly taker: EntityTaker; readonly listed: ListedEntities },
    signal: AbortSignal,
  ): Promise<{ readonly asked: ReadonlySet<string>; readonly flaw: Failure | null }> {
    const { kind, ids } = this.#stream.entity;
    const asked = new Set<string>();
    const missing = new Set<string>();
    const denied: Entity[] = [];
    let refusal: Failure | null = null;
    let flaw: Failure | null = null;
    for (const { key, id, text, listed: digest } of listed.round.chosen()) {
      const element = elementOf(JSON.parse(text), Buffer.from(text), ids) ?? nothingListed;
      const read = await this.#readDetail(id, element, signal);
      if (read === 'gone') {
        missing.add(id ?? '');
        taker.known.unsee(key);
      } else if (!('flaw' in read)) {
        asked.add(key);
        for (const part of read) taker.known.see(part.key);
        await taker.take(
          read.map((entity) => (entity.key === key ? { ...entity, listed: digest } : entity)),
        );
      } else if (read.flaw.outcome === 'denied' && read.flaw.status === 403 && id !== null) {
        refusal ??= read.flaw;
        denied.push({ ...entityOf([kind, id], { ...element, id }), listed: digest });
      } else {
        flaw ??= read.flaw;
      }
    }
    const isAll = denied.length === listed.count || denied.length > deniedMax;
    if (refusal !== null && asked.size === 0 && isAll) flaw ??= refusal;
    else if (refusal !== null) await taker.deny(denied, refusal);
    if (missing.size > 0) flaw ??= await this.#stillListed(missing, signal);
    return { asked, flaw };
  }

  /** By its id, where that can be asked: `gone` only for a plain 404, or a part its list lost. */
  async stillThere(key: string, signal: AbortSignal): Promise<'there' | 'gone' | 'unknown'> {
    if (this.#stream.detail === undefined) return 'gone';
    const { id, list } = keyParts(key);
    const read = await this.#readDetail(id, nothingListed, signal);
    if (read === 'gone') return 'gone';
    if ('flaw' in read) return 'unknown';
    if (read.some((entity) => entity.key === key)) return 'there';
    // A list of parts that is not there at all says nothing about the parts in it.
    const holder = JSON.parse(read[0]?.text ?? '{}') as Record<string, unknown>; // made from parsed JSON
    return list !== null && Array.isArray(holder[list]) ? 'gone' : 'unknown';
  }

  async #readDetail(id: string | null, listed: Element, signal: AbortSignal): Promise<DetailRead> {
    const { entity, detail, list } = this.#stream;
    const unknown = (what: string) => ({ flaw: this.#nonsense(what) });
    if (detail === undefined || id === null) {
      return unknown(`one ${entity.kind} is listed without an id`);
    }
    const request = detail.request(id);
    if (request === null) return unknown(`one ${entity.kind} has an id that no path can hold`);
    const answer = await list.upstream.get(request, signal);
    if (answer.outcome === 'refused' && answer.status === 404) return 'gone';
    if (answer.outcome !== 'ok') return { flaw: answer };
    const entities = detailEntities(this.#stream, answer.body, { listed, id });
    return entities ?? unknown(`${entity.kind} ${JSON.stringify(id)} cannot be read`);
  }

  /** One deleted while the list was read is gone by now; one that is still listed is unknown. */
  async #stillListed(missing: ReadonlySet<string>, signal: AbortSignal): Promise<Failure | null> {
    let isListed = false;
    const begin = () => {
      isListed = false;
    };
    const page = async (records: RecordList, fresh: readonly number[]) => {
      isListed ||= fresh.some((at) => missing.has(idAt(records, at, this.#stream) ?? ''));
    };
    const again = await this.#list.read({ begin, page }, signal);
    if (again.outcome !== 'ok') return again;
    if (again.flaw !== null || !isListed) return again.flaw;
    const { kind } = this.#stream.entity;
    return this.#nonsense(`one ${kind} is listed, and answered with 404 by its id`);
  }

  #flawed(what: string | null): Failure | null {
    return what === null ? null : this.#nonsense(what);
  }

  #nonsense(what: string): Failure {
    return noEntity(this.#stream, what);
  }
}

/** Asks for the one object that a collection may be, and for the entities in it. */
export async function askSingle(
  stream: CollectionStream,
  signal: AbortSignal,
): Promise<Answer<{ readonly entities: readonly Entity[] }>> {
  const { company, resource, entity, list } = stream;
  const answer = await list.upstream.get(list.request, signal);
  if (answer.outcome !== 'ok') return answer;
  const id = company ?? resource;
  const entities = detailEntities(stream, answer.body, { listed: nothingListed, id });
  if (entities === null) return noEntity(stream, `the answer is no ${entity.kind}`);
  return { outcome: 'ok', entities };
}

function noEntity({ name }: CollectionStream, what: string): Failure {
  return { outcome: 'retry', cause: nonsense(`reading ${name}`, what) };
}

/** The entities of a list, page by page. */
class ListedEntities {
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
function idAt(records: RecordList, index: number, { entity }: CollectionStream): string | null {
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
