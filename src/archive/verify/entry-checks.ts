// Checks each entry against its subject, in the order of the log: a page against its body and its stream, a segment
// against its bytes, an earlier checkpoint against the tree. Invariant: a damaged entry is reported with its index, and
// nothing is concluded from it.

import { hash } from 'node:crypto';
import { ExportError, errorText, isObject, type Json } from '../../contracts/index.ts';
import { ClockDifferences } from '../clocks.ts';
import {
  type Entry,
  type EntryOf,
  NewerEntryError,
  type PageEntry,
  parseEntry,
} from '../entries.ts';
import type { Erasures } from '../erasures.ts';
import { type NodeHashes, rootAt } from '../merkle.ts';
import { parseVkey } from '../note.ts';
import type { ProvenReader } from '../proven-reader.ts';
import type { ArchiveReader } from '../reader.ts';
import { pageRange } from '../segments.ts';
import type { StreamAccounts } from './accounts.ts';
import type { AnchorChecks } from './anchor-checks.ts';
import { StreamChains } from './chains.ts';
import { Comparisons } from './comparisons.ts';
import type { DayChecks } from './day-checks.ts';
import type { Break, ConfigChange, Report, SiblingSeen, SuccessionSeen } from './findings.ts';
import type { LakeChecks } from './lake-checks.ts';
import { releasePage, SegmentReading } from './page-bodies.ts';
import type { FoundEntry } from './proven-log.ts';
import { Removals } from './removals.ts';
import { SegmentPages } from './segment-pages.ts';
import type { LogKeys } from './signatures.ts';
import type { Strays } from './strays.ts';

/** Dependencies of the checks. */
export interface EntryDeps {
  readonly reader: ArchiveReader;
  /** Entries proven by the signed tree. */
  readonly proven: ProvenReader;
  /** True: each removed body is a break. */
  readonly nothingGone: boolean;
  /** All erasures of the log; read only if something does not match its own entry. */
  readonly erasures: () => Promise<Erasures>;
  /** Of the tree as far as it was walked. */
  readonly hashes: NodeHashes;
  readonly keys: LogKeys;
  /** Of the stored `archive.json`. */
  readonly manifestSha256: string;
  readonly accounts: StreamAccounts;
  readonly anchors: AnchorChecks;
  readonly lake: LakeChecks;
  readonly days: DayChecks;
  readonly strays: Strays;
  /** True for pages read in the requested time: bodies of others are not checked. */
  readonly isAsked: (at: string) => boolean;
  /** `at`: reading time of its page, if known. */
  readonly found: (one: Break, at?: string) => Break;
}

/** The segment of the present pages. */
interface OpenSegment {
  readonly index: number;
  /** Null if its entry is damaged. */
  readonly entry: EntryOf<'segment'> | null;
  readonly reading: SegmentReading;
  isRead: boolean;
  isBroken: boolean;
}

/** Limit of reported config changes. */
const configsMax = 10_000;
/** Checks entry by entry. */
export class EntryChecks {
  readonly #deps: EntryDeps;
  readonly #chains: StreamChains;
  readonly #segmentPages: SegmentPages;
  readonly removals: Removals;
  #segment: OpenSegment | null = null;
  pages = 0;
  records = 0;
  bodyBytes = 0;
  checkpoints = 0;
  readonly configs: ConfigChange[] = [];
  readonly successions: SuccessionSeen[] = [];
  readonly comparisons = new Comparisons();
  /** By shard. */
  readonly siblings = new Map<number, SiblingSeen>();
  work: Report['work'] = null;
  unsharded: Report['unsharded'] = null;
  readonly clocks = new ClockDifferences();
  /** The first entry of a kind that this version does not know. */
  newer: { readonly index: number; readonly what: string } | null = null;
  /** Object of the last named checkpoint. */
  lastKept: string | null = null;

  constructor(deps: EntryDeps) {
    this.#deps = deps;
    this.#chains = new StreamChains(deps.found);
    this.#segmentPages = new SegmentPages(deps.found);
    this.removals = new Removals({
      ...deps,
      cutOf: (object) => deps.lake.cutOf(object),
      keyOfLog: () => deps.keys.present,
    });
  }

