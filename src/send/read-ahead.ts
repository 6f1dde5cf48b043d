// Selects the events that a probe sends in addition to the suspect: the first waiting event of each
// other stream, a few at a time, in the next probe those of other streams; if no other stream
// waits, the next event of the suspect's own. Invariants: no position moves here; a probe reads a
// bounded number of bytes.

import type { Batch, Event, HeldPage, Offset, SendSpool } from '../contracts/index.ts';
import type { Outlet } from './outlet.ts';
import { alone } from './parts.ts';

/** Dependencies. */
export interface ReadAheadDeps {
  readonly outlet: Pick<Outlet, 'cut'>;
  readonly spool: Pick<SendSpool, 'read' | 'gauge'>;
  /** True for an event that needs no probe, because it is settled. */
  readonly isSettled: (event: Event) => boolean;
}

/** Maximum bytes read for one probe. */
const probeBytesMax = 8 * 1024 * 1024;
const readBytes = 1024 * 1024;

/** Reads ahead of one suspect. */
export class ReadAhead {
  readonly #deps: ReadAheadDeps;
  readonly #stream: string;
  readonly #from: Offset;
  /** Offset up to which streams were searched. */
  #seen: Offset;
  /** By stream, the offset of its first waiting event; the least recently sent first. */
  readonly #first = new Map<string, Offset>();
  /** Offset from which the next event of the suspect's own stream is searched. */
  #own: Offset;

  /** `stream` and `offset` of the suspect. */
  constructor({ stream, offset }: { stream: string; offset: Offset }, deps: ReadAheadDeps) {
    this.#deps = deps;
    this.#stream = stream;
    this.#from = offset + 1;
    this.#seen = this.#from;
    this.#own = this.#from;
  }

  /** Offset up to which events were searched. */
  get seen(): Offset {
    return this.#seen;
  }

  /** Up to `most` events to send now, each alone. */
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

  /** Searches for streams until enough unsent ones are found, or the bytes are used up. */
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
    // New streams go before those that were sent already.
    const sent = [...this.#first];
    this.#first.clear();
    for (const [name, at] of [[stream, offset] as const, ...sent]) this.#first.set(name, at);
  }

  /** The next event of the suspect's own stream, in turn. */
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

  /** The first unsettled event for this sink in a range, alone. */
  async #eventAt(from: Offset, until: Offset): Promise<Batch | null> {
    for (let at = from; at < until; ) {
      const batch = await this.#deps.outlet.cut(at, until);
      if (batch === null) return null;
      const index = batch.events.findIndex((event) => !this.#deps.isSettled(event));
      if (index >= 0) return alone(batch, index);
      at = batch.end;
    }
    return null;
  }
}
