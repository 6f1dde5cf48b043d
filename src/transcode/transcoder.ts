// Entry point of the package: writes lines from the records' own bytes, without parsing them, for
// records of a known shape. A record that is unknown or not certain is left to the format
// (send/page-encoder.ts), and learned from. Invariant: a line equals the format's output byte for
// byte. Shapes and kinds are cached up to a bound, the least used dropped first; learning is
// limited by a credit that records earn, and a transcoder rests while few records can be written
// (rest.ts), so that records which are never alike cost little more than without transcoding.

import { isUtf8 } from 'node:buffer';
import { guardResult, leafAt, type ShapeLeaf, timeMin } from './guards.ts';
import type { Kind, KnownShape, LineBuffer, RecordSpans, TranscodedPage } from './known.ts';
import { learn, type Making, type SampleRecord } from './learn.ts';
import { leavesMax, shapeOf } from './record-shape.ts';
import { Rest } from './rest.ts';
import { Runs } from './runs.ts';
import { ShapeTree } from './shape-tree.ts';
import { conditionsHold } from './template.ts';
import type { Work } from './values.ts';

const shapesMax = 64;
const kindsMax = 256;
/** In records: the cost of learning, and the maximum credit. */
const shapeCost = 16;
const kindCost = 48;
const creditMax = 1024;

/** Number of records written here, and of the others by reason. */
export interface TranscodeCounts {
  written: number;
  /** Of a shape, or with deciding values, that are not known (yet). */
  unknown: number;
  /** With a value that cannot be copied. */
  refused: number;
}

/**
 * The result for a record: its line is written, it is not selected, or it is left to the format.
 */
export type LineFate = 'written' | 'left out' | 'missed';

/** The credit for learning, in records; shared by all transcoders. */
export class Credit {
  shapes: number = creditMax;
  kinds: number = creditMax;

  /** Adds credit for records that arrived. */
  earn(records: number): void {
    this.shapes = Math.min(creditMax, this.shapes + records);
    this.kinds = Math.min(creditMax, this.kinds + records);
  }
}

const none = new Uint32Array(0);

/** Writes the lines of records of one stream in one format. */
export class Transcoder {
  readonly #making: Making;
  readonly #tally: TranscodeCounts;
  readonly #tree = new ShapeTree<KnownShape>();
  #shapes: KnownShape[] = [];
  #kindCount = 0;
  readonly #credit: Credit;
  readonly #runs: Runs | null;
  #page: TranscodedPage | null = null;
  #work: Work | null = null;
  #isCopied = false;
  readonly #rest = new Rest();
  #tried = 0;
  #written = 0;
  readonly #times = new Float64Array(leavesMax);
  readonly #answers = new Int8Array(leavesMax);

  /** `tally`: counts the records; `credit`: limits learning. */
  constructor(making: Making, tally: TranscodeCounts, credit: Credit) {
    this.#making = making;
    this.#tally = tally;
    this.#credit = credit;
    this.#runs = Runs.of(making.copying, () => this.#shapes);
  }

  get normalise(): Making['normalise'] {
    return this.#making.normalise;
  }

