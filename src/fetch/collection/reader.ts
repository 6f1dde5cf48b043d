// One reading of a collection: its one entity, or its list and then each entity by its id, where the
// list shows no more than a part of it. The two can disagree while somebody works on the entities: one that is listed
// and answered with 404 is looked for in the list once more; if it is still there, nothing is known
// of it in this reading. What must stay true: a reading says that it is complete only if every
// request of it was answered as it should be. One that is not is good for what it shows.

import type { Answer, Failure } from '../../contracts/answer.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import { nonsense, readJson } from '../list/body.ts';
import { detailEntities, type Element, type Entity, entitiesOf, keyParts } from './entities.ts';
import { type ReaderMeans, WholeList } from './whole-list.ts';

/** One reading. What is missing from an incomplete one says nothing. */
export interface Reading {
  readonly entities: readonly Entity[];
  /** Why it may not be complete; null: it is. */
  readonly flaw: Failure | null;
}

/** What is known of one entity; `flaw` where it cannot be told. */
type DetailRead = readonly Entity[] | 'gone' | { readonly flaw: Failure };

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
  async read(signal: AbortSignal): Promise<Answer<Reading>> {
    const { entity, detail } = this.#stream;
    if (this.#stream.single === true) return await this.#readSingle(signal);
    const listing = await this.#list.read(signal);
    if (listing.outcome !== 'ok') return listing;
    const { elements } = listing;
    let { flaw } = listing;
    if (detail === undefined) {
      return { outcome: 'ok', entities: entitiesOf(entity.kind, elements), flaw };
    }
    const entities: Entity[] = [];
    const missing: string[] = [];
    for (const element of elements) {
      const { id } = element;
      const read = await this.#readDetail(id, element, signal);
      if (read === 'gone') missing.push(id ?? '');
      else if ('flaw' in read) flaw ??= read.flaw;
      else entities.push(...read);
    }
    if (missing.length > 0) flaw ??= await this.#stillListed(missing, signal);
    return { outcome: 'ok', entities, flaw };
  }

  async #readSingle(signal: AbortSignal): Promise<Answer<Reading>> {
    const { company, resource, entity, list } = this.#stream;
    const answer = await list.upstream.get(list.request, signal);
    if (answer.outcome !== 'ok') return answer;
    const entities = this.#entitiesIn(answer.body, nothingListed, company ?? resource);
    return entities === null
      ? this.#nonsense(`the answer is no ${entity.kind}`)
      : { outcome: 'ok', entities, flaw: null };
  }

  /**
   * By its id, where upstream can be asked for that: `gone` only for a plain 404, or a part that
   * its list has lost.
   */
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
    const entities = this.#entitiesIn(answer.body, listed, id);
    return entities ?? unknown(`${entity.kind} ${JSON.stringify(id)} cannot be read`);
  }

  #entitiesIn(body: Uint8Array, listed: Element, id: string): readonly Entity[] | null {
    const read = readJson(body, `reading ${this.#stream.name}`);
    const parsed = read.good ? read.value : null;
    return detailEntities(this.#stream, { listed, id }, { body, parsed });
  }

  /**
   * One that was deleted while the list was read is gone from it by now; one that is still listed
   * is unknown.
   */
  async #stillListed(missing: readonly string[], signal: AbortSignal): Promise<Failure | null> {
    const again = await this.#list.read(signal);
    if (again.outcome !== 'ok') return again;
    const listed = new Set(again.elements.map(({ id }) => id));
    if (again.flaw !== null || !missing.some((id) => listed.has(id))) return again.flaw;
    return this.#nonsense(
      `one ${this.#stream.entity.kind} is listed, and answered with 404 by its id`,
    );
  }

  #nonsense(what: string): Failure {
    return { outcome: 'retry', cause: nonsense(`reading ${this.#stream.name}`, what) };
  }
}
