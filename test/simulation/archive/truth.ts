// Follows the signatures of the process under test, and compares each entry with the truth: pages against upstream,
// removals against requests that an operator has signed and against holds. Invariant: it believes nothing
// that it reads from the store, only what the process itself has written there; and it shares no code with what it
// judges but the form of a request's text.

import { hash } from 'node:crypto';
import { bodyOf, type TruePage, type Upstream } from './upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: entries are read as what they are, without the shapes of the code under test
type AnyEntry = any;

/** A request that an operator has made. */
export interface Granted {
  readonly kind: 'prune' | 'erase' | 'release';
  readonly wish: Readonly<Record<string, string | null>>;
}

/** What is true beside upstream. */
export interface Rules {
  readonly upstream: Upstream;
  readonly origin: string;
  /** Keys that may sign. */
  readonly keys: ReadonlySet<string>;
  /** True: unsigned requests are carried out. */
  readonly accepts: boolean;
  readonly bodiesMs: number | null;
  now(): number;
  readonly granted: readonly Granted[];
  finding(text: string): void;
}

interface Hold {
  readonly from: string | null;
  readonly to: string | null;
}

/** What a signed log comes to, by what is true. */
export class Branch {
  readonly entries: Buffer[] = [];
  readonly parsed: AnyEntry[] = [];
  readonly holds = new Map<string, Hold>();
  readonly done = new Set<string>();
  /** By segment: indexes of its pages. */
  readonly segments = new Map<string, number[]>();
  readonly pages = new Map<number, TruePage>();
  /** By index of the page: indices of its erased records. */
  readonly erased = new Map<number, Set<number>>();
  readonly erasedSegments = new Map<string, string>();
  readonly pruned = new Set<string>();
  /** By cut: indexes of its pages; null: they are not known. */
  readonly cuts = new Map<string, readonly number[] | null>();
  readonly cutOf = new Map<string, string>();
  readonly lakeGone = new Map<string, Set<string>>();
  readonly archive: { sha256: string | null } = { sha256: null };
  readonly #chains = new Map<string, readonly [number, string]>();
  #spool = '';
  #cut = '';
  /** Its entries were judged before. */
  #isQuiet = false;
  readonly #rules: Rules;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  /** Erased records by the index of the entry. */
  readonly erasedRecords: {
    readonly index: number;
    readonly uid: string;
    readonly sha256: string;
  }[] = [];

  /** Copies of erased records that were archived before and stay: in pages, and in objects of the lake. */
  copiesLeft(uidsOf: (object: string) => readonly string[]): readonly string[] {
    const left: string[] = [];
    for (const { index, uid, sha256 } of this.erasedRecords) {
      for (const [object, indexes] of this.segments) {
        if (this.pruned.has(object)) continue;
        for (const page of indexes.filter((one) => one < index)) {
          const places = this.erased.get(page);
          this.pages.get(page)?.records.forEach((record, place) => {
            if (record.sha256 === sha256 && places?.has(place) !== true)
              left.push(`record ${place} of entry ${page}`);
          });
        }
      }
      for (const [object, cut] of this.cutOf) {
        const at = this.parsed.findIndex((one) => one.t === 'lake' && one.object === object);
        if (at > index || this.pruned.has(cut) || this.lakeGone.get(object)?.has(uid)) continue;
        if (uidsOf(object).includes(uid)) left.push(`a row of ${object}`);
      }
    }
    return left;
  }

