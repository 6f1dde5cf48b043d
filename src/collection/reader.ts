// One reading of a collection: its single object, or its list and then entities by id if the list shows only a part of
// them (not all in each reading, see rotation.ts). List and entities can disagree during edits: an entity that is
// listed and answers 404 is searched for in the list once more; if it is still there, its state is unknown in this
// reading. Invariant: a reading is complete only if each of its requests succeeded. An incomplete one is valid for the
// entities it shows. For an unchanged entity only its digest is compared.

import type { Answer, Body, CollectionStream, Failure } from '../contracts/index.ts';
import { nonsense, partialError, partialPage } from '../list/index.ts';

import { isPatience, passingMs } from '../poll/index.ts';
import { losslessBytes, parseBody, type RecordList } from '../tools/index.ts';
import {
  detailEntities,
  type Element,
  type Entity,
  elementOf,
  entityOf,
  keyParts,
} from './entities.ts';
import { type EntityTaker, idAt, ListedEntities, nothingListed } from './listed.ts';
import { withKnownParts } from './parts.ts';
import { type Rotation, type RotationDeps, RotationShare } from './rotation.ts';
import { type ReaderDeps, WholeList } from './whole-list.ts';

/** One reading. Absence from an incomplete reading has no meaning. */
export interface FullScan {
  /** Keys of the entities whose parts were seen too; null: the collection has no requests by id. */
  readonly asked: ReadonlySet<string> | null;
  /** Why it may be incomplete; null: it is complete. */
  readonly flaw: Failure | null;
  readonly isEndless: boolean;
  /** New and changed entities that are still to be requested by id. */
  readonly left: number;
  readonly rotation?: Rotation;
}

/** The parameters of a reading. */
export interface FullScanDeps extends RotationDeps {
  readonly rotation?: Rotation | undefined;
  /** The previous readings were incomplete, so the cause is lasting. */
  readonly isLasting: boolean;
}

/** The result for one entity; `flaw`: its state is unknown. */
type DetailRead =
  | readonly Entity[]
  | 'gone'
  | { readonly flaw: Failure; readonly parts?: readonly Entity[] };

/** Denials beyond this number are not reported one by one. */
const deniedMax = 10;

/** Reads one collection. */
export class CollectionReader {
  readonly #stream: CollectionStream;
  readonly #list: WholeList;
  readonly #clock: ReaderDeps['clock'];
  /** When a detail first answered 403 with a wait; null: none did in the last reading. */
  #patientSince: number | null = null;

  constructor(deps: ReaderDeps) {
    this.#stream = deps.stream;
    this.#clock = deps.clock;
    this.#list = new WholeList(deps);
  }

