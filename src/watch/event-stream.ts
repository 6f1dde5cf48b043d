// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), in the subset that the status
// uses. Invariants: no text of a record can start an event; a reader that stops reading uses a bounded amount of memory
// and is then disconnected.

import type { ServerResponse } from 'node:http';
import { safeHeaders } from './access.ts';

/** One event in its wire format; `id` is the id that a reconnecting reader reports as last received. */
export function eventText(event: string, reported: object, id?: number): string {
  // JSON has no line feed, so no value can end its line.
  const data = `event: ${event}\ndata: ${JSON.stringify(reported)}\n`;
  return id === undefined ? `${data}\n` : `id: ${id}\n${data}\n`;
}

/** The content type header. */
export const eventStreamType = { 'content-type': 'text/event-stream' } as const;

/** A reader with this much unread data is disconnected; the page reconnects by itself. */
const unreadBytesMax = 4 * 1_024 * 1_024;

/** One reader of events. */
export class EventStream {
  readonly #response: ServerResponse;
  /** Aborts when the reader has disconnected. */
  readonly gone: AbortSignal;

  constructor(response: ServerResponse) {
    const gone = new AbortController();
    this.#response = response;
    this.gone = gone.signal;
    response.once('close', () => gone.abort(new Error('the reader has gone')));
    response.writeHead(200, { ...safeHeaders, ...eventStreamType });
    // At once, so that a reader of rare events knows that it is connected.
    response.flushHeaders();
  }

  /** True while the reader has unread data: repeated reports can wait. */
  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** Sends text made by `eventText`. */
  write(text: string): void {
    if (this.#response.writableLength > unreadBytesMax) this.#response.destroy();
    else this.#response.write(text);
  }

  /** Ends the stream; the reader reconnects by itself. */
  end(): void {
    this.#response.end();
  }
}
