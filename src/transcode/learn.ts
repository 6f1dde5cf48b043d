// Learns how records of one shape become a line: the copied values are replaced by sentinels, the
// record goes through normaliser and format, and the position of a sentinel in the line is the
// position of the value. So mapping and format remain the only definition of a line. Invariant: a
// learned template is valid for every record of the shape with the same deciding values and guard
// answers. Therefore each property that the format inspects becomes a guard, or the value becomes a
// deciding one; if neither is certain, nothing is learned.

import type {
  Copying,
  Event,
  Look,
  PageContext,
  ParsedRecord,
  PieceCopying,
  TextLook,
} from '../contracts/index.ts';
import type { Normalise } from '../normalise/index.ts';
import { type GuardCheck, implies, type ShapeLeaf } from './guards.ts';
import { itemsOf } from './items.ts';
import { MessageTemplate } from './message.ts';
import type { RecordShape } from './record-shape.ts';
import { fetchedAtOf, Gaps, type SentinelSet, sentinelOf, uidOf } from './sentinels.ts';
import { type Conditions, type LearnedLine, type LineTemplate, TextTemplate } from './template.ts';

/** The selection of records, and the parts of their events to remove. */
export interface Choosing {
  /** Event paths that decide the selection, including everything below them. */
  readonly seen: readonly (readonly string[])[];
  readonly redacts: boolean;
  /** The event to write; null: not selected; undefined: unknown. */
  choose(event: Event): Event | null | undefined;
}

/** The inputs of a line. */
export interface Making {
  readonly normalise: Normalise;
  readonly copying: Copying | PieceCopying;
  /** Default: all records are written. */
  readonly choosing?: Choosing | undefined;
  /** Of the records' pages, except for the read time. */
  readonly context: PageContext;
}

/** A record whose line is to be learned. */
export interface SampleRecord {
  readonly shape: RecordShape;
  readonly leaves: readonly ShapeLeaf[];
  /** The source text of each value, and the answer of its guard. */
  readonly values: readonly Buffer[];
  readonly answers: readonly number[];
}

/** How lines of one kind are written, and the conditions on the values. */
export interface Learned extends Conditions {
  /** Null: not selected, so no line. */
  readonly template: LineTemplate | null;
}

/**
 * Returns the template; or leaves with stricter guards than known; or null: nothing can be learned.
 */
export function learn(
  sample: SampleRecord,
  making: Making,
): Learned | { leaves: readonly ShapeLeaf[] } | null {
  const one = lineOf(sample, making, 0);
  const two = lineOf(sample, making, 1);
  if (one === null || two === null) return null;
  const leaves = [...sample.leaves];
  const bytesMax = leaves.map(() => Number.POSITIVE_INFINITY);
  const distinct: number[] = [];
  const texts: { leaf: number; as: TextLook }[] = [];
  const together = one.looks.filter(({ as }) => as === 'together').map((look) => sumOf(look, one));
  let isMore = false;
  for (const look of one.looks) {
    const leaf = one.leafOf(look.value);
    const rival = one.leafOf(look.rival);
    if (leaf !== null) {
      if (isTextLook(look.as)) texts.push({ leaf, as: look.as });
      bytesMax[leaf] = Math.min(bytesMax[leaf] ?? 0, look.bytesMax);
      const known = leaves[leaf];
      const needed = known && neededOf(known, look, sample.values[leaf]);
      if (needed !== undefined && needed !== known) {
        leaves[leaf] = needed;
        isMore = true;
      }
    }
    // It is compared with nothing, or with itself.
    if (look.rival === undefined || leaf === rival) continue;
    const pair = [leaf, rival].filter((one) => one !== null);
    // One time can be written in several ways.
    const isRewritten = one.isRewritten(look.value) || one.isRewritten(look.rival);
    if (pair.length === 2 && !isRewritten) distinct.push(...pair);
    else for (const at of pair) leaves[at] = { ...(leaves[at] as ShapeLeaf), decides: true };
    isMore ||= pair.some((at) => leaves[at]?.decides);
  }
  if (isMore) return { leaves };
  if (one.line?.text !== two.line?.text) return null;
  const written = making.copying.form === 'leef' ? [...new Set(distinct)] : [];
  const template = one.line?.template() ?? null;
  return { template, bytesMax, together, distinct, written, texts };
}

/**
 * The minimum guard of a value with this inspected property, and the guards that can be raised to
 * it.
 */
const needs: Readonly<
  Partial<
    Record<
      Look['as'],
      { ask: GuardCheck; from: readonly GuardCheck[]; like: RegExp; isText: boolean }
    >
  >
> = {
  address: {
    ask: 'ip',
    from: ['nothing'],
    like: /^(\d+\.){3}\d+$|^[\da-f]*:[\da-f:]+$/i,
    isText: true,
  },
  mac: { ask: 'mac', from: ['nothing'], like: /^.{2}:.{2}:.{2}:.{2}:.{2}:.{2}$/, isText: true },
  integer: { ask: 'integer', from: ['nothing'], like: /^-?\d{1,15}$/, isText: false },
  count: { ask: 'count', from: ['nothing', 'integer'], like: /^\d{1,15}$/, isText: false },
  port: { ask: 'port', from: ['nothing', 'integer', 'count'], like: /^\d{1,5}$/, isText: false },
};

/** Values that are inspected together: a part that is no leaf has the same length each time. */
function sumOf({ value, bytesMax }: Look, { leafOf }: SampleLine): Conditions['together'][number] {
  const values = (value as readonly string[]).map((text) => ({ text, leaf: leafOf(text) }));
  const still = values.map(({ text, leaf }) => (leaf === null ? Buffer.byteLength(text) : 0));
  return {
    leaves: values.flatMap(({ leaf }) => leaf ?? []),
    bytesMax: still.reduce((left, bytes) => left - bytes, bytesMax),
  };
}