  /** The same log as far as an earlier checkpoint. */
  upTo(size: number): Branch {
    if (size === this.entries.length) return this;
    const made = new Branch(this.#rules);
    made.#isQuiet = true;
    for (const entry of this.entries.slice(0, size)) made.take(entry);
    made.#isQuiet = false;
    return made;
  }

  /** Times at which the pages of an object were read; null: it is not known. */
  timesOf(object: string): readonly number[] | null {
    const indexes = this.segments.get(object) ?? this.cuts.get(this.cutOf.get(object) ?? object);
    return indexes?.map((index) => this.pages.get(index)?.held.context.fetchedAt ?? 0) ?? null;
  }

  isHeld(times: readonly number[]): boolean {
    return [...this.holds.values()].some(({ from, to }) => {
      const [first, last] = [Math.min(...times), Math.max(...times)];
      return (to === null || first < Date.parse(to)) && (from === null || last >= Date.parse(from));
    });
  }

  /** The next entry that was signed. */
  take(bytes: Buffer): void {
    const index = this.entries.length;
    const entry = JSON.parse(bytes.toString()) as AnyEntry;
    this.entries.push(bytes);
    this.parsed.push(entry);
    const wrong = (what: string) => {
      if (!this.#isQuiet) this.#rules.finding(`signed entry ${index} (${entry.t}): ${what}`);
    };
    this.#judge(index, bytes, wrong);
  }

  #judge(index: number, bytes: Buffer, wrong: (what: string) => void): void {
    const entry = this.parsed[index];
    switch (entry.t) {
      case 'start':
        this.#spool = entry.spool;
        this.archive.sha256 ??= entry.archive;
        if (entry.archive !== this.archive.sha256) wrong('it names another archive.json');
        if (entry.requests !== (this.#rules.accepts ? 'accepted' : 'signed')) {
          wrong(`requests are ${entry.requests}`);
        }
        return;
      case 'segment':
        this.segments.set(entry.object, []);
        return;
      case 'page':
        this.#page(index, bytes, entry, wrong);
        return;
      case 'hold':
        this.#hold(entry, wrong);
        return;
      case 'pruned':
        this.#pruned(entry, wrong);
        return;
      case 'erased':
        this.#erased(index, entry, wrong);
        return;
      case 'checkpoint':
        for (const request of entry.done ?? []) this.done.add(request);
        return;
      case 'lake_cut': {
        const [from, to] = entry.entries ?? [1, 0];
        const pages = [...this.pages.keys()].filter((one) => one >= from && one <= to);
        this.#cut = entry.object;
        this.cuts.set(entry.object, entry.entries === null ? null : pages);
        return;
      }
      case 'lake':
        this.cutOf.set(entry.object, this.#cut);
        return;
      case 'lake_erased':
        this.#lakeErased(entry, wrong);
        return;
      default:
    }
  }

  #page(index: number, bytes: Buffer, entry: AnyEntry, wrong: (what: string) => void): void {
    const page = this.#rules.upstream.pages.get(`${this.#spool} ${entry.place[1]}`);
    this.segments.get(entry.body.segment)?.push(index);
    if (page === undefined) {
      wrong('upstream has sent no such page');
      return;
    }
    this.pages.set(index, page);
    const { context } = page.held;
    const isTrue =
      entry.stream === context.stream &&
      Date.parse(entry.fetched_at) === context.fetchedAt &&
      entry.body.sha256 === page.sha256 &&
      entry.uids.sha256 === page.uidsSha256;
    if (!isTrue) wrong('it is not the page that upstream has sent');
    const [seq, prev] = this.#chains.get(entry.stream) ?? [0, null];
    if (entry.seq !== seq || entry.prev !== prev) wrong('it does not follow the one before');
    const leaf = hash('sha256', Buffer.concat([Buffer.of(0), bytes]), 'hex');
    this.#chains.set(entry.stream, [seq + 1, leaf]);
  }

  #hold(entry: AnyEntry, wrong: (what: string) => void): void {
    const { id, from, to, released_at } = entry;
    const known = this.holds.get(id);
    if (known !== undefined && (known.from !== from || known.to !== to)) {
      wrong(`the hold ${id} was entered with another span`);
    }
    if (released_at === null) {
      if (known === undefined) this.holds.set(id, { from, to });
      return;
    }
    if (known !== undefined) {
      this.#checkAuthority(entry, (one) => one.kind === 'release' && one.wish.id === id, wrong);
    }
    this.holds.delete(id);
  }

  #pruned(entry: AnyEntry, wrong: (what: string) => void): void {
    const { object, why } = entry;
    this.pruned.add(object);
    const times = this.timesOf(object);
    if (times === null || times.length === 0) {
      if (object.startsWith('segments/')) wrong('it prunes what it has not written');
      return;
    }
    if (this.isHeld(times)) wrong(`it prunes ${object}, which a hold keeps`);
    const { bodiesMs, now } = this.#rules;
    const last = Math.max(...times);
    if (why === 'retention') {
      if (bodiesMs === null || last >= now() - bodiesMs) wrong(`${object} is not old enough`);
      return;
    }
    const isAsked = ({ kind, wish }: Granted) =>
      kind === 'prune' && last < Date.parse(wish.before ?? '');
    this.#checkAuthority(entry, isAsked, wrong);
  }

