// What went from an archive as its entries say: segments that were pruned, records that were erased;
// and what is not there though no entry says that it went. Entries come in the log's order, and the
// one that excuses what is missing comes behind it. What must stay true: nothing that a hold keeps
// is excused, and memory is bounded, however much is missing.

import { createHash } from 'node:crypto';
import type { EntryOf, PageEntry } from '../entries.ts';
import { type Erasures, readVersion, versionsOf } from '../erasures.ts';
import { isHeld } from '../holds.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break, Erasure } from './findings.ts';
import { type CheckedPage, checkedPage, type SegmentFacts } from './page-bodies.ts';

/** What it is judged with. */
interface LetGoMeans {
  readonly reader: ArchiveReader;
  /** All of the log's; looked up only where something is not as it was archived. */
  readonly erasures: () => Promise<Erasures>;
  readonly found: (one: Break, at?: string) => Break;
}

/** Pages whose segment is not there: the first ones, and how many there are. */
interface Missing {
  readonly listed: { readonly one: Break; readonly at: string }[];
  pages: number;
}

/** So many pages that are missing are remembered, and the first of each segment. */
const missingMax = 10_000;
/** Erasures that are told. */
const erasuresMax = 10_000;
const windowBytes = 4 * 1024 * 1024;

/** Follows what went. */
export class LetGo {
  readonly #means: LetGoMeans;
  /** By object: pages whose segment is not there, until an entry says that it went. */
  readonly #missing = new Map<string, Missing>();
  #missingListed = 0;
  readonly #holds = new Map<string, EntryOf<'hold'>>();
  /** Pages whose bodies went out, as entries say. */
  #prunedPages = 0;
  readonly erasures: Erasure[] = [];
  /** By segment: as the last entry of an erasure has it. */
  readonly #rewritten = new Map<string, SegmentFacts>();

  constructor(means: LetGoMeans) {
    this.#means = means;
  }

  /** The next entry about what goes, or must not. */
  take(index: number, entry: EntryOf<'hold' | 'pruned' | 'erased' | 'lake_erased'>): void {
    if (entry.t === 'hold') this.#holds.set(entry.id, entry);
    else if (entry.t === 'pruned') this.#pruned(index, entry);
    else if (entry.t === 'lake_erased') this.#checkHolds(index, entry);
    else this.#erased(index, entry);
  }

  /** A page whose segment is not there; `at`: when it was read. */
  miss(one: Break, at: string): void {
    const object = one.object ?? '';
    const missing = this.#missing.get(object) ?? { listed: [], pages: 0 };
    this.#missing.set(object, missing);
    missing.pages += 1;
    if (missing.listed.length > 0 && this.#missingListed >= missingMax) return;
    missing.listed.push({ one, at });
    this.#missingListed += 1;
  }

  /** A page as it was archived, or without what was erased since. Throws a SyntaxError. */
  async checked(entry: PageEntry, range: Uint8Array): Promise<CheckedPage> {
    try {
      return checkedPage(entry, range);
    } catch (error) {
      const versions = versionsOf(entry, await this.#means.erasures());
      if (!(error instanceof SyntaxError) || versions.length === 1) throw error;
      return await readVersion(this.#means.reader, versions, ({ entry, erased }, range) =>
        checkedPage(entry, range, erased),
      );
    }
  }

  /** True where a segment is as one of its erasures has it. */
  async isRewritten(object: string): Promise<boolean> {
    const versions = (await this.#means.erasures()).pages.get(object) ?? [];
    return await this.#isAny(
      object,
      versions.map(({ segment }) => segment),
    );
  }

  /** Tells of what is missing though no entry says that it went, and gives what else is to be said. */
  async tell(): Promise<readonly string[]> {
    for (const { listed } of this.#missing.values()) {
      for (const { one, at } of listed) this.#means.found(one, at);
    }
    const remarks: string[] = [];
    if (this.#prunedPages > 0) {
      remarks.push(
        `the bodies of ${this.#prunedPages} pages went, as entries say; their hashes prove what they were`,
      );
    }
    for (const [object, facts] of this.#rewritten) {
      if (await this.#isAny(object, [facts])) continue;
      if ((await this.#means.reader.store.facts(object)) === null) continue;
      remarks.push(
        `${object} still has what entries say is erased: that is not carried out yet, or an older copy was put back`,
      );
    }
    return remarks;
  }

  #pruned(index: number, { object, first, last }: EntryOf<'pruned'>): void {
    const { listed = [], pages = 0 } = this.#missing.get(object) ?? {};
    this.#prunedPages += pages;
    this.#missingListed -= listed.length;
    this.#missing.delete(object);
    this.#checkHolds(index, { first, last, object });
  }

  #erased(index: number, { at, page, records, reason, segment }: EntryOf<'erased'>): void {
    const hashes = records.map(({ sha256 }) => sha256);
    if (this.erasures.length < erasuresMax) {
      this.#rewritten.set(page.segment, segment);
      this.erasures.push({ index, at, page: page.index, records: hashes, reason });
    }
    const time = page.fetched_at;
    this.#checkHolds(index, { first: time, last: time, object: page.segment });
  }

  #checkHolds(
    index: number,
    { first, last, object }: Pick<EntryOf<'pruned'>, 'first' | 'last' | 'object'>,
  ): void {
    const times = { first: Date.parse(first), last: Date.parse(last) };
    for (const hold of this.#holds.values()) {
      if (!isHeld(hold, times)) continue;
      const what = `it went though the hold ${hold.id} keeps it`;
      this.#means.found({ index, stream: null, seq: null, object, what });
    }
  }

  /** Reads a segment once, however many versions there are. */
  async #isAny(object: string, versions: readonly SegmentFacts[]): Promise<boolean> {
    const most = versions.reduce((max, { bytes }) => Math.max(max, bytes), 0);
    const digest = createHash('sha256');
    let bytes = 0;
    while (bytes <= most && versions.length > 0) {
      const range = { from: bytes, length: windowBytes };
      const read = await this.#means.reader.named('segment', object, range);
      if (read === null) return false;
      if (read.length === 0) break;
      digest.update(read);
      bytes += read.length;
    }
    const sha256 = digest.digest('hex');
    return versions.some((one) => one.bytes === bytes && one.sha256 === sha256);
  }
}
