// The required reports about each parent, and whether they were made. The rule:
//
//   every entry of a timeline once, and the state of each object whenever it differs from the last
//   report, in the order in which they were; none that was never shown, and none of another
//   parent;
//   all of them once all has been well for a sweep and more, except for parents that were reported as lost
//   and not shown again;
//   a parent is reported as lost once for each time, and only one that is rejected while others are not;
//   a violation if an immutable timeline changed, and nowhere else;
//   an object that changes no more is requested no more.

import type { Parent } from './server.ts';
import type { Traits } from './traits.ts';

/** The most requests of a finished object: it was noticed once more. */
const asksWhenDoneMax = 2;
/** A shorter rejection need not be reported. */
const lastingMs = 5_000;

/** What came of one parent. */
interface ParentOutcome {
  readonly texts: string[];
  lost: number;
}

/** Watches one world. */
export class Oracle {
  readonly findings: string[] = [];
  readonly #traits: Traits;
  readonly #parents: ReadonlyMap<string, Parent>;
  readonly #reported = new Map<string, ParentOutcome>();
  #violations = 0;

  constructor(traits: Traits, parents: ReadonlyMap<string, Parent>) {
    this.#traits = traits;
    this.#parents = parents;
  }

  /** Takes a record as it is held. */
  take(text: string, { kind, parent }: { kind: string; parent: string | undefined }): void {
    if (kind === 'condition') {
      const { condition, details } = JSON.parse(text);
      if (condition === 'integrity_violation') this.#violations += 1;
      if (condition === 'source.parent_lost') this.#takeLost(String(details?.parent));
      return;
    }
    const record = JSON.parse(text) as { parent: string };
    const reported = this.#toldOf(record.parent);
    if (parent !== record.parent) this.findings.push(`held as of ${parent}: ${text}`);
    if (this.#parents.get(record.parent)?.shown.has(text) !== true) {
      this.findings.push(`never was: ${text}`);
    }
    const isAgain =
      this.#traits.of === 'list' ? reported.texts.includes(text) : reported.texts.at(-1) === text;
    if (isAgain) this.findings.push(`told again: ${text}`);
    reported.texts.push(text);
  }

  /** Looks at what may not be at any time. */
  look(): void {
    // What was answered last may not be held.
    if (this.#traits.crash > 0 || this.#traits.trouble > 0) return;
    for (const { id, asksWhenDone } of this.#parents.values()) {
      if (asksWhenDone > asksWhenDoneMax) this.findings.push(`asked though it is done: ${id}`);
    }
  }

  /** The end, long after anything went wrong. `isWell`: the polls were done at last. */
  finish(isWell: boolean): void {
    if (!isWell) this.findings.push('polls fail though all is well');
    for (const parent of this.#parents.values()) {
      if (parent.status !== null || !parent.isNoticed) continue;
      const { texts } = this.#toldOf(parent.id);
      const owed = this.#traits.of === 'list' ? parent.texts : parent.texts.slice(-1);
      for (const text of owed) {
        // What is called immutable is read once: a version that was not shown then is not owed.
        const isUnseen = this.#traits.immutable && !parent.shown.has(text);
        const isBent = isUnseen && parent.shown.has(text.replace('as it was', 'rewritten'));
        if (!isBent && !texts.includes(text)) this.findings.push(`lost: ${text}`);
      }
      if (this.#traits.of === 'object' && texts.at(-1) !== parent.texts.at(-1)) {
        this.findings.push(`not as it is at the end: ${parent.id}`);
      }
      const places = texts.map((text) => parent.texts.indexOf(text));
      const isOrdered = places.every((place, n) => n === 0 || place > (places[n - 1] ?? 0));
      if (this.#traits.of === 'object' && !isOrdered) {
        this.findings.push(`out of order: ${parent.id}`);
      }
    }
    const { bent, immutable } = this.#traits;
    if (this.#violations > 0 && (bent === null || !immutable)) {
      this.findings.push('a violation that never was');
    }
  }

  /** It was reported as lost as often, and was rejected at its last request. */
  isLost(id: string): boolean {
    return this.#toldOf(id).lost > 0;
  }

  #takeLost(id: string): void {
    const parent = this.#parents.get(id);
    const reported = this.#toldOf(id);
    reported.lost += 1;
    const { trouble, jumps } = this.#traits;
    if (parent?.refusedSince === null && trouble === 0 && !jumps) {
      this.findings.push(`told as lost, and answered: ${id}`);
    }
    if (reported.lost > 1 && this.#traits.trouble === 0 && this.#traits.outage === null) {
      this.findings.push(`told as lost ${reported.lost} times: ${id}`);
    }
  }

  /** One that is rejected for long while others are answered must be reported. */
  lookForLost(now: number): void {
    for (const { id, refusedSince } of this.#parents.values()) {
      if (refusedSince === null || now - refusedSince < lastingMs) continue;
      if (this.#toldOf(id).lost === 0) this.findings.push(`lost, and nobody was told: ${id}`);
    }
  }

  #toldOf(id: string): ParentOutcome {
    const reported = this.#reported.get(id) ?? { texts: [], lost: 0 };
    this.#reported.set(id, reported);
    return reported;
  }
}