  #erased(index: number, entry: AnyEntry, wrong: (what: string) => void): void {
    const { page, records, body, segment } = entry;
    const own = this.pages.get(page.index);
    this.erasedSegments.set(page.segment, segment.sha256);
    if (own === undefined) {
      wrong('it erases from no page');
      return;
    }
    if (this.isHeld([own.held.context.fetchedAt])) wrong('it erases what a hold keeps');
    const places = this.erased.get(page.index) ?? new Set<number>();
    this.erased.set(page.index, places);
    // An entry without records erases once more what was put back.
    for (const { place, sha256 } of records as { place: number; sha256: string }[]) {
      const record = own.records[place];
      if (record?.sha256 !== sha256) wrong(`its record ${place} is another`);
      places.add(place);
      if (record !== undefined) this.erasedRecords.push({ index, uid: record.uid, sha256 });
      const isAsked = ({ kind, wish }: Granted) =>
        kind === 'erase' && this.#rules.upstream.shaOf(wish.uid) === sha256;
      this.#checkAuthority(entry, isAsked, wrong);
    }
    const left = hash('sha256', bodyOf(own.records, places), 'hex');
    if (body.sha256 !== left) wrong('the body that is left is not what upstream has sent');
  }

  #lakeErased(entry: AnyEntry, wrong: (what: string) => void): void {
    const times = this.timesOf(entry.object);
    if (times !== null && times.length > 0 && this.isHeld(times)) {
      wrong('it erases rows that a hold keeps');
    }
    const gone = this.lakeGone.get(entry.object) ?? new Set<string>();
    this.lakeGone.set(entry.object, gone);
    for (const uid of entry.uids as string[]) {
      // It had gone before, and somebody has put the object back.
      if (gone.has(uid)) continue;
      gone.add(uid);
      const isAsked = ({ kind, wish }: Granted) =>
        kind === 'erase' &&
        this.#rules.upstream.shaOf(wish.uid) === this.#rules.upstream.shaOf(uid);
      this.#checkAuthority(entry, isAsked, wrong);
    }
  }

  #checkAuthority(
    { by, request }: { readonly by?: string; readonly request?: string },
    isAsked: (one: Granted) => boolean,
    wrong: (what: string) => void,
  ): void {
    const { accepts, granted, origin, keys } = this.#rules;
    if (by === undefined) {
      if (!accepts) wrong('nobody has signed the request');
      return;
    }
    if (!keys.has(by)) wrong(`${by} may not sign requests`);
    const found = granted.filter(isAsked).some(({ kind, wish }) => {
      const about = [origin, this.archive.sha256, kind, JSON.stringify(wish)];
      const text = `sluice archive request\n${about.join('\n')}\n`;
      return hash('sha256', text, 'hex') === request;
    });
    if (!found) wrong('it names a request that nobody has made');
    if (request !== undefined && this.done.has(request))
      wrong('the request was carried out before');
  }
}
