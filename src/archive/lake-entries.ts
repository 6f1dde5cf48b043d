// Enters the lake's cuts and their objects into the log, with the pages of their events. The lake writes independently
// and at its own pace. With each checkpoint, the archive's writer looks for cuts without an entry, including those of a
// process that was killed before they were entered. Invariants: a cut is entered once the pages of its events are under
// a signed checkpoint, and in the order of names; a damaged or unreachable lake never delays the archiving of a page.

import { hash } from 'node:crypto';
import {
  ExportError,
  errorText,
  type Log as Lines,
  type Numbering,
  reachOf,
  type SinkPosition,
} from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import { cutBytesMax, signerOfCut } from './cut-signature.ts';
import type { PageEntry } from './entries.ts';
import { cutsPrefix, parseLakeCut } from './lake-cuts.ts';
import type { ArchiveLog } from './log.ts';
import { loggedEntries } from './logged.ts';
import { parseVkey } from './note.ts';
import { indexBehind } from './pages.ts';
import { readSmall } from './small-objects.ts';

/** Dependencies of the entries. */
export interface LakeSettings {
  readonly store: ObjectStore;
  readonly numbering: Numbering;
  readonly log: Lines;
}

/** Limit of cuts entered with one checkpoint. */
const cutsMax = 64;

/** Enters cuts of one archive's lake. */
export class LakeEntries {
  readonly #settings: LakeSettings;
  /** Damaged cuts that were reported. */
  readonly #damaged = new Set<string>();
  /** Cuts that wait for unreadable entries, already reported. */
  readonly #delayed = new Set<string>();

  constructor(settings: LakeSettings) {
    this.#settings = settings;
  }

