// Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), as far as
// the status needs them. What must stay true: nothing that a record says can start an event of its
// own, and a reader who does not read costs a bounded amount of memory and is then let go.

import type { ServerResponse } from 'node:http';
import { safeHeaders } from './access.ts';

/** One event in its written form; `id` is what a reader who comes back says it has heard last. */
export function eventText(event: string, reported: object, id?: number): string {
  // JSON holds no line feed, so no value can end its line.
  const data = `event: ${event}\ndata: ${JSON.stringify(reported)}\n`;
  return id === undefined ? `${data}\n` : `id: ${id}\n${data}\n`;
}

/** The header that says so. */
export const eventStreamType = { 'content-type': 'text/event-stream' } as const;

/** A reader that has so much unread is taken to be gone; the page comes back by itself. */
const unreadBytesMax = 4 * 1_024 * 1_024;

/** One reader of events. */
export class EventStream {
  readonly #response: ServerResponse;
  /** Aborts when the reader has gone. */
  readonly gone: AbortSignal;

  constructor(response: ServerResponse) {
    const gone = new AbortController();
    this.#response = response;
    this.gone = gone.signal;
    response.once('close', () => gone.abort(new Error('the reader has gone')));
    response.writeHead(200, { ...safeHeaders, ...eventStreamType });
    // At once: a reader of something rare would else not know that it is heard.
    response.flushHeaders();
  }

  /** True while the reader has yet to take what was sent: what is told again anyway can wait. */
  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** Sends what `eventText` made. */
  write(text: string): void {
    if (this.#response.writableLength > unreadBytesMax) this.#response.destroy();
    else this.#response.write(text);
  }

  /** Says no more; the reader comes back by itself. */
  end(): void {
    this.#response.end();
  }
}
