// How a seed ended, whatever it is a world of.

/** Is told each step of a seed. */
export type Tell = (line: string) => void;

/** How a seed ended. */
export interface Verdict {
  readonly seed: number;
  readonly traits: unknown;
  /** Empty: all that was owed is held, once, and nothing that never was. */
  readonly findings: readonly string[];
  readonly requests: number;
  readonly records: number;
  readonly crashes: number;
}