  /** True if a cut has no entry yet. */
  async isBehind({ heads }: ArchiveLog): Promise<boolean> {
    for await (const { name } of this.#settings.store.list(cutsPrefix, heads.lake?.cut)) {
      if (!this.#damaged.has(name)) return true;
    }
    return false;
  }

  /** Adds entries for the cuts whose pages are signed. */
  async enter(log: ArchiveLog, now: number): Promise<void> {
    const names: string[] = [];
    for await (const { name } of this.#settings.store.list(cutsPrefix, log.heads.lake?.cut)) {
      if (!this.#damaged.has(name)) names.push(name);
      if (names.length >= cutsMax) break;
    }
    for (const name of names) {
      try {
        if (!(await this.#enter(name, log, now))) return;
      } catch (error) {
        if (!(error instanceof SyntaxError || error instanceof ExportError)) throw error;
        if (error instanceof ExportError) return;
        this.#damaged.add(name);
        const facts = { object: name, error: errorText(error) };
        const next =
          'Find the writer. The objects of this cut are no evidence; the pages are not affected.';
        this.#settings.log.warn(
          'lake_cut_rejected',
          'a cut of the lake does not match the archive; not entered',
          {
            ...facts,
            next,
          },
        );
      }
    }
  }

  /** False if the log has not reached its pages yet. */
  async #enter(object: string, log: ArchiveLog, now: number): Promise<boolean> {
    const found = await readSmall(this.#settings.store, object, cutBytesMax);
    // If it is deleted for good, the next listing does not name it.
    if (found === null) return false;
    const by = signedBy(found.body, object, log);
    const { place, objects, events: numbers, read } = parseLakeCut(found.body);
    const pages = numbers === null ? null : await this.#readPages(object, numbers, place, log);
    if (pages === undefined) return false;
    const { spool, epochs } = this.#settings.numbering;
    // From a lost state: its numbers belong to no page any more.
    const isLost = place.spool !== spool || reachOf(place, { spool, epochs }).ahead;
    if (pages !== null && !pages.isWhole && !isLost) return false;
    const events = objects.reduce((sum, { rows }) => sum + rows, 0);
    const isProven = pages?.entries != null && pages.forked === 0 && pages.events >= events;
    const [first = now, last = now] = read ?? [];
    log.append({
      ...{ t: 'lake_cut', at: timeText(now), object, bytes: found.body.length },
      ...{ sha256: hash('sha256', found.body), objects: objects.length, events },
      numbers: numbers === null ? [0, 0] : [...numbers],
      entries: isProven ? pages.entries : null,
      absent: isProven ? pages.events - events : 0,
      ...{ first: timeText(first), last: timeText(last) },
      ...(by !== undefined && { by }),
    });
    for (const one of objects) log.append({ t: 'lake', ...one });
    return true;
  }

  /** As `#pagesOf`; undefined if the log's own entries cannot be read now, which is no flaw of the cut. */
  async #readPages(
    object: string,
    numbers: readonly [number, number],
    place: SinkPosition,
    log: ArchiveLog,
  ) {
    try {
      return await this.#pagesOf(numbers, place, log);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      if (this.#delayed.has(object)) return undefined;
      this.#delayed.add(object);
      this.#settings.log.warn(
        'lake_cut_delayed',
        'a cut of the lake waits until entries of the archive can be read',
        {
          ...{ object, error: error.message },
          next: 'Verify the archive. The next checkpoint tries again; the pages are not affected.',
        },
      );
      return undefined;
    }
  }

  /** The pages under the newest checkpoint with events of these numbers. */
  async #pagesOf(
    numbers: readonly [number, number],
    { spool, epoch }: SinkPosition,
    { heads: { lake }, reader }: ArchiveLog,
  ) {
    const { numbering } = this.#settings;
    const { size } = reader.head;
    const index = lake?.index ?? (await indexBehind(reader, size, [epoch, numbers[0]]));
    let known = lake?.spool ?? null;
    const none = { entries: null as [number, number] | null, events: 0, isWhole: false, forked: 0 };
    let pages = { ...none };
    for await (const { index: at, entry } of loggedEntries(reader, size, index)) {
      if (entry.t === 'start') {
        if (known !== null && known !== entry.spool) pages = { ...none };
        known = entry.spool;
      }
      if (entry.t !== 'page' || (known !== null && known !== spool)) continue;
      const [of, next] = entry.place;
      const own = eventsWithin(entry, numbers);
      // A restored state assigns numbers again: these belong to the earlier fork.
      const isForked = reachOf({ spool, epoch: of, next }, numbering).ahead;
      if (isForked) {
        if (own.to > own.from) pages.forked += 1;
        continue;
      }
      if (own.to > own.from) {
        pages.entries = [pages.entries?.[0] ?? at, at];
        pages.events += own.to - own.from;
      }
      pages.isWhole = next >= numbers[1];
      if (pages.isWhole) break;
    }
    return pages;
  }
}

/**
 * The vkey that has signed a cut: the log's present key, or the signer of the last entered cut. Undefined for an
 * unsigned cut in an archive of an older version. Throws a SyntaxError for any other.
 */
function signedBy(
  bytes: Uint8Array,
  object: string,
  { heads, deps }: ArchiveLog,
): string | undefined {
  const before = heads.lake?.by ?? heads.key;
  const keys = [...new Set([heads.key, before])].map(parseVkey);
  const { origin, archive } = deps;
  const signer = signerOfCut(bytes, { origin, archive, object }, keys);
  if (signer !== null) return signer.vkey;
  if (!deps.hasSignedCuts && heads.lake?.by === undefined) return undefined;
  throw new SyntaxError('the archive’s key has not signed it');
}

/** The indices of a page's events in a range of numbers, its end excluded. */
export function eventsWithin(
  { kept, place: [, until] }: Pick<PageEntry, 'kept' | 'place'>,
  [from, to]: readonly [number, number],
): { readonly from: number; readonly to: number } {
  const first = until - kept;
  return { from: Math.max(from - first, 0), to: Math.min(to, until) - first };
}