function isTextLook(as: Look['as']): as is TextLook {
  return as === 'line' || as === 'plain';
}

/** The minimum guard of a value with this inspected property. */
function neededOf(leaf: ShapeLeaf, { as }: Look, value: Buffer | undefined): ShapeLeaf {
  if (as === 'text' || isTextLook(as)) return leaf;
  const need = needs[as];
  const { ask, isText } = leaf;
  if (need === undefined) return { ...leaf, decides: true };
  if (ask === need.ask || implies[ask]?.includes(need.ask)) return leaf;
  // A number in a text passes every test for numbers.
  const isKind = need.isText === isText || ask === 'integer' || ask === 'count';
  if (need.from.includes(ask) && isKind && need.like.test(value?.toString() ?? ''))
    return { ...leaf, ask: need.ask };
  return { ...leaf, decides: true };
}

/** A written line with its gaps: as text, for comparison, and its template. */
interface Written {
  readonly text: string;
  template(): LineTemplate;
}

/** A line with sentinels. */
interface SampleLine {
  /** Null: none. */
  readonly line: Written | null;
  readonly looks: readonly Look[];
  /** The leaf of this sentinel. */
  leafOf(value: unknown): number | null;
  /** True if this is the milliseconds form of a time that the record writes in another form. */
  isRewritten(value: unknown): boolean;
}

function lineOf(sample: SampleRecord, making: Making, set: SentinelSet): SampleLine | null {
  const { shape, leaves, values, answers } = sample;
  const { normalise, copying, choosing, context } = making;
  const sentinels = leaves.map((leaf, index) =>
    leaf.decides ? null : sentinelOf(leaf, answers[index] ?? 0, index, set),
  );
  const raw = Buffer.concat(
    shape.pieces.flatMap((piece, index) => {
      const sentinel = sentinels[index];
      return [piece, sentinel ? Buffer.from(sentinel.text) : (values[index] ?? Buffer.alloc(0))];
    }),
  );
  const event = eventOf(raw, { ...context, fetchedAt: fetchedAtOf(set) }, uidOf(set), normalise);
  const isBeside = copying.form === 'record' || copying.form === 'protobuf';
  const gaps = new Gaps(sentinels, set, isBeside ? raw.toString() : null);
  const chosen = choosing === undefined ? event : choosing.choose(event);
  if (chosen === undefined) return null;
  const line = chosen && writtenOf(chosen, copying, gaps);
  if (line === undefined) return null;
  const byText = new Map(sentinels.flatMap((one, i) => (one === null ? [] : [[one.text, i]])));
  const byTime = new Map(sentinels.map((one, i) => [String(one?.time), i]));
  byTime.delete(String(Number.NaN));
  byTime.delete(String(undefined));
  const isText = (value: unknown) => typeof value === 'string' || typeof value === 'number';
  const leafOf = (value: unknown) => {
    if (!isText(value)) return null;
    const text = String(value);
    return byText.get(text) ?? byTime.get(text) ?? null;
  };
  const seen = choosing?.seen.flatMap((place) => valuesAt(event.ocsf, place)) ?? [];
  // A value that is not the record's, such as the uid, differs between equal records.
  const isHidden = (value: unknown) =>
    leafOf(value) === null && gaps.stepsOf(String(value)).steps.length > 0;
  if (seen.some(isHidden)) return null;
  return {
    line,
    looks: [...seen.map(decisive), ...((chosen && copying.looks?.(chosen)) ?? [])],
    leafOf,
    isRewritten: (value) => !byText.has(String(value)) && byTime.has(String(value)),
  };
}

function decisive(value: unknown): Look {
  return { value, as: 'other', bytesMax: Number.POSITIVE_INFINITY, rival: undefined };
}

/** Undefined: it cannot be written with gaps. */
function writtenOf(event: Event, copying: Making['copying'], gaps: Gaps): Written | undefined {
  if (copying.form === 'protobuf') {
    const items = itemsOf(copying.write(event), gaps);
    return { text: JSON.stringify(items), template: () => new MessageTemplate(items) };
  }
  const { form } = copying;
  const line = gaps.stepsOf(copying.write(event));
  if (form === 'record' && line.steps.some(({ gap }) => gap.kind === 'value')) return undefined;
  if (bytesOfLongest(line) > TextTemplate.stillMax) return undefined;
  return { text: JSON.stringify(line), template: () => new TextTemplate(line, form) };
}

function bytesOfLongest({ steps, after }: LearnedLine): number {
  const still = [...steps.map(({ before }) => before), after];
  return Math.max(...still.map((text) => Buffer.byteLength(text)));
}

/** All texts and numbers at a path and below it. */
function valuesAt(value: unknown, [name, ...below]: readonly string[]): unknown[] {
  if (typeof value !== 'object' || value === null) return [value];
  const members = value as Readonly<Record<string, unknown>>;
  if (name === undefined) return Object.values(members).flatMap((one) => valuesAt(one, []));
  return Object.hasOwn(members, name) ? valuesAt(members[name], below) : [];
}

function eventOf(raw: Buffer, context: PageContext, uid: Buffer, normalise: Normalise): Event {
  const { source, stream, kind } = context;
  const hex = uid.toString('hex');
  const ocsf = normalise(JSON.parse(raw.toString()) as ParsedRecord, hex, context);
  return { uid: hex, source, stream, kind, context, offset: 0, raw, ocsf };
}
