// Finds the sentinels in a text that the format wrote: their positions are the gaps for the values.

import { fetchedAtOf, type Sentinel, type SentinelSet, uidOf } from './sentinels.ts';
import type { LearnedLine, TemplateGap, TemplateStep } from './template.ts';
import { clockText, secondsText } from './values.ts';

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
