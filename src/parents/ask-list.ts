// Reads one parent's list with the unchanged list engine: each parent has its own poller, whose checkpoint is in the
// parent's row. Its pages are pages of the stream and name the parent. Conditions that all the lists share (their
// paging, a new field) would be found in each of them and are reported for the first only.

import type { ListReading } from '../contracts/config.ts';
import {
  type Append,
  type Clock,
  type FetchSpool,
  type InFlight,
  type ListStream,
  type Log,
  type NewPage,
  type ParentsStream,
  uidBytes,
} from '../contracts/index.ts';
import { type ListCheckpoint, ListPoller, ListReader } from '../list/index.ts';

import { type FindingRecord, type OnFinding, ownPage, type PollResult } from '../poll/index.ts';

/** Polls of one list in a row before other parents have their turn. */
const pollsMax = 5;
/** Number of unfinished lists whose pollers are kept. */
const openMax = 64;
/** How long changes of all records at once must stay before they are reported. */
const patienceMs = 15 * 60_000;

/** Conditions that every list shows if one does. */
const shared: ReadonlySet<string> = new Set([
  ...(['source.paging_suspected', 'source.checkpoint_reset', 'schema_drift'] as const),
]);

/** The result of a list. */
export type ListAsked = PollResult & { readonly checkpoint: ListCheckpoint | null };

/** Dependencies of list requests. */
export interface ListAskerDeps {
  readonly stream: ParentsStream;
  readonly spool: Pick<FetchSpool, 'append' | 'recall' | 'room' | 'trail'>;
  readonly clock: Clock;
  readonly log: Log;
  /** How each list is read. */
  readonly list: ListReading;
  readonly inFlight?: InFlight | undefined;
  readonly found?: OnFinding | undefined;
}

/** Reads lists. */
export class ListAsker {
  readonly #deps: ListAskerDeps;
  /** False for a condition that was recently reported for another parent. */
  readonly #isNews: (condition: string) => boolean;
  readonly #open = new Map<string, ListPoller>();

  constructor(deps: ListAskerDeps, isNews: (condition: string) => boolean) {
    this.#deps = deps;
    this.#isNews = isNews;
  }

  /** Reads one parent's list to its tail, or until other parents have their turn. */
  async ask(id: string, list: ListStream, since: number, signal: AbortSignal): Promise<ListAsked> {
    const poller = this.#open.get(id) ?? this.#pollerOf(id, list, since);
    this.#open.delete(id);
    let fresh = 0;
    for (let polls = 1; ; polls += 1) {
      const result = await poller.poll(signal);
      const { checkpoint } = poller;
      if (result.outcome !== 'done') return { ...result, checkpoint };
      fresh += result.fresh;
      if (result.more && polls < pollsMax) continue;
      if (result.more) this.#keep(id, poller);
      return { ...result, fresh, checkpoint };
    }
  }

  #keep(id: string, poller: ListPoller): void {
    const [oldest] = this.#open.keys();
    if (this.#open.size >= openMax && oldest !== undefined) this.#open.delete(oldest);
    this.#open.set(id, poller);
  }

  #pollerOf(id: string, stream: ListStream, since: number): ListPoller {
    const { list, spool, clock, log, inFlight } = this.#deps;
    const { trail, recall, room } = spool;
    const reader = new ListReader({
      stream,
      spool: {
        append: (entry) => this.#append(id, entry),
        trail: trail.bind(spool),
        recall: recall.bind(spool),
        room: room.bind(spool),
      },
      clock,
      log: log.with({ parent: id }),
      order: list.order,
      // A parent may be new: records from before its first request are then new as well.
      start: list.start === 'now' ? since : list.start,
      patienceMs,
      lookbackMs: list.lookbackMs,
      inFlight,
    });
    return new ListPoller(reader, list);
  }

  async #append(id: string, entry: Append): Promise<number> {
    const { stream, spool, found } = this.#deps;
    const { name, company } = stream;
    const reported: FindingRecord[] = [];
    const pages = entry.pages.flatMap((page) => {
      const own = { ...page.context, stream: name, parent: id, ...(company && { company }) };
      const whole = { ...page, context: own };
      return own.kind === 'condition' ? this.#newsOf(whole, reported) : [whole];
    });
    const block = await spool.append({ ...entry, pages, parent: { stream: name, id } });
    for (const record of reported) found?.({ ...record, stream: name });
    return block;
  }

  /** A page of conditions without those that were reported for another parent. */
  #newsOf({ context, body, uids }: NewPage, reported: FindingRecord[]): readonly NewPage[] {
    const records: readonly FindingRecord[] = JSON.parse(Buffer.from(body).toString()); // own-pages.ts
    const kept = records.flatMap((record, at) =>
      !shared.has(record.condition) || this.#isNews(record.condition)
        ? [{ record, uid: Buffer.from(uids.subarray(at * uidBytes, (at + 1) * uidBytes)) }]
        : [],
    );
    reported.push(...kept.map(({ record }) => record));
    if (kept.length === 0) return [];
    return [
      ownPage(
        context,
        reported.slice(-kept.length),
        kept.map(({ uid }) => uid),
      ),
    ];
  }
}
