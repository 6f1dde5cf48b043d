// Results as JSON, for charts and for comparing one day with another. They say when and on what they were measured, and nothing
// else of the machine.

import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';

/** When and on what something was measured. */
export interface Circumstances {
  /** Date of the measurement, `2026-09-21`. */
  readonly date: string;
  readonly cores: number;
  readonly node: string;
  readonly events: number;
  readonly rounds?: number;
  /** The load average of the last quarter of an hour, the measurement's own share in it: above the cores others were busy. */
  readonly load?: number;
}

/** Writes what was measured with so many events to `file`. */
export function writeResults(file: string, events: number, reported: object): void {
  const circumstances: Circumstances = {
    date: new Date().toISOString().slice(0, 10),
    cores: availableParallelism(),
    node: process.versions.node,
    events,
    load: Math.round(loadavg()[2] ?? 0),
  };
  writeFileSync(file, `${JSON.stringify({ ...circumstances, ...reported }, null, 2)}\n`);
}

/** What `writeResults` has written; null where there is no such file. */
export function readResults<T>(file: string): (Circumstances & T) | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Circumstances & T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