  /** The next entry of the log. */
  async take({ index, leaf, bytes, isProven }: FoundEntry): Promise<void> {
    if (leaf !== null && !isProven) this.#lose(index, leaf, bytes);
    const isThere = leaf !== null && bytes !== null && isProven;
    const entry = isThere ? parsed(bytes) : null;
    if (entry === null || entry instanceof NewerEntryError) {
      this.#deps.days.lose();
      this.#deps.strays.lose();
      this.#segmentPages.lose();
    } else {
      this.#segmentPages.take(index, entry);
      await this.#deps.days.take(index, entry);
    }
    if (!isThere) return;
    if (entry instanceof NewerEntryError) {
      this.newer ??= { index, what: entry.message };
      return;
    }
    if (entry === null) {
      this.#break(index, 'the entry is none');
      return;
    }
    if ('object' in entry) this.#deps.strays.add(entry.object);
    switch (entry.t) {
      case 'page':
        this.#chains.take(index, leaf, entry);
        this.clocks.take(index, entry);
        this.#deps.lake.uncut.page(index, entry, this.#deps.isAsked(entry.fetched_at));
        return await this.#page(index, entry);
      case 'segment':
        await this.end();
        this.#open(entry.object, index, entry);
        return;
      case 'checkpoint':
        return await this.#checkpoint(index, entry);
      case 'anchor':
        return await this.#deps.anchors.take(index, entry);
      case 'start':
        this.removals.start(entry);
        this.#deps.accounts.start(entry);
        this.#deps.lake.uncut.start(entry);
        this.#shards(index, entry);
        if (entry.archive === this.#deps.manifestSha256) return;
        this.#break(index, 'archive.json differs from the entry', 'archive.json');
        return;
      case 'key':
        this.#key(index, entry);
        return;
      case 'pruned':
        this.#deps.lake.pruned(entry);
        return await this.removals.take(index, entry);
      case 'lake_erased':
        this.#deps.lake.erased(index, entry);
        return await this.removals.take(index, entry);
      case 'hold':
      case 'erased':
        return await this.removals.take(index, entry);
      case 'lake_cut':
        return await this.#deps.lake.cut(index, entry);
      case 'lake':
        return await this.#deps.lake.object(index, entry);
      case 'reconciled': {
        const { t: _, seq: __, ...compared } = entry;
        this.comparisons.take({ index, ...compared });
        return;
      }
      case 'succession':
        this.#succession(index, entry);
        return;
      case 'config':
        this.#config(index, entry);
        return;
      case 'stop':
      case 'manifest':
        return;
    }
  }

  /** Checks that need the last page of a segment. */
  async end(): Promise<void> {
    const segment = this.#segment;
    this.#segment = null;
    if (segment === null || segment.entry === null || !segment.isRead) return;
    const flaw = await segment.reading.flaw();
    // A break in one of its pages already locates the damage.
    if (flaw === null || segment.isBroken) return;
    const { object } = segment.entry;
    if (!(await this.removals.isRewritten(object))) this.#break(segment.index, flaw, object);
  }

  /** The log ends here. */
  async finish(): Promise<void> {
    this.#segmentPages.end();
    await this.end();
  }

  /** Versions without shard logs do not state their rules for requests either. */
  #shards(index: number, { at, shards, requests }: EntryOf<'start'>): void {
    if (shards !== undefined) this.work = { index, at, shards };
    this.unsharded = shards === undefined && requests !== undefined ? { index, at } : null;
  }

