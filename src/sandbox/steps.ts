// The clock of all collections. Each n-th new audit event reports a change, and the change happens with it. So each
// change has one audit event, nothing changes while the list does not grow, and a restarted sandbox with the same epoch
// has the same state. The collections take steps in turn; step and audit event are computed from each other.
import type { SandboxGrowth } from './growth.ts';

/** The parameters of the clock. `start` audit events existed at the epoch. */
export interface StepsPlan {
  readonly growth: SandboxGrowth;
  readonly start: number;
  /** Each n-th audit event is a change; 0: none. */
  readonly every: number;
  /** Number of collections that take turns. */
  readonly turns: number;
  readonly now: () => number;
}

/**
 * Time and distance of events before the epoch, the same in every run. It is before any test's epoch, so an earlier
 * step always has an earlier time.
 */
const FIRST_MS = Date.UTC(2025, 11, 5, 8);
const PAST_STEP_MS = 7 * 60_000;

/** Steps of each collection, counted from 0; `turn` is the collection's number. */
export class Steps {
  readonly #plan: StepsPlan;

  constructor(plan: StepsPlan) {
    this.#plan = plan;
  }

  /** Number of steps of a collection. */
  done(turn: number): number {
    const { growth, start, every, turns, now } = this.#plan;
    if (every === 0) return 0;
    const all = Math.max(0, Math.floor((growth.sizeAt(now()) - start) / every));
    return Math.max(0, Math.ceil((all - turn) / turns));
  }

  /** The time of a step, also before the epoch. */
  timeOf(turn: number, step: number): number {
    return step < 0
      ? FIRST_MS + step * PAST_STEP_MS
      : this.#plan.growth.timeOf(this.auditIndexOf(turn, step));
  }

  /** The audit event that reports a step. */
  auditIndexOf(turn: number, step: number): number {
    const { start, every, turns } = this.#plan;
    return start + (step * turns + turn + 1) * every - 1;
  }

  /** The step that an audit event reports, or null. */
  reportedBy(auditIndex: number): { readonly turn: number; readonly step: number } | null {
    const { start, every, turns } = this.#plan;
    const nth = auditIndex - start + 1;
    if (every === 0 || nth <= 0 || nth % every !== 0) return null;
    const all = nth / every - 1;
    return { turn: all % turns, step: Math.floor(all / turns) };
  }
}
