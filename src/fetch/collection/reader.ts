// One reading of a collection: its one entity, or its list and then entities by their ids, where the
// list shows no more than a part of them; not all of these in each reading (rotation.ts). List and
// entities can disagree while somebody works on them: one that is listed and answered with 404 is
// looked for in the list once more; if it is still there, nothing is known of it in this reading.
// What must stay true: a reading says that it is complete only if every request of it was answered
// as it should be. One that is not is good for what it shows. Of an entity that is as it was, no
// more is looked at than its digest.

import type { Answer, Failure } from '../../contracts/answer.ts';
import type { CollectionStream } from '../../contracts/source.ts';
import type { Body } from '../../contracts/upstream.ts';
import { losslessBytes } from '../../tools/lossless-text.ts';
import type { RecordList } from '../../tools/record-list.ts';
import { parseBody } from '../../tools/records.ts';
import { nonsense } from '../list/body.ts';
import { partialPage } from '../list/page.ts';
import { partialError } from '../list/partial.ts';
import { isPatience, passingMs } from '../outcome.ts';
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
import { type Rotation, RotationShare, type RoundDeps } from './rotation.ts';
import { type ReaderDeps, WholeList } from './whole-list.ts';

/** One reading. What is missing from an incomplete one says nothing. */
export interface FullScan {
  /** Keys of the entities whose parts were seen as well; null: there is nothing to ask by an id. */
  readonly asked: ReadonlySet<string> | null;
  /** Why it may not be complete; null: it is. */
  readonly flaw: Failure | null;
  readonly isEndless: boolean;
  /** New and changed entities that are still to be asked by their ids. */
  readonly left: number;
  readonly rotation?: Rotation;
}

/** What a reading goes by. */
export interface FullScanDeps extends RoundDeps {
  readonly rotation?: Rotation | undefined;
  /** The readings before it were incomplete: what keeps this one from being whole is there to stay. */
  readonly isLasting: boolean;
}

/** What is known of one entity; `flaw` where it cannot be told. */
type DetailRead =
  | readonly Entity[]
  | 'gone'
  | { readonly flaw: Failure; readonly parts?: readonly Entity[] };

/** So many are not denied each by itself. */
const deniedMax = 10;

/** Reads one collection. */
export class CollectionReader {
  readonly #stream: CollectionStream;
  readonly #list: WholeList;
  readonly #clock: ReaderDeps['clock'];
  /** When a detail first asked to wait with a 403; null: none did in the last reading. */
  #patientSince: number | null = null;

  constructor(deps: ReaderDeps) {
    this.#stream = deps.stream;
    this.#clock = deps.clock;
    this.#list = new WholeList(deps);
  }

  /** One reading of everything. A failure is one of the list's first page. */
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
    const { round } = listed;
    let flaw = listing.flaw ?? this.#flawed(listed.flaw);
    await listed.end(flaw !== null && !isLasting);
    if (this.#stream.detail === undefined) {
      return { outcome: 'ok', asked: null, flaw, isEndless, left: 0 };
    }
    const details = await this.#readDetails({ taker, listed, isLasting }, signal);
    flaw ??= details.flaw;
    const { left, after } = round;
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
    for (const { key, id, text, listed: digest } of listed.round.chosen()) {
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
    // Where none is found by its id, the list is all there is to be had; where others are, one that
    // is not may be gone and still listed. What has parts is nothing without them.
    const hasNone = asked.size === 0 && this.#stream.detail?.parts === undefined;
    const isBlind = again.isWhole && hasNone;
    const isKnownSo = listedYet.every(({ key }) => isLasting || taker.known.isDenied(key));
    if (!isBlind || !isKnownSo) return { asked, flaw: flaw ?? again.flaw };
    for (const { key } of listedYet) taker.known.see(key);
    if (again.flaw !== null) await taker.deny(listedYet, again.flaw);
    return { asked, flaw };
  }

  /** A 403 that asks to wait is a denial only once it has lasted for the usual wait. */
  #isDenial(flaw: Failure): boolean {
    if (flaw.outcome !== 'denied' || flaw.status !== 403) return false;
    const now = this.#clock.monotonic();
    return !isPatience(flaw) || now - (this.#patientSince ?? now) >= passingMs(flaw);
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
    const read = detailEntities(this.#stream, answer.body, { listed, id });
    const part = partOf(this.#stream, read, answer);
    if (part !== null) {
      const parts = read?.entities.filter(({ parentId }) => parentId !== undefined) ?? [];
      return { flaw: part, parts };
    }
    return read?.entities ?? unknown(`${entity.kind} ${JSON.stringify(id)} cannot be read`);
  }

  /** One deleted while the list was read is gone by now; one that is still listed is unknown. */
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

/** Asks for the one object that a collection may be, and for the entities in it. */
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

/** The failure of an answer that reports missing data, where that is not accepted. */
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
