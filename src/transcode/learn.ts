// Learns how records of one shape become a line: the values that are passed on are replaced by
// stand-ins, the record goes the ordinary way, and where a stand-in turns up is where the value
// goes. The code of mapping and format stays the only truth of what a line looks like. What must
// stay true: what is learned holds for every record of the shape with the same deciding values and
// the same answers; so all that the format looks at of a value becomes a guard, or the value one
// that decides, and what cannot be told is not learned.

import type { Copying, Look } from '../contracts/copying.ts';
import type { Event, PageContext, ParsedRecord } from '../contracts/event.ts';
import type { Normalise } from '../normalise/normalise.ts';
import type { Leaf } from './guards.ts';
import type { RecordShape } from './record-shape.ts';
import { fetchedAtOf, type Sentinel, type SentinelSet, sentinelOf, uidOf } from './sentinels.ts';
import { type Gap, type LearnedLine, type Step, Template } from './template.ts';

/** What lines are made with. */
export interface Making {
  readonly normalise: Normalise;
  readonly copying: Copying;
  /** Of the records' pages, but for when they were read. */
  readonly context: PageContext;
}

/** A record whose line is to be learned. */
export interface Sample {
  readonly shape: RecordShape;
  readonly leaves: readonly Leaf[];
  /** The source text of each value, and what its guard answered. */
  readonly values: readonly Buffer[];
  readonly answers: readonly number[];
}

/** How lines of one kind are written, and what must hold of the values beyond their guards. */
export interface Learned {
  readonly template: Template;
  /** The most bytes of each value. */
  readonly bytesMax: readonly number[];
  /** Values, two and two, that must differ. */
  readonly distinct: readonly number[];
}

/** What was learned; or leaves that are more than was known of them; or null: nothing can be. */
export function learn(
  sample: Sample,
  making: Making,
): Learned | { leaves: readonly Leaf[] } | null {
  const one = lineOf(sample, making, 0);
  const two = lineOf(sample, making, 1);
  if (one === null || two === null) return null;
  const leaves = [...sample.leaves];
  const bytesMax = leaves.map(() => Number.POSITIVE_INFINITY);
  const distinct: number[] = [];
  let isMore = false;
  for (const look of one.looks) {
    const leaf = one.leafOf(look.value);
    const rival = one.leafOf(look.rival);
    if (leaf !== null) {
      bytesMax[leaf] = Math.min(bytesMax[leaf] ?? 0, look.bytesMax);
      const known = leaves[leaf];
      const needed = known && neededOf(known, look, sample.values[leaf]);
      if (needed !== undefined && needed !== known) {
        leaves[leaf] = needed;
        isMore = true;
      }
    }
    if (leaf !== null && rival !== null) distinct.push(leaf, rival);
    const alone = leaf ?? rival;
    if (look.rival === undefined || alone === null || (leaf !== null && rival !== null)) continue;
    leaves[alone] = { ...(leaves[alone] as Leaf), decides: true };
    isMore = true;
  }
  if (isMore) return { leaves };
  if (JSON.stringify(one.line) !== JSON.stringify(two.line)) return null;
  return { template: new Template(one.line, making.copying.form), bytesMax, distinct };
}

/** A value that is looked at so is at least this. */
function neededOf(leaf: Leaf, { as }: Look, value: Buffer | undefined): Leaf {
  const text = value?.toString() ?? '';
  if (as === 'text') return leaf;
  if (as === 'address' && leaf.isText) {
    if (leaf.ask === 'ipv4') return leaf;
    if (leaf.ask === 'nothing' && /^\d+\.\d+\.\d+\.\d+$/.test(text))
      return { ...leaf, ask: 'ipv4' };
  }
  if (as === 'port' && !leaf.isText) {
    if (leaf.ask === 'port') return leaf;
    if (/^\d{1,5}$/.test(text)) return { ...leaf, ask: 'port' };
  }
  return { ...leaf, decides: true };
}

/** A line of stand-ins. */
interface SampleLine {
  readonly line: LearnedLine;
  readonly looks: readonly Look[];
  /** The leaf whose stand-in this is. */
  leafOf(value: unknown): number | null;
}

function lineOf(sample: Sample, making: Making, set: SentinelSet): SampleLine | null {
  const { shape, leaves, values, answers } = sample;
  const { normalise, copying, context } = making;
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
  const isWhole = copying.form === 'record';
  const gaps = isWhole ? gapsBeside(raw, sentinels, set) : gapsBy(sentinels, set);
  const line = stepsOf(copying.write(event), gaps);
  if (isWhole && line.steps.some(({ gap }) => gap.kind === 'value')) return null;
  const longest = Math.max(...[...line.steps.map(({ before }) => before), line.after].map(bytesOf));
  if (longest > Template.stillMax) return null;
  const byText = new Map(sentinels.flatMap((one, i) => (one === null ? [] : [[one.text, i]])));
  const isText = (value: unknown) => typeof value === 'string' || typeof value === 'number';
  return {
    line,
    looks: copying.looks?.(event) ?? [],
    leafOf: (value) => (isText(value) ? (byText.get(String(value)) ?? null) : null),
  };
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text);
}

function eventOf(raw: Buffer, context: PageContext, uid: Buffer, normalise: Normalise): Event {
  const { source, stream, kind } = context;
  const hex = uid.toString('hex');
  const ocsf = normalise(JSON.parse(raw.toString()) as ParsedRecord, hex, context);
  return { uid: hex, source, stream, kind, context, offset: 0, raw, ocsf };
}

/** What each text stands for that may turn up in a line. */
function gapsBy(sentinels: readonly (Sentinel | null)[], set: SentinelSet): Map<string, Gap> {
  const gaps = new Map<string, Gap>([[uidOf(set).toString('hex'), { kind: 'uid' }]]);
  const addTime = (time: number, leaf: number) => {
    gaps.set(String(time), { kind: 'milliseconds', leaf });
    gaps.set(new Date(time).toISOString(), { kind: 'stamp', leaf });
  };
  addTime(fetchedAtOf(set), -1);
  for (const [leaf, sentinel] of sentinels.entries()) {
    if (sentinel === null) continue;
    gaps.set(sentinel.text, { kind: 'value', leaf });
    if (!Number.isNaN(sentinel.time)) addTime(sentinel.time, leaf);
  }
  return gaps;
}

/** The same where the record stands in the line whole: found first, so that nothing is within it. */
function gapsBeside(
  raw: Buffer,
  sentinels: readonly (Sentinel | null)[],
  set: SentinelSet,
): Map<string, Gap> {
  return new Map([[raw.toString(), { kind: 'record' }], ...gapsBy(sentinels, set)]);
}

function stepsOf(text: string, gaps: ReadonlyMap<string, Gap>): LearnedLine {
  const steps: Step[] = [];
  let at = 0;
  // A number may stand next to letters, yet not within another number.
  const texts = [...gaps.keys()].map((one) => one.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'));
  for (const { 0: found, index } of text.matchAll(
    new RegExp(`(?<!\\d)(?:${texts.join('|')})(?!\\d)`, 'g'),
  )) {
    const gap = gaps.get(found);
    if (gap === undefined) continue;
    steps.push({ before: text.slice(at, index), gap });
    at = index + found.length;
  }
  return { steps, after: text.slice(at) };
}
