// Manifests of completeness against the entries that they are a view of: each is made again, and has to be what its entry
// names and what stands in its place. What must stay true: once an entry was lost nothing is said of a manifest but
// whether it is the one that was entered; the loss is told where it is.

import { hash } from 'node:crypto';
import { followDays, isOf, noDays } from '../days.ts';
import type { Entry, EntryOf } from '../entries.ts';
import { dayPath, encodeDay } from '../manifests.ts';
import type { ArchiveReader } from '../reader.ts';
import type { Break } from './findings.ts';

/** What manifests are checked with. */
export interface DayDeps {
  readonly reader: ArchiveReader;
  /** True for pages read at such times. */
  readonly isAsked: (first: string, last: string) => boolean;
  readonly found: (one: Break) => unknown;
}

/** Makes the days again, entry by entry. */
export class DayChecks {
  readonly #deps: DayDeps;
  readonly #days = noDays();
  /** False once an entry was lost: nobody knows which days it was of. */
  #isWhole = true;

  constructor(deps: DayDeps) {
    this.#deps = deps;
  }

  /** An entry that is not there. */
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
