// A server of the kind that a seed stands for: cuts the collection into pages, responds for one entity, and has its
// faults. It records its wrong responses, since reports based on them are judged by other rules.

import type { Answer, Failure } from '../../../src/contracts/answer.ts';
import { ExportError } from '../../../src/contracts/errors.ts';
import type { Body, UpstreamRequest } from '../../../src/contracts/upstream.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import { okOf } from '../../support/made-up-list.ts';
import type { ModelCollection, Row } from './model.ts';
import type { Traits } from './traits.ts';

/** What was not as it should be since it was last looked. */
export interface Troubles {
  /** Any answer at all. */
  any: boolean;
  /** Existing entities that the list left out without a sign. */
  readonly unlisted: Set<string>;
  /** The list as a whole was refused. */
  scope: boolean;
  /** The list's first page was shown. */
  listed: boolean;
}

const forEver = Number.POSITIVE_INFINITY;

/** One server. */
export class ModelServer {
  /** While it is true, answers go wrong now and then. */
  troubled = true;
  /** Until then the company is denied or gone, and until then the list is shorter than it is. */
  scopeUntil = 0;
  lieUntil = 0;
  /** Over night each entity has a field more. */
  hasExtra = false;
  hidden: string | null = null;
  denied: string | null = null;
  blocked: string | null = null;
  /**
   * Until when entities have been denied by their ids, as far as a reader can know; those that
   * still are, for ever.
   */
  readonly deniedUntil = new Map<string, number>();
  /** When entities were answered by their ids, since it was last looked. */
  readonly #answered = new Map<string, number>();
  readonly #traits: Traits;
  readonly #collection: ModelCollection;
  readonly #random: Random;
  #outageUntil = 0;
  #cursors = 0;
  #troubles = noTroubles();

  constructor(traits: Traits, collection: ModelCollection, random: Random) {
    this.#traits = traits;
    this.#collection = collection;
    this.#random = random;
  }

  /**
   * What went wrong in the poll that has ended. One that has committed nothing has learned nothing,
   * so that for its process what was denied still is.
   */
  troubles(isCommitted: boolean): Troubles {
    for (const [id, at] of isCommitted ? this.#answered : []) {
      if (this.deniedUntil.get(id) === forEver) this.deniedUntil.set(id, at);
    }
    this.#answered.clear();
    const troubles = this.#troubles;
    this.#troubles = noTroubles();
    return troubles;
  }

  /** The answer to one request at a moment. */
  answer({ path, query }: UpstreamRequest, now: number): Answer<Body> {
    const lag = this.#random.chance(0.5) ? this.#random.below(this.#traits.lagMs + 1) : 0;
    const rows = this.#collection.rowsAt(now - lag);
    const id = path.startsWith('/items/') ? decodeURIComponent(path.slice('/items/'.length)) : null;
    const answer = this.#trouble(now, id) ?? (id === null ? null : this.#detailTrouble(id));
    if (answer !== null) {
      this.#troubles.any = true;
      return answer;
    }
    if (id !== null) return this.#detail(id, rows, now);
    if (now < this.scopeUntil) {
      this.#troubles.any = true;
      this.#troubles.scope = true;
      const { scope } = this.#traits;
      return scope === 403 ? denied() : refused(404);
    }
    const params = Object.fromEntries(query);
    const listed = rows.filter((row) => row.id !== this.hidden);
    const shown = now < this.lieUntil ? listed.slice(0, listed.length / 2) : listed;
    if (this.hidden !== null || now < this.lieUntil) this.#troubles.any = true;
    for (const row of rows) {
      const own = this.#collection.idOf(row);
      if (shown.includes(row)) this.#troubles.unlisted.delete(own);
      else this.#troubles.unlisted.add(own);
    }
    return this.#page(shown, params, now);
  }

