// The stream of frames to a syslog receiver over TCP or TLS: takes batches in order, connects when there is something to
// send, and passes batches to the connection as fast as it drains. When a connection cannot be made, whatever waits for
// it is to be sent again; when and how often is the engine's to say.
//
//   idle ──a batch──▶ connecting ──made──▶ connected ──over──▶ idle
//                         └──failed, all waiting go again──▶ idle
// A connection that breaks sends back what waits behind it too; one that was finished leaves it for the next.
//
// What must stay true: batches are written in the order in which they came, and every batch gets one fate.

import type { ExportError } from '../../../src/contracts/errors.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import { Connection, type Settling, type Waiter } from './connection.ts';
import { dial, type Receiver } from './dial.ts';
import { broken, connectFailure } from './failures.ts';
import type { Frames } from './framing.ts';

/** A batch to send. */
export interface Outgoing {
  /** Its frames, made only when they can be written; null where they cannot be: then it has seen to its own fate. */
  readonly frames: () => Frames | null;
  /** Must not hold on to the batch, which is let go of once its frames are written. */
  readonly waiter: Waiter;
}

// Within `shutdown.timeout`, which is 10 s unless set.
const finishMs = 5_000;
/** Batches that may stand in line for the connection; more would only pile up while a receiver takes nothing. */
const waitingMax = 4;

/** See the head of this file. */
export class SyslogStream {
  readonly #to: Receiver;
  readonly #settling: Settling;
  readonly #clock: Clock;
  readonly #waiting: Outgoing[] = [];
  readonly #closed = new AbortController();
  #relief = Promise.withResolvers<void>();
  #connecting = false;
  #connection: Connection | null = null;
  readonly #idle = Promise.withResolvers<void>();

  constructor(to: Receiver, settling: Settling, clock: Clock) {
    this.#to = to;
    this.#settling = settling;
    this.#clock = clock;
  }

  /** Puts a batch in line. */
  send(batch: Outgoing): void {
    this.#waiting.push(batch);
    this.#pump();
  }

  /** Resolves when the line is short enough for another batch. */
  async ready(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    try {
      while (this.#waiting.length >= waitingMax) {
        signal.throwIfAborted();
        await Promise.race([this.#relief.promise, aborted.promise]);
      }
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  #relieve(): void {
    this.#relief.resolve();
    this.#relief = Promise.withResolvers();
  }

  /**
   * Ends the connection by the closing handshake. Batches on it get their fate by it; what was not written yet is to be
   * sent again. Resolves when all is told and nothing is open; may be called again.
   */
  close(): Promise<void> {
    this.#closed.abort();
    this.#pump();
    this.#connection?.finish(finishMs);
    this.#rest();
    return this.#idle.promise;
  }

  #pump(): void {
    if (this.#closed.signal.aborted) this.#sendBack(broken(this.#to.address, 'sluice is ending'));
    while (this.#waiting.length > 0) {
      if (this.#connection === null) {
        if (!this.#connecting) void this.#connect();
        return;
      }
      if (!this.#connection.hasRoom) return;
      const batch = this.#waiting.shift();
      this.#relieve();
      if (batch === undefined || batch.waiter.signal.aborted) continue;
      const frames = batch.frames();
      if (frames !== null) this.#connection.write(frames, batch.waiter);
    }
  }

  async #connect(): Promise<void> {
    this.#connecting = true;
    try {
      const socket = await dial(this.#to, this.#clock, this.#closed.signal);
      const events = {
        room: () => this.#pump(),
        over: (cause: ExportError | null) => this.#over(cause),
      };
      const to = { address: this.#to.address, settling: this.#settling };
      this.#connection = new Connection(socket, to, { clock: this.#clock, events });
    } catch (error) {
      this.#sendBack(connectFailure(this.#to.address, error));
    }
    this.#connecting = false;
    if (this.#closed.signal.aborted) this.#connection?.finish(finishMs);
    this.#rest();
    this.#pump();
  }

  // What stands behind a batch that goes again goes again too, so that the order of events holds.
  #over(cause: ExportError | null): void {
    this.#connection = null;
    if (cause) this.#sendBack(cause);
    this.#rest();
    this.#pump();
  }

  #rest(): void {
    const idle = this.#connection === null && !this.#connecting;
    if (idle && this.#closed.signal.aborted) this.#idle.resolve();
  }

  #sendBack(cause: ExportError): void {
    for (const batch of this.#waiting.splice(0)) batch.waiter.tell({ outcome: 'retry', cause });
    this.#relieve();
  }
}
