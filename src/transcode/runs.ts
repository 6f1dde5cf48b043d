// Writes the lines of many records in one call, from tables of the transcoder's knowledge, as long
// as the records are simple. Invariants: a line written here equals the transcoder's; a run stops
// at the first record for which that is not certain. That record is left to the transcoder; if
// there are many, the next run is delayed.

import type { Copying } from '../contracts/index.ts';
import type { GuardCheck } from './guards.ts';
import type { Kind, KnownShape, LineBuffer, RecordSpans, TranscodedPage } from './known.ts';
import type { Learned } from './learn.ts';
import { care } from './shape-tree.ts';
import { gapBytesMax, gapKinds, type LearnedLine } from './template.ts';
import { Full, sharedMemory, type WasmMemory } from './wasm-memory.ts';

/** Maximum number of records left to the transcoder after one that was not simple. */
const pauseMax = 64;
/** Epoch milliseconds from here on have 14 digits. */
const timeEnd = 1e13;
const uint32Max = 0xffff_ffff;
const none = new Uint32Array(0);

/** Writes runs of lines for one transcoder. */
export class Runs {
  readonly #memory: WasmMemory;
  readonly #form: number;
  readonly #lineBytesMax: number;
  readonly #shapes: () => readonly KnownShape[];
  #tables: Tables | null = null;
  /** True if the whole knowledge exceeds the available memory. */
  #isTooMuch = false;
  #left = 0;
  #pause = 1;

  /** Null if nothing can be written in runs. `shapes`: all known ones. */
  static of(
    copying: Pick<Copying, 'lineBytesMax'> & { readonly form: string },
    shapes: () => readonly KnownShape[],
  ): Runs | null {
    const memory = forms.includes(copying.form) ? sharedMemory() : null;
    return memory && new Runs(memory, copying, shapes);
  }

  private constructor(
    memory: WasmMemory,
    { form, lineBytesMax }: { readonly form: string; readonly lineBytesMax: number },
    shapes: () => readonly KnownShape[],
  ) {
    this.#memory = memory;
    this.#form = forms.indexOf(form);
    this.#lineBytesMax = Math.min(lineBytesMax, uint32Max);
    this.#shapes = shapes;
  }