  #page(rows: readonly Row[], params: Record<string, string>, now: number): Answer<Body> {
    const { paging, pageRows, total, moves } = this.#traits;
    const after = params.cursor === undefined ? null : Number(params.cursor.split('#')[0]);
    const offset = Number(params.offset ?? 0);
    const limit = Math.min(pageRows, Number(params.limit ?? pageRows));
    const isFirst = after === null && offset === 0;
    if (isFirst) this.#troubles.listed = true;
    if (!isFirst && this.#chance(0.3)) return this.#wrong(refused(400));
    const behind = after === null ? 0 : rows.findIndex(({ place }) => place > after);
    const from = paging === 'offset' ? offset : behind < 0 ? rows.length : behind;
    const isEmpty = from < rows.length && this.#random.chance(this.#traits.empty);
    const isShort = this.#random.chance(this.#traits.short);
    const size = isEmpty ? 0 : isShort ? 1 + this.#random.below(limit) : limit;
    const page = rows.slice(from, from + (paging === 'none' ? rows.length : size));
    if (page.some(({ id }) => id === this.blocked)) {
      return this.#wrong({ outcome: 'blocked', cause: failure('451') });
    }
    const length = total === 'capped' ? Math.min(3, rows.length) : rows.length;
    // A server whose rows are counted says which they are, or how many there are.
    const counted = paging === 'offset' ? { limit, offset } : {};
    const reported = total === 'none' ? {} : { total: length };
    const last = page.at(-1);
    const next = this.#next(
      isEmpty ? after : (last?.place ?? null),
      from + page.length < rows.length,
    );
    const envelope = { ...counted, ...reported, ...(paging === 'cursor' ? next : {}) };
    return this.#bent(page, envelope, { now, isReported: total === 'exact', moves });
  }

  /** An empty first page leads on to all rows. */
  #next(place: number | null, isMore: boolean): { next_cursor?: string | null } {
    this.#cursors += 1;
    if (isMore) return { next_cursor: `${place ?? -1e9}#${this.#cursors}` };
    return this.#traits.end === 'missing' ? {} : { next_cursor: null };
  }

  /** The page, or something that is none. */
  #bent(
    page: readonly Row[],
    envelope: Readonly<Record<string, unknown>>,
    { now, isReported }: { now: number; isReported: boolean; moves: boolean },
  ): Answer<Body> {
    const elements = page.map((row) => this.#element(row, now));
    const text = (data: readonly string[], rest = envelope) =>
      `{"data":[${data.join(',')}]${JSON.stringify(rest)
        .replace(/^\{(?=.)/, ',')
        .replace(/^,\}$/, '}')}`;
    if (!this.#chance(1)) return okOf(text(elements));
    const whole = text(elements);
    const bent = [
      '{}',
      '{"data":{}}',
      '{"error":{"code":"later"}}',
      whole.slice(0, whole.length / 2),
      text([...elements, '"text"']),
      // It says itself that it is a part.
      ...(isReported && elements.length > 0 ? [text([])] : []),
      ...(isReported && elements.length > 1 ? [text(elements.slice(1))] : []),
      ...(this.#traits.named && elements.length > 0
        ? [text([...elements, elements[0] ?? ''])]
        : []),
    ];
    return this.#wrong(okOf(this.#random.pick(bent)));
  }

  #detail(id: string, rows: readonly Row[], now: number): Answer<Body> {
    const row = rows.find((other) => other.id === id);
    if (row === undefined) return refused(404);
    this.#answered.set(id, now);
    const { n, tags, rules } = row;
    const own: Record<string, unknown> = { n, tags: this.#shuffled(tags), id };
    if (this.#traits.parts) own.rules = rules;
    const printed = this.#printed(own, now);
    return okOf(this.#random.chance(0.3) ? `{"data":${printed}}` : printed);
  }

  #element(row: Row, now: number): string {
    const { id, name, n, tags } = row;
    const named = this.#traits.named ? { id, name } : { name };
    const whole = this.#traits.detail ? named : { ...named, n, tags: this.#shuffled(tags) };
    // Elements without ids are known by what they look like.
    return this.#traits.named ? this.#printed(whole, now) : JSON.stringify({ ...whole, tags });
  }

  /** The same content is never printed the same. */
  #printed(members: Readonly<Record<string, unknown>>, now: number): string {
    const extra = this.hasExtra ? { extra: 1 } : {};
    const entries = Object.entries({ ...members, ...extra, updated_at: now });
    return JSON.stringify(Object.fromEntries(this.#shuffled(entries)));
  }

  #shuffled<T>(list: readonly T[]): readonly T[] {
    const from = this.#random.below(list.length || 1);
    return [...list.slice(from), ...list.slice(0, from)];
  }

  #detailTrouble(id: string): Answer<Body> | null {
    if (this.#chance(0.3)) return refused(404);
    if (id === this.denied || this.#chance(0.3)) {
      return this.#deny(id);
    }
    if (this.#chance(0.3)) return okOf('{"id":"another","n":0}');
    if (this.#chance(0.3)) return okOf('[]');
    if (this.#chance(0.3)) return okOf('{"data":{}}');
    return null;
  }

  #trouble(now: number, id: string | null): Answer<Body> | null {
    if (this.#chance(0.1)) this.#outageUntil = now + this.#random.below(3 * 3_600_000);
    if ((this.troubled && now < this.#outageUntil) || this.#chance(1)) {
      return { outcome: 'retry', cause: failure('500') };
    }
    if (!this.#chance(0.1)) return null;
    if (id !== null) return this.#deny(id);
    this.#troubles.scope = true;
    return denied();
  }

  #deny(id: string): Failure {
    this.deniedUntil.set(id, forEver);
    this.#answered.delete(id);
    return denied();
  }

  #wrong(answer: Answer<Body>): Answer<Body> {
    this.#troubles.any = true;
    return answer;
  }

  #chance(share: number): boolean {
    return this.troubled && this.#random.chance(this.#traits.trouble * share);
  }
}

function noTroubles(): Troubles {
  return { any: false, unlisted: new Set(), scope: false, listed: false };
}

function failure(what: string): ExportError {
  return new ExportError('upstream_unreachable', `simulating: ${what}`, { next: 'nothing' });
}

function denied(): Failure {
  return { outcome: 'denied', status: 403, cause: failure('403') };
}

function refused(status: number): Failure {
  return { outcome: 'refused', status, cause: failure(String(status)) };
}