  /** One reading of everything. A failure is a failure of the list's first page. */
  async read(
    taker: EntityTaker,
    { rotation, isLasting, ...deps }: FullScanDeps,
    signal: AbortSignal,
  ): Promise<Answer<FullScan>> {
    if (this.#stream.single === true) return await this.#readSingle(taker, signal);
    const listed = new ListedEntities(this.#stream, taker, new RotationShare(rotation, deps));
    const listing = await this.#list.read(listed, signal);
    if (listing.outcome !== 'ok') return listing;
    const { isEndless } = listing;
    const { share } = listed;
    let flaw = listing.flaw ?? this.#flawed(listed.flaw);
    await listed.end(flaw !== null && !isLasting);
    if (this.#stream.detail === undefined) {
      return { outcome: 'ok', asked: null, flaw, isEndless, left: 0 };
    }
    const details = await this.#readDetails({ taker, listed, isLasting }, signal);
    flaw ??= details.flaw;
    const { left, after } = share;
    return { outcome: 'ok', asked: details.asked, flaw, isEndless, left, rotation: after };
  }

  async #readSingle(taker: EntityTaker, signal: AbortSignal): Promise<Answer<FullScan>> {
    const answer = await askSingle(this.#stream, signal);
    if (answer.outcome !== 'ok') return answer;
    taker.known.begin();
    const entities = await withKnownParts(answer.entities, taker);
    for (const { key } of entities) taker.known.see(key);
    await taker.take(entities);
    return { outcome: 'ok', asked: null, flaw: null, isEndless: false, left: 0 };
  }

  async #readDetails(
    {
      taker,
      listed,
      isLasting,
    }: Pick<FullScanDeps, 'isLasting'> & { taker: EntityTaker; listed: ListedEntities },
    signal: AbortSignal,
  ): Promise<{ readonly asked: ReadonlySet<string>; readonly flaw: Failure | null }> {
    const { kind, ids } = this.#stream.entity;
    const asked = new Set<string>();
    const missing = new Map<string, Entity>();
    const denied: Entity[] = [];
    let refusal: Failure | null = null;
    let flaw: Failure | null = null;
    let patient: Failure | null = null;
    for (const { key, id, text, listed: digest } of listed.share.chosen()) {
      const bytes = losslessBytes(text);
      const element = elementOf(parseBody(bytes), bytes, ids) ?? nothingListed;
      const read = await this.#readDetail(id, element, signal);
      const asListed = () => ({
        ...entityOf([kind, id ?? ''], { ...element, id: id ?? '' }),
        listed: digest,
      });
      if (read === 'gone') {
        missing.set(id ?? '', asListed());
        taker.known.unsee(key);
      } else if (!('flaw' in read)) {
        asked.add(key);
        const entities = await withKnownParts(read, taker);
        for (const part of entities) taker.known.see(part.key);
        await taker.take(
          entities.map((entity) => (entity.key === key ? { ...entity, listed: digest } : entity)),
        );
      } else if (this.#isDenial(read.flaw) && id !== null) {
        if (isPatience(read.flaw)) patient ??= read.flaw;
        refusal ??= read.flaw;
        denied.push(asListed());
      } else {
        if (isPatience(read.flaw)) patient ??= read.flaw;
        // Parts were seen, and nothing shows whether others are missing.
        const parts = await withKnownParts(read.parts ?? [], taker, true);
        for (const part of parts) taker.known.see(part.key);
        await taker.take(parts);
        flaw ??= read.flaw;
      }
    }
    this.#patientSince = patient === null ? null : (this.#patientSince ?? this.#clock.monotonic());
    const isAll = denied.length === listed.count || denied.length > deniedMax;
    if (refusal !== null && asked.size === 0 && isAll && !isLasting) flaw ??= refusal;
    else if (refusal !== null) await taker.deny(denied, refusal);
    if (missing.size === 0) return { asked, flaw };
    const again = await this.#stillListed(missing, signal);
    const listedYet = again.ids.flatMap((id) => missing.get(id) ?? []);
    // If no entity is found by id, the list is all that can be read. If others are found, a missing one may be gone and
    // still listed. An entity with parts is useless without them.
    const hasNone = asked.size === 0 && this.#stream.detail?.parts === undefined;
    const isBlind = again.isWhole && hasNone;
    const isKnownSo = listedYet.every(({ key }) => isLasting || taker.known.isDenied(key));
    if (!isBlind || !isKnownSo) return { asked, flaw: flaw ?? again.flaw };
    for (const { key } of listedYet) taker.known.see(key);
    if (again.flaw !== null) await taker.deny(listedYet, again.flaw);
    return { asked, flaw };
  }

  /** A 403 with a wait is a denial only after it has lasted for the usual wait. */
  #isDenial(flaw: Failure): boolean {
    if (flaw.outcome !== 'denied' || flaw.status !== 403) return false;
    const now = this.#clock.monotonic();
    return !isPatience(flaw) || now - (this.#patientSince ?? now) >= passingMs(flaw);
  }

  /** Requests an entity by id, if possible: `gone` only for a plain 404, or for a part that its list lost. */
  async stillThere(key: string, signal: AbortSignal): Promise<'there' | 'gone' | 'unknown'> {
    if (this.#stream.detail === undefined) return 'gone';
    const { id, list } = keyParts(key);
    const read = await this.#readDetail(id, nothingListed, signal);
    if (read === 'gone') return 'gone';
    if ('flaw' in read) return 'unknown';
    if (read.some((entity) => entity.key === key)) return 'there';
    // A missing list of parts says nothing about its parts.
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
    const read = detailEntities(this.#stream, answer.body, { listed, id });
    const part = partOf(this.#stream, read, answer);
    if (part !== null) {
      const parts = read?.entities.filter(({ parentId }) => parentId !== undefined) ?? [];
      return { flaw: part, parts };
    }
    return read?.entities ?? unknown(`${entity.kind} ${JSON.stringify(id)} cannot be read`);
  }

  /** An entity deleted during the reading is gone by now; one that is still listed is unknown. */
  async #stillListed(
    missing: ReadonlyMap<string, Entity>,
    signal: AbortSignal,
  ): Promise<{ readonly ids: readonly string[]; isWhole: boolean; readonly flaw: Failure | null }> {
    const ids = new Set<string>();
    const page = async (records: RecordList, fresh: readonly number[]) => {
      for (const at of fresh) {
        const id = idAt(records, at, this.#stream);
        if (id !== null && missing.has(id)) ids.add(id);
      }
    };
    const again = await this.#list.read({ begin: () => ids.clear(), page }, signal);
    const failure = again.outcome === 'ok' ? again.flaw : again;
    if (failure !== null) return { ids: [], isWhole: false, flaw: failure };
    const { kind } = this.#stream.entity;
    const what = `one ${kind} is listed, and answered with 404 by its id`;
    return { ids: [...ids], isWhole: true, flaw: ids.size === 0 ? null : this.#nonsense(what) };
  }

  #flawed(what: string | null): Failure | null {
    return what === null ? null : this.#nonsense(what);
  }

  #nonsense(what: string): Failure {
    return noEntity(this.#stream, what);
  }
}

/** Requests the single object of a collection, and its entities. */
export async function askSingle(
  stream: CollectionStream,
  signal: AbortSignal,
): Promise<Answer<{ readonly entities: readonly Entity[] }>> {
  const { company, resource, entity, list } = stream;
  const answer = await list.upstream.get(list.request, signal);
  if (answer.outcome !== 'ok') return answer;
  const id = company ?? resource;
  const read = detailEntities(stream, answer.body, { listed: nothingListed, id });
  const part = partOf(stream, read, answer);
  if (part !== null) return part;
  if (read === null) return noEntity(stream, `the answer is no ${entity.kind}`);
  return { outcome: 'ok', entities: read.entities };
}

/** The failure of a response that reports missing data, if that is not accepted. */
function partOf(
  { name, list }: CollectionStream,
  read: ReturnType<typeof detailEntities>,
  { describe }: Body,
): Failure | null {
  const lost = list.partial === 'accept' ? null : (read?.lost ?? null);
  return lost && partialPage(partialError(`reading ${name}`, lost, describe));
}

function noEntity({ name }: CollectionStream, what: string): Failure {
  return { outcome: 'retry', cause: nonsense(`reading ${name}`, what) };
}
