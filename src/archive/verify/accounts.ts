// Totals of each stream's entries: pages, records and days, and the gaps that sluice itself has reported. A gap is no
// break: the archive correctly states which data was not available.

import type { EntryOf, PageEntry } from '../entries.ts';
import { CursorChains } from './cursors.ts';
import type { Break, ReportedGap, StreamDay, VerifiedStream } from './findings.ts';

/** Conditions that report possibly missing records, and how their end shows. */
const gapConditions: Readonly<Record<string, 'never' | 'heard' | 'answered'>> = {
  'source.gap': 'never',
  'source.gap_suspected': 'never',
  'source.paging_suspected': 'never',
  'source.parents_full': 'never',
  'source.scope_lost': 'answered',
  'source.silent': 'heard',
};

const jumpText =
  'requested with a cursor that no earlier response returned: records between may be missing';
const splitText =
  'requested with a cursor that no answer before has led to, without a reset or a rewind: another log has the pages between, or none has them';

const continuedMax = 1_000;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Totals of all streams. */
export class StreamAccounts {
  readonly #streams = new Map<string, VerifiedStream>();
  readonly #gaps: Mutable<ReportedGap>[] = [];
  readonly #cursors = new CursorChains();
  readonly #continued: string[] = [];
  /** Streams that may have pages in an earlier log. */
  readonly #unknown: string[] = [];
  readonly #found: (one: Break, at: string) => unknown;
  /** Gaps that may still end, by stream and by the kind of their end. */
  readonly #open = new Map<string, Mutable<ReportedGap>[]>();

  constructor(found: (one: Break, at: string) => unknown) {
    this.#found = found;
  }

  get streams(): readonly VerifiedStream[] {
    return [...this.#streams.values()].toSorted((a, b) => (a.stream < b.stream ? -1 : 1));
  }

  get gaps(): readonly ReportedGap[] {
    return this.#gaps;
  }

  /** Streams whose beginning is in another log, by their first entries: at most a thousand. */
  get continued(): readonly string[] {
    const [first, ...others] = this.#unknown;
    if (first === undefined) return this.#continued;
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return [
      ...this.#continued,
      `where ${first}${more} continue from is not known: an earlier log may have pages before, and a jump in them is an open gap`,
    ];
  }

  /** A process starts to write. */
  start(entry: EntryOf<'start'>): void {
    this.#cursors.start(entry);
  }

  /** Adds a page of a stream; `reported`: messages of its condition records, as far as they were read. */
  take(index: number, entry: PageEntry, reported: ReadonlyMap<string, string>): void {
    const { stream, fetched_at: at, conditions = [], answer, kept, seq } = entry;
    const account = this.#accountOf(stream, at);
    const day = dayOf(account, at);
    this.#continue(entry);
    account.pages += 1;
    account.records += kept;
    if (at < account.first) account.first = at;
    if (at > account.last) account.last = at;
    day.pages += 1;
    day.records += kept;
    if (answer !== undefined) account.answers += 1;
    if (answer !== undefined && answer.status < 300) this.#end(stream, 'answered');
    if (conditions.includes('source.heard')) this.#end(stream, 'heard');
    const gap = (what: string) => {
      const made = { index, stream, seq, at, what, isOpen: true };
      day.gaps += 1;
      this.#gaps.push(made);
      return made;
    };
    const jump = this.#cursors.jump(entry);
    if (jump === 'gap') gap(jumpText);
    if (jump === 'break') this.#found({ index, stream, seq, object: null, what: splitText }, at);
    for (const condition of conditions.filter((one) => Object.hasOwn(gapConditions, one))) {
      const made = gap(reported.get(condition) ?? condition);
      const key = `${gapConditions[condition]} ${stream}`;
      this.#open.set(key, [...(this.#open.get(key) ?? []), made]);
    }
  }

  /** Counts a break, on the day of its stream's last page if its time is unknown. */
  mark({ stream }: Break, at?: string): void {
    const account = stream === null ? undefined : this.#streams.get(stream);
    if (account !== undefined) dayOf(account, at ?? account.last).breaks += 1;
  }

  #continue({ stream, seq, continues }: PageEntry): void {
    if (seq === 0 && continues === 'unknown') this.#unknown.push(stream);
    if (seq !== 0 || typeof continues !== 'object' || this.#continued.length >= continuedMax)
      return;
    const { origin, archive, seq: from } = continues;
    this.#continued.push(
      `${stream} continues at its page ${from} from the archive ${origin}, whose archive.json has the SHA-256 ${archive}: verify that one as well`,
    );
  }

  #end(stream: string, how: string): void {
    const key = `${how} ${stream}`;
    for (const gap of this.#open.get(key) ?? []) gap.isOpen = false;
    this.#open.delete(key);
  }

  #accountOf(stream: string, at: string): VerifiedStream {
    const known = this.#streams.get(stream);
    if (known !== undefined) return known;
    const days = new Map<string, StreamDay>();
    const made = { stream, pages: 0, answers: 0, records: 0, first: at, last: at, days };
    this.#streams.set(stream, made);
    return made;
  }
}

function dayOf({ days }: VerifiedStream, at: string): StreamDay {
  const name = at.slice(0, 10);
  const known = days.get(name);
  if (known !== undefined) return known;
  const made = { pages: 0, records: 0, gaps: 0, breaks: 0 };
  days.set(name, made);
  return made;
}