  #config(index: number, { at, sha256 }: EntryOf<'config'>): void {
    if (this.configs.at(-1)?.sha256 === sha256 || this.configs.length >= configsMax) return;
    this.configs.push({ index, at, sha256 });
  }

  #succession(index: number, entry: EntryOf<'succession'>): void {
    const { t: _, stream: __, seq: ___, ...facts } = entry;
    this.successions.push({ index, ...facts });
    for (const { stream, seq } of entry.streams) {
      const last = this.#chains.lastOf(stream);
      if (seq === last) continue;
      this.#break(
        index,
        `the entry names page ${seq ?? 'none'} as the last one of ${stream}, and it is ${last ?? 'none'}`,
      );
    }
  }

  #break(index: number, what: string, object: string | null = null): void {
    this.#deps.found({ index, stream: null, seq: null, object, what });
  }

  /** An entry that differs from the tree, or is missing with its bundle. */
  #lose(index: number, leaf: Buffer, bytes: Buffer | null): void {
    const { found } = this.#deps;
    const damaged = bytes === null ? null : parsed(bytes);
    const isEntry = damaged !== null && !(damaged instanceof NewerEntryError);
    const page = isEntry && damaged.t === 'page' ? damaged : null;
    const what = 'the entry is not the one that the signed tree has there';
    const at = { index, object: null, what, stream: page?.stream ?? null, seq: page?.seq ?? null };
    const reported = bytes === null ? null : found(at);
    this.#chains.lose(leaf, {
      index,
      name(stream, seq) {
        if (reported !== null) Object.assign(reported, { stream, seq });
        else found({ ...at, stream, seq, what: 'the entry is gone with its bundle' });
      },
    });
  }

  #open(object: string, index: number, entry: OpenSegment['entry']): OpenSegment {
    const reading = new SegmentReading(this.#deps.reader, object, entry);
    this.#segment = { index, entry, reading, isRead: false, isBroken: false };
    return this.#segment;
  }

  async #page(index: number, entry: PageEntry): Promise<void> {
    const { accounts, isAsked, found } = this.#deps;
    if (!isAsked(entry.fetched_at)) return;
    this.pages += 1;
    this.records += entry.kept;
    let reported: ReadonlyMap<string, string> = new Map();
    const { stream, seq, body } = entry;
    let segment = this.#segment;
    if (segment?.reading.object !== body.segment) {
      await this.end();
      segment = this.#open(body.segment, index, null);
    }
    segment.isRead = true;
    try {
      const range = await segment.reading.take(pageRange(entry));
      const page = await this.removals.checked(entry, range);
      this.bodyBytes += page.body.length;
      if (entry.conditions !== undefined) reported = messagesOf(page.records);
      releasePage(page);
    } catch (error) {
      if (error instanceof ExportError) throw error;
      segment.isBroken = true;
      const one = { index, stream, seq, object: body.segment, what: errorText(error) };
      if (segment.reading.isMissing) this.removals.miss(one, entry.fetched_at);
      else found(one);
    }
    accounts.take(index, entry, reported);
  }

  async #checkpoint(index: number, entry: EntryOf<'checkpoint'>): Promise<void> {
    const { reader, keys, hashes } = this.#deps;
    this.lastKept = entry.object;
    this.checkpoints += 1;
    for (const one of entry.siblings ?? []) {
      const { size = 0 } = this.siblings.get(one.shard) ?? {};
      if (one.size > size) this.siblings.set(one.shard, { index, ...one });
    }
    try {
      if (entry.size > index) throw new SyntaxError('the entry names a later checkpoint');
      const root = (await rootAt(entry.size, hashes)).toString('hex');
      if (root !== entry.root)
        throw new SyntaxError('the entry has another root than the tree had');
      const bytes = await reader.named('checkpoint', entry.object);
      if (bytes === null) throw new SyntaxError('the kept checkpoint is missing');
      if (hash('sha256', bytes, 'hex') !== entry.sha256) {
        throw new SyntaxError('the kept checkpoint differs from its entry');
      }
      const { size, root: signed } = keys.open(bytes);
      if (size === entry.size && Buffer.from(signed).toString('hex') === root) return;
      throw new SyntaxError('the kept checkpoint is of another tree');
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#break(index, error.message, entry.object);
    }
  }

  #key(index: number, { vkey }: EntryOf<'key'>): void {
    try {
      this.#deps.keys.add(parseVkey(vkey), index);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      this.#break(index, error.message);
    }
  }
}

function parsed(bytes: Buffer): Entry | NewerEntryError | null {
  try {
    return parseEntry(bytes);
  } catch (error) {
    if (error instanceof NewerEntryError) return error;
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** The messages of condition records, by condition. */
function messagesOf(records: readonly Uint8Array[]): ReadonlyMap<string, string> {
  return new Map(
    records.flatMap((record) => {
      const parsed = JSON.parse(Buffer.from(record).toString('utf8')) as Json;
      const { condition, message } = isObject(parsed) ? parsed : {};
      return typeof condition === 'string' && typeof message === 'string'
        ? [[condition, message] as const]
        : [];
    }),
  );
}
