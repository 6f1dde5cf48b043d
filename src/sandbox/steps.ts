// The clock of all collections. Each n-th new audit event tells of a change, and the change happens
// with it: so what changed is explained by one audit event each, the world stands still when the
// growth does, and a restarted sandbox of the same epoch stands where it stood. Steps go round the
// collections in turn; a step and an audit event name each other by arithmetic.
import type { SandboxGrowth } from './growth.ts';

/** What the clock runs on. `start` audit events existed at the epoch. */
export interface StepsPlan {
  readonly growth: SandboxGrowth;
  readonly start: number;
  /** Each so many-th audit event is a change; 0: none ever. */
  readonly every: number;
  /** How many collections take turns. */
  readonly turns: number;
  readonly now: () => number;
}

/**
 * What lived before the epoch did so at this time and these distances, the same in every run. It is
 * before any epoch of a test's clock: what is older by its step is older by its time.
 */
const FIRST_MS = Date.UTC(2025, 11, 5, 8);
const PAST_STEP_MS = 7 * 60_000;

/** Steps of each collection, counted from 0; `turn` is the collection's place. */
export class Steps {
  readonly #plan: StepsPlan;

  constructor(plan: StepsPlan) {
    this.#plan = plan;
  }

  /** How many steps a collection has made. */
  done(turn: number): number {
    const { growth, start, every, turns, now } = this.#plan;
    if (every === 0) return 0;
    const all = Math.max(0, Math.floor((growth.sizeAt(now()) - start) / every));
    return Math.max(0, Math.ceil((all - turn) / turns));
  }

  /** When a step was made; those before the epoch have their times, too. */
  timeOf(turn: number, step: number): number {
    return step < 0
      ? FIRST_MS + step * PAST_STEP_MS
      : this.#plan.growth.timeOf(this.auditIndexOf(turn, step));
  }

  /** The audit event that tells of a step. */
  auditIndexOf(turn: number, step: number): number {
    const { start, every, turns } = this.#plan;
    return start + (step * turns + turn + 1) * every - 1;
  }

  /** The step that an audit event tells of, or null. */
  reportedBy(auditIndex: number): { readonly turn: number; readonly step: number } | null {
    const { start, every, turns } = this.#plan;
    const nth = auditIndex - start + 1;
    if (every === 0 || nth <= 0 || nth % every !== 0) return null;
    const all = nth / every - 1;
    return { turn: all % turns, step: Math.floor(all / turns) };
  }
}
