// Which events a probe sends in addition to the suspect: the first waiting event of each other stream, a few
// at a time, the next probe those of other streams; where no other stream waits, the next event of
// the suspect's own. What must stay true: nothing here moves a position, and a probe reads a
// bounded number of bytes.

import type { Offset } from '../contracts/event.ts';
import type { Batch } from '../contracts/sink.ts';
import type { HeldPage, SendSpool } from '../contracts/spool.ts';
import { alone } from './batch-parts.ts';
import type { Outlet } from './outlet.ts';

/** What is read with. */
export interface ReadAheadDeps {
  readonly outlet: Pick<Outlet, 'cut'>;
  readonly spool: Pick<SendSpool, 'read' | 'gauge'>;
  /** True for an event that needs no probe: it is settled already. */
  readonly isSettled: (offset: Offset) => boolean;
}

/** Read at most for one probe. */
const probeBytesMax = 8 * 1024 * 1024;
const readBytes = 1024 * 1024;

/** Reads ahead of one suspect. */
export class ReadAhead {
  readonly #deps: ReadAheadDeps;
  readonly #stream: string;
  readonly #from: Offset;
  /** Up to where streams were looked for. */
  #seen: Offset;
  /** By stream, the offset of its first waiting event; the ones sent longest ago first. */
  readonly #first = new Map<string, Offset>();
  /** From where the next event of the suspect's own stream is looked for. */
  #own: Offset;

  /** `stream` and `offset` of the suspect. */
  constructor({ stream, offset }: { stream: string; offset: Offset }, deps: ReadAheadDeps) {
    this.#deps = deps;
    this.#stream = stream;
    this.#from = offset + 1;
    this.#seen = this.#from;
    this.#own = this.#from;
  }

  /** Up to where events were looked for. */
  get seen(): Offset {
    return this.#seen;
  }

  /** Events to send now, each by itself; `most` of them. */
  async *next(most: number): AsyncGenerator<Batch> {
    await this.#look(most);
    const turn = [...this.#first].slice(0, most);
    for (const [stream, offset] of turn) {
      const batch = await this.#eventAt(offset, offset + 1);
      this.#first.delete(stream);
      if (batch === null) continue;
      this.#first.set(stream, offset);
      yield batch;
    }
    if (turn.length > 0 || most === 0) return;
    const own = await this.#nextOwn();
    if (own !== null) yield own;
  }

  /** Looks for streams until there are enough that were not sent yet, or the bytes are used up. */
  async #look(most: number): Promise<void> {
    const { spool } = this.#deps;
    const known = this.#first.size;
    for (let bytes = 0; bytes < probeBytesMax && this.#first.size < known + most; ) {
      if (this.#seen >= spool.gauge.end) return;
      const pages = await spool.read(this.#seen, readBytes);
      if (pages.length === 0) return;
      for (const page of pages) {
        bytes += page.body.length;
        await this.#lookIn(page);
        this.#seen = Math.max(this.#seen, page.first + page.count);
      }
    }
  }

  async #lookIn({ first, count, context: { stream } }: HeldPage): Promise<void> {
    if (stream === this.#stream || this.#first.has(stream)) return;
    const batch = await this.#eventAt(Math.max(first, this.#from), first + count);
    const offset = batch?.events[0]?.offset;
    if (offset === undefined) return;
    // Before those that were sent already.
    const sent = [...this.#first];
    this.#first.clear();
    for (const [name, at] of [[stream, offset] as const, ...sent]) this.#first.set(name, at);
  }

  /** The next event of the suspect's own stream, each one in turn. */
  async #nextOwn(): Promise<Batch | null> {
    const { spool } = this.#deps;
    let mayRestart = this.#own > this.#from;
    for (let bytes = 0; bytes < probeBytesMax; ) {
      const pages = this.#own < spool.gauge.end ? await spool.read(this.#own, readBytes) : [];
      if (pages.length === 0) {
        this.#own = this.#from;
        if (!mayRestart) return null;
        mayRestart = false;
        continue;
      }
      for (const { first, count, body, context } of pages) {
        bytes += body.length;
        const end = first + count;
        const isOwn = context.stream === this.#stream;
        const batch = isOwn ? await this.#eventAt(Math.max(first, this.#own), end) : null;
        const offset = batch?.events[0]?.offset;
        this.#own = offset === undefined ? end : offset + 1;
        if (batch !== null) return batch;
      }
    }
    return null;
  }

  /** The first event for this sink in a range that is not settled, by itself. */
  async #eventAt(from: Offset, until: Offset): Promise<Batch | null> {
    for (let at = from; at < until; ) {
      const batch = await this.#deps.outlet.cut(at, until);
      if (batch === null) return null;
      const index = batch.events.findIndex(({ offset }) => !this.#deps.isSettled(offset));
      if (index >= 0) return alone(batch, index);
      at = batch.end;
    }
    return null;
  }
}
