// Asking for one parent's list, with the list engine as it is: a poller of its own, whose
// checkpoint stands in the parent's row. Its pages are the stream's, and say whose they are. What
// all the lists have in common (how they are paged, a field that is new over night) would be found
// in each of them, and is told of the first.

import type { ListReading } from '../../contracts/definition.ts';
import type { ListStream, ParentsStream } from '../../contracts/source.ts';
import type { Append, FetchSpool, NewPage } from '../../contracts/spool.ts';
import { uidBytes } from '../../contracts/spool.ts';
import type { Clock, InFlight, Log } from '../../contracts/tools.ts';
import type { ListCheckpoint } from '../list/checkpoint.ts';
import { ListPoller } from '../list/poller.ts';
import { ListReader } from '../list/reader.ts';
import type { PollResult } from '../outcome.ts';
import { type FindingRecord, type OnFinding, ownPage } from '../own-pages.ts';

/** Polls of one list in a row, before others have their turn. */
const pollsMax = 5;
/** Lists that are in the midst of being read, whose pollers are kept. */
const openMax = 64;
/** How long changes of all records at once have to stay, before they are told. */
const patienceMs = 15 * 60_000;

/** What is found of each list where it is found of one. */
const shared: ReadonlySet<string> = new Set([
  ...(['source.paging_suspected', 'source.checkpoint_reset', 'schema_drift'] as const),
]);

/** What came of a list. */
export type ListAsked = PollResult & { readonly checkpoint: ListCheckpoint | null };

/** What lists are asked with. */
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

/** Asks for lists. */
export class ListAsker {
  readonly #deps: ListAskerDeps;
  /** False for a condition that was told of another parent lately. */
  readonly #isNews: (condition: string) => boolean;
  readonly #open = new Map<string, ListPoller>();

  constructor(deps: ListAskerDeps, isNews: (condition: string) => boolean) {
    this.#deps = deps;
    this.#isNews = isNews;
  }

  /** One parent's list up to its tail, or so far that others should have their turn. */
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
      // A parent may be new: what came in before it was first asked for is new as well.
      start: list.start === 'now' ? since : list.start,
      patienceMs,
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

  /** A page of conditions without those that were told of another parent. */
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