  /**
   * Writes lines of records from `first` on, and returns the end of each, 0 for no line; valid
   * until the next call.
   */
  write(page: TranscodedPage, places: RecordSpans, first: number, lines: LineBuffer): Uint32Array {
    if (this.#left > 0) {
      this.#left -= 1;
      return none;
    }
    const root = page.context.fetchedAt < timeEnd ? this.#root() : 0;
    const count = root === 0 ? 0 : this.#memory.load(page, places, first);
    if (count === 0) return this.#stop(none);
    const form = this.#form;
    const ends = this.#memory.run(first, { root, form, lineBytesMax: this.#lineBytesMax });
    if (ends.length > 0) lines.take(this.#memory.bytes, this.#memory.out, ends);
    const isWhole = ends.length === count || (ends.length > 0 && this.#memory.isFull);
    return isWhole ? ends : this.#stop(ends);
  }

  /** The page is released. */
  end(): void {
    this.#memory.unload();
  }

  /**
   * The next record is left to the transcoder; if there was none before it, several following ones
   * too.
   */
  #stop(ends: Uint32Array): Uint32Array {
    this.#pause = ends.length > 0 ? 1 : Math.min(pauseMax, this.#pause * 2);
    this.#left = this.#pause;
    return ends;
  }

  /** A shape, or one of its kinds, is known now. */
  add(shape: KnownShape, kind?: Kind): void {
    // Dropped tables are rebuilt with the whole knowledge when needed.
    if (!this.#tables?.isKept) return;
    const tables = this.#tables;
    this.#fit(() => (kind === undefined ? tables.addShape(shape) : tables.addKind(shape, kind)));
  }

  /** Some knowledge is or will be dropped: the uses are counted first. */
  forget(): void {
    if (this.#tables?.isKept) this.#tables.countUses();
    this.#tables = null;
    this.#isTooMuch = false;
  }

  /** Address of the first shape; 0: none. */
  #root(): number {
    if (this.#tables?.isKept) return this.#tables.root;
    if (this.#isTooMuch) return 0;
    const make = () => {
      this.#tables = new Tables(this.#memory);
      for (const shape of this.#shapes()) this.#tables.addAll(shape);
    };
    this.#isTooMuch = !this.#fit(make) && !this.#fit(make);
    return this.#isTooMuch ? 0 : (this.#tables?.root ?? 0);
  }

  /** Adds to the tables; false if there was no space, and the tables are dropped. */
  #fit(add: () => void): boolean {
    try {
      add();
      return true;
    } catch (error) {
      if (!(error instanceof Full)) throw error;
      this.#memory.clear();
      this.#tables = null;
      return false;
    }
  }
}

// The transcoder's knowledge as tables in the memory of WebAssembly, read by wasm/: numbers of four
// bytes, addresses included. Invariant: the tables contain only what is known, and for each kind all
// of its conditions.
//
//   node      piece, its length, 0 text | 1 number | 2 end, first node below, next node, shape
//   shape     count of values, leaves, buckets of kinds, uses
//   leaf      `decides`, `ask` and `isText` of a byte each, one byte; the most bytes
//   kind      next in its bucket, hash, key, its length, template, uses, lists, count of each
//   lists     (value, the most bytes); (value, another that differs); (value, cares that it has not)
//   template  count of gaps, bytes beside values; (text before, its length, gap, leaf); text, length

const asks: readonly GuardCheck[] = [
  ...(['nothing', 'path', 'integer', 'count', 'port', 'time', 'whole time', 'epoch'] as const),
  ...(['email', 'ip', 'host', 'mac'] as const),
];
/** The line forms that the module can write; the index is the form's number. */
const forms: readonly string[] = [
  ...(['cef', 'leef', 'text', 'visible json', 'json', 'record'] satisfies Copying['form'][]),
];
const buckets = 64;
const usesOfShape = 12;
const usesOfKind = 20;

/** The tables of one transcoder. */
class Tables {
  /** The first node; 0: none. */
  root = 0;
  readonly #memory: WasmMemory;
  readonly #age: number;
  readonly #shapes = new Map<KnownShape, number>();
  readonly #kinds = new Map<Kind, number>();

  constructor(memory: WasmMemory) {
    this.#memory = memory;
    this.#age = memory.age;
  }

  /** False once the memory was cleared. */
  get isKept(): boolean {
    return this.#age === this.#memory.age;
  }

  /** Adds a shape with its kinds. */
  addAll(known: KnownShape): void {
    this.addShape(known);
    for (const kind of known.kinds.values()) this.addKind(known, kind);
  }

  addShape(known: KnownShape): void {
    const { shape, leaves } = known;
    const leavesAt = this.#words(
      leaves.flatMap(({ decides, ask, isText, bytesMax }) => [
        (decides ? 1 : 0) | (asks.indexOf(ask) << 8) | (isText ? 1 << 16 : 0),
        Math.min(bytesMax, uint32Max),
      ]),
    );
    const at = this.#words([leaves.length, leavesAt, this.#memory.take(buckets * 4), 0]);
    this.#shapes.set(known, at);
    const { view } = this.#memory;
    const ends = shape.pieces.length - 1;
    /** Address of the pointer to a level's first node; 0: `root`. */
    let head = 0;
    for (const [index, piece] of shape.pieces.entries()) {
      const kind = index === ends ? 2 : shape.texts[index] === true ? 0 : 1;
      const first = head === 0 ? this.root : view.getUint32(head, true);
      let node = first;
      let last = 0;
      for (; node !== 0 && !this.#isNode(node, kind, piece); node = view.getUint32(node + 16, true))
        last = node;
      if (node === 0) {
        const found = kind === 2 ? at : 0;
        node = this.#words([this.#bytes(piece), piece.length, kind, 0, 0, found]);
        if (last !== 0) view.setUint32(last + 16, node, true);
        else if (head !== 0) view.setUint32(head, node, true);
        else this.root = node;
      }
      head = node + 12;
    }
  }

  #isNode(node: number, kind: number, piece: Uint8Array): boolean {
    const { view, bytes } = this.#memory;
    const at = view.getUint32(node, true);
    const isLike = view.getUint32(node + 8, true) === kind;
    return isLike && bytes.subarray(at, at + view.getUint32(node + 4, true)).equals(piece);
  }

  /** Adds a kind of a shape that was added. */
  addKind(known: KnownShape, kind: Kind): void {
    const { key, learned } = kind;
    const shape = this.#shapes.get(known);
    if (learned === null || shape === undefined || !isTabled(learned)) return;
    const { view, module } = this.#memory;
    const keyAt = this.#bytes(key);
    const hash = module.hashOf(keyAt, key.length);
    const lists = listsOf(learned);
    const listsAt = this.#words(lists.flat());
    const line = learned.template?.line ?? null;
    const template = line === null ? 0 : this.#template(line);
    const bucket = view.getUint32(shape + 8, true) + (hash & (buckets - 1)) * 4;
    const next = view.getUint32(bucket, true);
    const counts = lists.map(({ length }) => length / 2);
    const at = this.#words([next, hash, keyAt, key.length, template, 0, listsAt, ...counts]);
    view.setUint32(bucket, at, true);
    this.#kinds.set(kind, at);
  }

  /** Adds the uses counted here to those of shapes and kinds. */
  countUses(): void {
    const count = (known: { uses: number }, place: number) => {
      known.uses += this.#memory.view.getUint32(place, true);
      this.#memory.view.setUint32(place, 0, true);
    };
    for (const [known, at] of this.#shapes) count(known, at + usesOfShape);
    for (const [kind, at] of this.#kinds) count(kind, at + usesOfKind);
  }

  #template({ steps, after }: LearnedLine): number {
    const texts = [...steps.map(({ before }) => before), after].map((text) => Buffer.from(text));
    const gaps = steps.map(({ gap }) => [gapKinds[gap.kind], 'leaf' in gap ? gap.leaf : 0]);
    const still = texts.reduce((sum, { length }) => sum + length, 0);
    const words = texts.flatMap((text, i) => [this.#bytes(text), text.length, ...(gaps[i] ?? [])]);
    return this.#words([steps.length, still + (steps.length + 1) * gapBytesMax, ...words]);
  }

  #bytes(bytes: Uint8Array): number {
    const at = this.#memory.take(bytes.length);
    this.#memory.bytes.set(bytes, at);
    return at;
  }

  #words(words: readonly number[]): number {
    const at = this.#memory.take(words.length * 4);
    for (const [i, word] of words.entries()) this.#memory.view.setInt32(at + i * 4, word | 0, true);
    return at;
  }
}

/** Whether tables can express all conditions and the form of the line. */
function isTabled({ template, together }: Learned): boolean {
  const hasSeconds = template?.line?.steps.some(({ gap }) => gap.kind === 'seconds') ?? false;
  return together.length === 0 && !hasSeconds;
}

/** The three lists of pairs described above. */
function listsOf({ bytesMax, distinct, written, texts }: Learned): readonly number[][] {
  const bounded = bytesMax.flatMap((most, leaf) => (most <= uint32Max ? [leaf, most] : []));
  const careless = [
    ...written.flatMap((leaf) => [leaf, care.escape | care.mark]),
    ...texts.flatMap(({ leaf, as }) => [
      leaf,
      as === 'plain' ? care.escape : care.escape | care.high | care.mark,
    ]),
  ];
  return [bounded, [...distinct], careless];
}
