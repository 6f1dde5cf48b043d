// Checks manifests of completeness against the entries: each manifest is rebuilt, and must equal the bytes named by its
// entry and the stored object. Invariant: after a lost entry a manifest is checked only for its entered hash; the loss
// itself is reported where it is.

import { hash } from 'node:crypto';
import { followDays, isOf, noDays } from '../days.ts';
import type { Entry, EntryOf } from '../entries.ts';
import { dayPath, encodeDay } from '../manifests.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break } from './findings.ts';

/** Dependencies of the checks. */
export interface DayDeps {
  readonly reader: ArchiveReader;
  /** True for pages read in the requested time. */
  readonly isAsked: (first: string, last: string) => boolean;
  readonly found: (one: Break) => unknown;
}

/** Rebuilds the days, entry by entry. */
export class DayChecks {
  readonly #deps: DayDeps;
  readonly #days = noDays();
  /** False once an entry was lost, because its day is unknown. */
  #isWhole = true;

  constructor(deps: DayDeps) {
    this.#deps = deps;
  }

  /** An entry that is missing. */
  lose(): void {
    this.#isWhole = false;
  }

  /** The next entry of the log. */
  async take(index: number, entry: Entry): Promise<void> {
    if (entry.t === 'manifest') await this.#check(index, entry);
    followDays(this.#days, entry);
  }

  async #check(index: number, entry: EntryOf<'manifest'>): Promise<void> {
    const { stream, day, object, sha256 } = entry;
    const { reader, found, isAsked } = this.#deps;
    const report = (what: string) => found({ index, stream, seq: null, object, what });
    const over = this.#days.over.find((one) => isOf(one, entry));
    if (this.#isWhole) {
      if (over === undefined) report('the manifest is of a day that is not over');
      else if (dayPath(over) !== object || hash('sha256', encodeDay(over), 'hex') !== sha256)
        report('the entry of the manifest differs from the pages of that day');
    }
    if (!isAsked(`${day}T00:00:00.000Z`, `${day}T23:59:59.999Z`)) return;
    try {
      const bytes = await reader.named('manifest', object);
      if (bytes === null) report('the manifest is missing');
      else if (hash('sha256', bytes, 'hex') !== sha256)
        report('the manifest differs from its entry');
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      report(error.message);
    }
  }
}
