// The end of a seed, for every kind of world.

/** Called with each step of a seed. */
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

/** One world. */
export interface World {
  readonly traits: unknown;
  readonly course: { readonly requests: number; readonly crashes: number };
  readonly oracle: { readonly findings: string[] };
  readonly records: number;
  /** Polls with all that may go wrong. */
  trouble(): Promise<void>;
  /** Polls with nothing going wrong any more, for long enough. */
  calm(): Promise<void>;
}

/** Lets a world take its course. */
export async function verdictOf(seed: number, world: World): Promise<Verdict> {
  const { traits, course, oracle } = world;
  const { findings } = oracle;
  try {
    await world.trouble();
    if (findings.length === 0) await world.calm();
  } catch (error) {
    findings.push(`the poller threw: ${(error as Error).stack}`);
  }
  const { requests, crashes } = course;
  return { seed, traits, findings, requests, records: world.records, crashes };
}