  /** The following records are from this page. */
  begin(page: TranscodedPage): void {
    const { body, uids, context } = page;
    this.#page = page;
    const { buffer, byteOffset, byteLength } = body;
    this.#work = {
      bytes: Buffer.from(buffer, byteOffset, byteLength),
      view: new DataView(buffer, byteOffset, byteLength),
      uids,
      fetchedAt: context.fetchedAt,
      starts: this.#tree.starts,
      ends: this.#tree.ends,
      cares: this.#tree.cares,
      times: this.#times,
      ...{ from: 0, to: 0, allCares: 0 },
    };
    // Invalid UTF-8 is replaced when it is parsed.
    this.#isCopied = !this.#rest.isOn && context.fetchedAt >= timeMin && isUtf8(body);
  }

  /** The page is released. */
  end(): void {
    this.#rest.count(this.#tried, this.#written);
    this.#tried = 0;
    this.#written = 0;
    this.#page = null;
    this.#work = null;
    this.#runs?.end();
  }

  /**
   * Writes lines of consecutive simple records from `first` on, and returns the end of each, 0 for
   * no line. Valid until the next call.
   */
  writeMany(places: RecordSpans, first: number, lines: LineBuffer): Uint32Array {
    if (this.#page === null || this.#runs === null || !this.#isCopied) return none;
    const ends = this.#runs.write(this.#page, places, first, lines);
    this.#credit.earn(ends.length);
    this.#tried += ends.length;
    this.#wrote(ends.length);
    return ends;
  }

  /** Writes the line of the record at `[start, end)` of the page's body. */
  write(start: number, end: number, index: number, lines: LineBuffer): LineFate {
    const work = this.#work;
    this.#tried += 1;
    this.#credit.earn(1);
    if (this.#rest.isOn) return this.#miss('unknown');
    if (work === null || !this.#isCopied) return this.#miss('refused');
    const known = this.#tree.find(work.bytes, work.view, start, end);
    if (known === null) {
      this.#learnShape(work, start, end);
      return this.#miss('unknown');
    }
    known.uses += 1;
    work.from = start;
    work.to = end;
    const hash = this.#keyOf(known, work);
    if (hash === -1) return this.#miss('refused');
    const kind = known.kinds.get(hash);
    if (kind === undefined) {
      this.#learnKind(known, work, hash);
      return this.#miss('unknown');
    }
    kind.uses += 1;
    const { learned } = kind;
    if (learned === null || !this.#isKind(kind, known, work) || !conditionsHold(learned, work)) {
      return this.#miss('refused');
    }
    if (learned.template === null) {
      this.#wrote(1);
      return 'left out';
    }
    const { view, at } = lines.room(learned.template.roomFor(work));
    const to = learned.template.write(work, index * 32, view, at);
    if (to < 0 || to - at > this.#making.copying.lineBytesMax) return this.#miss('refused');
    lines.wrote(to);
    this.#wrote(1);
    return 'written';
  }

  #wrote(records: number): void {
    this.#written += records;
    this.#tally.written += records;
  }

  #miss(why: 'unknown' | 'refused'): LineFate {
    this.#tally[why] += 1;
    return 'missed';
  }

  /** A hash of the deciding values and the answers; -1 if a value must not be copied. */
  #keyOf({ leaves }: KnownShape, work: Work): number {
    const { bytes, starts, ends, cares } = work;
    const accepts = this.#making.normalise.attention?.accepts ?? (() => false);
    let hash = 0x811c9dc5;
    work.allCares = 0;
    for (let i = 0; i < leaves.length; i += 1) {
      const leaf = leaves[i] as ShapeLeaf;
      work.allCares |= cares[i] as number;
      if (leaf.decides) {
        const end = ends[i] as number;
        for (let at = starts[i] as number; at < end; at += 1) {
          hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
        }
        hash = Math.imul(hash ^ 0xff, 0x01000193);
        continue;
      }
      const answer = guardResult(leaf, i, work, accepts);
      if (answer < 0) return -1;
      this.#answers[i] = answer;
      if (answer > 0) hash = Math.imul(hash ^ i, 0x01000193);
    }
    return hash >>> 0;
  }

  /** Compares the key bytes that the hash is computed from. */
  #isKind({ key }: Kind, { leaves }: KnownShape, { bytes, starts, ends }: Work): boolean {
    let at = 0;
    for (let i = 0; i < leaves.length; i += 1) {
      if ((leaves[i] as ShapeLeaf).decides) {
        const end = ends[i] as number;
        for (let from = starts[i] as number; from < end; from += 1) {
          if (key[at] !== bytes[from]) return false;
          at += 1;
        }
        // Not a byte of UTF-8.
        if (key[at] !== 0xff) return false;
      } else if (key[at] !== this.#answers[i]) {
        return false;
      }
      at += 1;
    }
    return true;
  }

  #learnShape({ bytes }: Work, start: number, end: number): void {
    const { attention } = this.#making.normalise;
    if (attention === undefined || this.#credit.shapes < shapeCost) return;
    this.#credit.shapes -= shapeCost;
    const shape = shapeOf(bytes, start, end);
    if (shape === null) return;
    const leaves = shape.paths.map((path, i) => leafAt(path, shape.texts[i] === true, attention));
    if (this.#shapes.length >= shapesMax) this.#forgetShapes();
    const known: KnownShape = { shape, leaves, kinds: new Map(), uses: 1 };
    this.#shapes.push(known);
    this.#tree.add(shape, known);
    this.#runs?.add(known);
  }

  #learnKind(known: KnownShape, work: Work, hash: number): void {
    if (this.#credit.kinds < kindCost) return;
    this.#credit.kinds -= kindCost;
    if (this.#kindCount >= kindsMax) this.#forgetKinds();
    const values = known.leaves.map((_, i) =>
      Buffer.from(work.bytes.subarray(work.starts[i], work.ends[i])),
    );
    const answers = known.leaves.map((leaf, i) => (leaf.decides ? 0 : (this.#answers[i] ?? 0)));
    const sample: SampleRecord = { shape: known.shape, leaves: known.leaves, values, answers };
    const learned = learn(sample, this.#making);
    if (learned !== null && 'leaves' in learned) {
      // More values are inspected than known: earlier templates may be invalid.
      known.leaves = learned.leaves;
      this.#kindCount -= known.kinds.size;
      known.kinds.clear();
      this.#runs?.forget();
      return;
    }
    const key = Buffer.concat(
      known.leaves.flatMap((leaf, i) =>
        leaf.decides
          ? [values[i] ?? Buffer.alloc(0), Buffer.from([0xff])]
          : [Buffer.from([answers[i] ?? 0])],
      ),
    );
    const kind: Kind = { key, learned, uses: 1 };
    known.kinds.set(hash, kind);
    this.#runs?.add(known, kind);
    this.#kindCount += 1;
  }

  /** Drops the least used half of the shapes. */
  #forgetShapes(): void {
    this.#runs?.forget();
    this.#shapes = halfOf(this.#shapes, shapesMax / 2);
    this.#tree.clear();
    for (const known of this.#shapes) this.#tree.add(known.shape, known);
    this.#kindCount = this.#shapes.reduce((count, { kinds }) => count + kinds.size, 0);
  }

  /** Drops the least used half of the kinds. */
  #forgetKinds(): void {
    this.#runs?.forget();
    const kept = new Set(
      halfOf(
        this.#shapes.flatMap(({ kinds }) => [...kinds.values()]),
        kindsMax / 2,
      ),
    );
    for (const { kinds } of this.#shapes) {
      for (const [hash, kind] of kinds) if (!kept.has(kind)) kinds.delete(hash);
    }
    this.#kindCount = kept.size;
  }
}

/** The most used half, with counts reset, so that none stays for its past use. */
function halfOf<T extends { uses: number }>(all: readonly T[], count: number): T[] {
  const kept = all.toSorted((a, b) => b.uses - a.uses).slice(0, count);
  for (const one of kept) one.uses = 0;
  return kept;
}
