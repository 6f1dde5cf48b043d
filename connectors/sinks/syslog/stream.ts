// The stream of frames to a syslog receiver over TCP or TLS: queues batches in order, connects when
// there is something to send, and passes batches to the connection as fast as it drains. If a
// connection cannot be made, its waiting batches are sent again; the engine decides when and how
// often.
//
//   idle ──a batch──▶ connecting ──made──▶ connected ──over──▶ idle
//                         └──failed, all waiting are sent again──▶ idle
//   connected ──due──▶ connecting a successor ──made──▶ connected, the previous one is confirmed meanwhile
// A connection that breaks also sends back later batches, including those on a later connection; a
// finished one leaves waiting batches to the next. At most two are open: one for writing, one being
// confirmed.
//
// Invariants: batches are written in the order in which they came; every batch gets one result. A
// receiver may read two connections in any order, so the successor waits a moment for the previous
// one to be confirmed, and only a slower receiver may see later events first.

import type { Socket } from 'node:net';
import { type Clock, type ExportError, untilAborted } from '../../../src/contracts/index.ts';
import { SyslogConnection } from './connection.ts';
import { dial, type SyslogReceiver } from './dial.ts';
import { broken, connectFailure } from './failures.ts';
import type { Frames } from './framing.ts';
import type { Habit } from './habit.ts';
import type { Waiter } from './unsettled.ts';

/** A batch to send. */
export interface Outgoing {
  /**
   * Its frames, created when they can be written; null: not possible, and its result was reported.
   */
  readonly frames: () => Frames | null;
  /** Must not reference the batch, which is released once its frames are written. */
  readonly waiter: Waiter;
}

// Within `shutdown.timeout`, which is 10 s by default.
const finishMs = 5_000;
/** Maximum queued batches; more would only pile up while a receiver does not read. */
const waitingMax = 4;

/** Share of the window that a successor waits: the price of keeping the order. */
const waitShare = 0.04;
const waitMsLeast = 50;

/** See the file's head. */
export class SyslogStream {
  readonly #to: SyslogReceiver;
  readonly #habit: Habit;
  readonly #clock: Clock;
  readonly #waiting: Outgoing[] = [];
  readonly #closed = new AbortController();
  #relief = Promise.withResolvers<void>();
  #connecting = false;
  /** The connection for writing. */
  #connection: SyslogConnection | null = null;
  /** The previous one, until the receiver has confirmed it. */
  #confirming: SyslogConnection | null = null;
  /** The successor waits. */
  #holding = false;
  readonly #idle = Promise.withResolvers<void>();

  constructor(to: SyslogReceiver, habit: Habit, clock: Clock) {
    this.#to = to;
    this.#habit = habit;
    this.#clock = clock;
  }

  /** Queues a batch. */
  send(batch: Outgoing): void {
    this.#waiting.push(batch);
    this.#pump();
  }

  /** Resolves when the queue is short enough for another batch. */
  async ready(signal: AbortSignal): Promise<void> {
    while (this.#waiting.length >= waitingMax) await untilAborted(this.#relief.promise, signal);
  }

  #relieve(): void {
    this.#relief.resolve();
    this.#relief = Promise.withResolvers();
  }

  /**
   * Closes open connections with the closing handshake, which gives their batches results;
   * unwritten ones are sent again. Resolves when all results are reported and nothing is open; may
   * be called again.
   */
  close(): Promise<void> {
    this.#closed.abort();
    this.#pump();
    this.#connection?.finish(finishMs);
    this.#confirming?.finish(finishMs);
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
      if (this.#holding || !this.#connection.hasRoom) return;
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
      this.#confirm();
      this.#connection = this.#connectionOn(socket);
    } catch (error) {
      // If it was to be a successor, the next attempt reports the waiting batches.
      if (this.#connection === null) this.#sendBack(connectFailure(this.#to.address, error));
      else this.#confirm();
    }
    this.#connecting = false;
    if (this.#closed.signal.aborted) this.#connection?.finish(finishMs);
    this.#rest();
    this.#pump();
  }

  #connectionOn(socket: Socket): SyslogConnection {
    const events = {
      room: () => this.#pump(),
      due: () => this.#rotate(),
      ended: () => void this.#releaseSuccessor(connection),
      over: (cause: ExportError | null) => this.#over(connection, cause),
    };
    const to = { address: this.#to.address, habit: this.#habit };
    const connection = new SyslogConnection(socket, to, { clock: this.#clock, events });
    return connection;
  }

  // The successor is opened first if there is something to send, so that sending continues.
  #rotate(): void {
    if (this.#confirming !== null || this.#connecting || this.#connection?.isDue !== true) return;
    if (this.#waiting.length > 0 || !this.#connection.isQuiet) void this.#connect();
    else this.#confirm();
  }

  #confirm(): void {
    const ended = this.#connection;
    if (ended === null) return;
    this.#connection = null;
    this.#confirming = ended;
    this.#holding = true;
    ended.finish();
  }

  // Until then the receiver has enough to read.
  async #releaseSuccessor(confirming: SyslogConnection): Promise<void> {
    const waitMs = Math.max(waitMsLeast, this.#habit.settling.windowMs * waitShare);
    await this.#clock.sleep(waitMs);
    if (this.#confirming !== confirming) return;
    this.#holding = false;
    this.#pump();
  }

  // Batches after one that is sent again are sent again too, to keep the order of events.
  #over(ended: SyslogConnection, cause: ExportError | null): void {
    const wasFirst = ended === this.#confirming;
    if (wasFirst) {
      this.#confirming = null;
      this.#holding = false;
    } else this.#connection = null;
    if (cause) {
      this.#sendBack(cause);
      if (wasFirst) this.#connection?.giveUp(cause);
    }
    this.#rest();
    this.#rotate();
    this.#pump();
  }

  #rest(): void {
    const idle = this.#connection === null && this.#confirming === null && !this.#connecting;
    if (idle && this.#closed.signal.aborted) this.#idle.resolve();
  }

  #sendBack(cause: ExportError): void {
    for (const batch of this.#waiting.splice(0)) batch.waiter.report({ outcome: 'retry', cause });
    this.#relieve();
  }
}
