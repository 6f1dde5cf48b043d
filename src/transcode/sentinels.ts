// Sentinel values substituted for the real ones while a template is recorded: each is unique in its
// line, passes the guard that the real value passed, and is recognised in the format's output.

import { parseTime } from '../normalise/index.ts';
import { isNot, type ShapeLeaf } from './guards.ts';
import type { LearnedLine, TemplateGap, TemplateStep } from './template.ts';
import { clockText, secondsText } from './values.ts';

/** The sentinel of a value: its form in the record, and its form in a line. */
interface Sentinel {
  readonly text: string;
  /** Epoch milliseconds if it is a time. */
  readonly time: number;
}

/** Two disjoint sets, so that text common to both lines is not a coincidence. */
export type SentinelSet = 0 | 1;

/** The sentinel for a shape's value with this index and this guard answer. */
export function sentinelOf(
  { ask, isText }: Pick<ShapeLeaf, 'ask' | 'isText'>,
  answer: number,
  index: number,
  set: SentinelSet,
): Sentinel {
  const isNumber = !isText || (areNumbers.has(ask) && answer !== isNot);
  const text = isNumber ? numberLike(ask, answer, index, set) : textLike(ask, answer, index, set);
  return { text, time: answer === isNot ? Number.NaN : timeOf(ask, text) };
}

const areNumbers: ReadonlySet<ShapeLeaf['ask']> = new Set(['integer', 'count', 'port']);

function timeOf(ask: ShapeLeaf['ask'], text: string): number {
  if (ask === 'epoch') return parseTime(Number(text));
  return ask === 'time' || ask === 'whole time' ? parseTime(text) : Number.NaN;
}

function numberLike(
  ask: ShapeLeaf['ask'],
  answer: number,
  index: number,
  set: SentinelSet,
): string {
  const small = (set === 0 ? 41_003 : 53_017) + index * 37;
  if (ask === 'port' || answer === isNot) return String(small);
  if (ask !== 'epoch') return `${set === 0 ? 73 : 6481}${small}`;
  const time = timeBases[set] + index * timeStep;
  return String(answer === 0 ? Math.floor(time / 1000) : time);
}

const timeBases = [1_911_111_111_111, 2_022_222_222_222] as const;
const timeStep = 86_543_210;

function textLike(ask: ShapeLeaf['ask'], answer: number, index: number, set: SentinelSet): string {
  const number = String(index).padStart(3, '0');
  const name = set === 0 ? `Zq${number}xK` : `wVj${number}yGh`;
  const host = set === 0 ? 'x.example' : 'yy.example';
  // Not even a host name.
  if (answer === isNot) return `${name}~`;
  switch (ask) {
    case 'email':
      return `${name}@${host}`;
    case 'path':
      return `/${name}`;
    case 'ip':
      if (answer === 1) return `2001:db8:${set === 0 ? 'a' : 'cc'}:${byteText(index)}::${set + 1}d`;
      return set === 0 ? `198.18.${index}.117` : `198.19.${index}.231`;
    case 'time':
      // Microseconds: formats write milliseconds, so a copied text differs from a converted one.
      return timeLike(index, set).replace('Z', '407Z');
    case 'whole time':
      return timeLike(index, set).replace('Z', answer === 0 ? '+00:00' : '407Z');
    case 'mac':
      return `02:${set === 0 ? '1b' : 'c7'}:5e:10:${set === 0 ? 'a3' : 'f4'}:${byteText(index)}`;
    default:
      return name;
  }
}

function timeLike(index: number, set: SentinelSet): string {
  return new Date(timeBases[set] + index * timeStep).toISOString();
}

function byteText(index: number): string {
  return index.toString(16).padStart(2, '0');
}

/** Sentinel of the page's read time. */
export function fetchedAtOf(set: SentinelSet): number {
  return set === 0 ? 1_855_555_555_555 : 2_044_444_444_444;
}

/** Sentinel of the event's uid: 32 bytes. */
export function uidOf(set: SentinelSet): Buffer {
  return Buffer.alloc(32, set === 0 ? 0xab : 0x5c);
}

// Finds the sentinels in a text that the format wrote: their positions are the gaps for the values.

/** The texts that may appear in a line, with their gaps. */
export class Gaps {
  readonly #known = new Map<string, TemplateGap>();
  readonly #pattern: RegExp;

  /** `raw`: the record, if it may appear whole. */
  constructor(sentinels: readonly (Sentinel | null)[], set: SentinelSet, raw: string | null) {
    // Tried first, so that no other match is inside it.
    if (raw !== null) this.#known.set(raw, { kind: 'record' });
    this.#known.set(uidOf(set).toString('hex'), { kind: 'uid' });
    this.#addTime(fetchedAtOf(set), -1);
    for (const [leaf, sentinel] of sentinels.entries()) {
      if (sentinel === null) continue;
      this.#known.set(sentinel.text, { kind: 'value', leaf });
      if (!Number.isNaN(sentinel.time)) this.#addTime(sentinel.time, leaf);
    }
    const texts = [...this.#known.keys()].map((one) => one.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'));
    // A number may be next to [A-Za-z], but not inside another number.
    this.#pattern = new RegExp(`(?<!\\d)(?:${texts.join('|')})(?!\\d)`, 'g');
  }

  /** The gap for a whole text or number. */
  of(value: string | number): TemplateGap | undefined {
    return this.#known.get(String(value));
  }

  /** Splits a text into constant parts and gaps. */
  stepsOf(text: string): LearnedLine {
    const steps: TemplateStep[] = [];
    let at = 0;
    for (const { 0: found, index } of text.matchAll(this.#pattern)) {
      const gap = this.#known.get(found);
      if (gap === undefined) continue;
      steps.push({ before: text.slice(at, index), gap });
      at = index + found.length;
    }
    return { steps, after: text.slice(at) };
  }

  #addTime(time: number, leaf: number): void {
    this.#known.set(String(time), { kind: 'milliseconds', leaf });
    this.#known.set(new Date(time).toISOString(), { kind: 'stamp', leaf });
    this.#known.set(clockText(time), { kind: 'clock', leaf });
    // Whole seconds may be the record's own text.
    if (time % 1000 !== 0) this.#known.set(secondsText(time), { kind: 'seconds', leaf });
  }
}
