// One open connection to a syslog receiver and the batches that travel on it. Syslog over TCP has no acknowledgement, so
// a batch's fate is the connection's: a batch is settled once it was flushed, the far kernel has acknowledged it (where
// this machine can tell), and the connection has stayed healthy for the resend window since; when the connection breaks
// before, the batch is to be sent again. A reset can take away bytes that the far kernel had acknowledged and its program
// not read: that is what the window is for.
//
//   open ──finish()──▶ finishing ──peer's FIN──▶ checking ──all acknowledged──▶ over   all settled: read to the end
//     └──error, FIN, stall──┴──error, no FIN────────┴──error, bytes left──▶ over         what is unsettled goes again
//
// What must stay true: fates are told in the order of writing, settled ones first; nothing is told twice; at most one
// batch more than the socket's own buffer waits in memory.

import type { Socket } from 'node:net';
import type { ExportError } from '../../../src/contracts/errors.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { Address } from './address.ts';
import { broken, brokenConnection } from './failures.ts';
import { type Ports, portsOf, sendQueue } from './send-queue.ts';

/** When a batch counts as delivered. */
export interface Settling {
  /** `window`: healthy for `windowMs` after the flush. `close`: only when the receiver answers our FIN with its own. */
  readonly confirm: 'window' | 'close';
  readonly windowMs: number;
  /** A connection on which nothing moves for so long, though something should, is given up. */
  readonly stallMs: number;
}

/** What the owner of a connection is told. */
export interface ConnectionEvents {
  /** More may be written. */
  room(): void;
  /** The connection is gone and every batch has its fate. Called once, with the cause if it broke. */
  over(cause: ExportError | null): void;
}

/** Who waits for a batch's fate. */
export interface Waiter {
  /** Told once. */
  readonly tell: (delivery: Delivery) => void;
  /** Once aborted nobody waits any more. */
  readonly signal: AbortSignal;
}

interface Carried {
  /** Bytes written up to and with this batch. */
  readonly end: number;
  flushedMs: number;
  readonly waiter: Waiter;
}

// One write's callback is the finest sign of progress there is, and large writes cost least (measured: 64 to 192 KiB).
const writeBytesMax = 128 * 1024;
const notYet = Number.POSITIVE_INFINITY;

/** See the head of this file. */
export class Connection {
  readonly #socket: Socket;
  readonly #address: Address;
  readonly #settling: Settling;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  readonly #ports: Ports;
  readonly #ended = new AbortController();
  readonly #carried: Carried[] = [];
  /** Whether the kernel's table shows this connection, so that its absence there means something. */
  #listed: boolean | null = null;
  #state: 'open' | 'finishing' | 'checking' | 'over' = 'open';
  #watching = false;
  #written = 0;
  #flushed = 0;
  /** Bytes that are known to have left, by the far kernel's word or else by our own kernel's. */
  #reached = 0;
  #progressMs: number;
  #healthySinceMs = 0;

  constructor(
    socket: Socket,
    to: { readonly address: Address; readonly settling: Settling },
    world: { readonly clock: Clock; readonly events: ConnectionEvents },
  ) {
    this.#socket = socket;
    this.#address = to.address;
    this.#settling = to.settling;
    this.#clock = world.clock;
    this.#events = world.events;
    this.#ports = portsOf(socket);
    this.#progressMs = world.clock.monotonic();
    socket.on('drain', () => this.#events.room());
    socket.on('end', () => this.#peerEnded());
    socket.on('error', (error) => this.#break(() => brokenConnection(this.#address, error)));
    socket.on('close', () => this.#closed());
    // Receivers send nothing; reading is what makes a FIN or a reset seen.
    socket.resume();
  }

  /** Whether a batch may be written now. */
  get hasRoom(): boolean {
    return this.#state === 'open' && !this.#socket.writableNeedDrain;
  }

  /** Writes a batch's frames. They must not change until the waiter is told. */
  write(frames: Uint8Array, waiter: Waiter): void {
    if (this.#carried.length === 0) this.#progressMs = this.#clock.monotonic();
    this.#written += frames.length;
    const carried: Carried = { end: this.#written, flushedMs: notYet, waiter };
    this.#carried.push(carried);
    for (let start = 0; start < frames.length; start += writeBytesMax) {
      const part = frames.subarray(start, start + writeBytesMax);
      this.#socket.write(part, (error) => {
        if (error) return; // 'error' or 'close' tells
        this.#flushed += part.length;
        if (this.#flushed >= carried.end) carried.flushedMs = this.#clock.monotonic();
      });
    }
    void this.#watch();
  }

  /**
   * Ends our side and waits for the receiver to end its own, which it does when it has read everything (RFC 9293,
   * section 3.6). Every batch has its fate after `waitMs` at the latest. Called again, the shorter wait holds.
   */
  finish(waitMs: number): void {
    if (this.#state === 'over') return;
    if (this.#state === 'open') {
      this.#state = 'finishing';
      this.#socket.end();
      if (this.#carried.every(({ waiter }) => waiter.signal.aborted)) {
        this.#socket.destroySoon();
        this.#end(null);
        return;
      }
    }
    void this.#awaitFin(waitMs);
  }

  async #awaitFin(waitMs: number): Promise<void> {
    try {
      await this.#clock.sleep(waitMs, this.#ended.signal);
    } catch {
      return; // over: everything has its fate
    }
    const what = `the receiver has not closed its side within ${waitMs / 1000} s of ours`;
    this.#break(() => broken(this.#address, what));
  }

  #peerEnded(): void {
    if (this.#state === 'finishing' && this.#socket.writableFinished) void this.#confirmFin();
    else this.#break(() => broken(this.#address, 'the receiver closed the connection'));
  }

  // Once both sides have ended the socket closes by itself.
  #closed(): void {
    if (this.#state !== 'checking') {
      this.#break(() => broken(this.#address, 'the connection was closed'));
    }
  }

  // A receiver that closed of its own accord just before our last bytes came has not read them. Its kernel then resets
  // the connection, which is gone from the table or still has bytes to be acknowledged; after a handshake that went
  // right it stays there in TIME_WAIT with none.
  async #confirmFin(): Promise<void> {
    this.#state = 'checking';
    const queue = await sendQueue(this.#ports);
    if (this.#state !== 'checking') return;
    if (queue === 0 || queue === 'unknown' || !this.#listed) {
      this.#settle(this.#carried.length);
      this.#socket.destroy();
      this.#end(null);
      return;
    }
    this.#break(() => broken(this.#address, 'the receiver closed before it had read everything'));
  }

  // One loop for as long as anything is unsettled: it settles what is due and notices when nothing moves.
  async #watch(): Promise<void> {
    if (this.#watching) return;
    this.#watching = true;
    const { windowMs, stallMs } = this.#settling;
    const tickMs = Math.max(5, Math.min(windowMs, stallMs) / 4);
    try {
      this.#listed ??= typeof (await sendQueue(this.#ports)) === 'number';
      while (this.#state !== 'over') {
        const oldest = this.#carried[0];
        if (oldest === undefined) break;
        const due = oldest.flushedMs + windowMs - this.#clock.monotonic();
        await this.#clock.sleep(
          Number.isFinite(due) ? Math.max(due, tickMs) : tickMs,
          this.#ended.signal,
        );
        await this.#look();
      }
    } catch {
      // The connection is over: everything has its fate.
    } finally {
      this.#watching = false;
    }
  }

  async #look(): Promise<void> {
    // Taken before the queue is: what is flushed meanwhile only makes the queue look longer.
    const flushed = this.#flushed;
    const queue = await sendQueue(this.#ports);
    if (this.#state !== 'open' && this.#state !== 'finishing') return;
    const nowMs = this.#clock.monotonic();
    const reached = typeof queue === 'number' ? flushed - queue : flushed;
    if (reached > this.#reached || reached === this.#written) this.#progressMs = nowMs;
    this.#reached = Math.max(this.#reached, reached);

    const { confirm, windowMs, stallMs } = this.#settling;
    const stuckMs = nowMs - this.#progressMs;
    if (stuckMs >= stallMs) {
      this.#break(() => broken(this.#address, `nothing has moved for ${stallMs / 1000} s`));
      return;
    }
    // While nothing moves the receiver may be hung, and what it has not read would go with a reset.
    if (stuckMs >= windowMs && stuckMs > 0) this.#healthySinceMs = nowMs;
    const due = (batch: Carried) =>
      batch.end <= this.#reached &&
      Math.max(batch.flushedMs, this.#healthySinceMs) + windowMs <= nowMs;
    const open = this.#carried.findIndex((batch) => !due(batch));
    const count = open === -1 ? this.#carried.length : open;
    if (count === 0) return;
    switch (confirm) {
      case 'window':
        this.#settle(count);
        if (this.#state === 'finishing' && this.#carried.length === 0) {
          this.#socket.destroy();
          this.#end(null);
        }
        break;
      case 'close':
        if (this.#state === 'open') this.finish(stallMs);
        break;
    }
  }

  #settle(count: number): void {
    for (const batch of this.#carried.splice(0, count)) batch.waiter.tell({ outcome: 'delivered' });
  }

  #break(cause: () => ExportError): void {
    if (this.#state === 'over') return;
    this.#socket.destroy();
    const why = cause();
    const delivery = { outcome: 'retry', cause: why } as const;
    for (const batch of this.#carried.splice(0)) batch.waiter.tell(delivery);
    this.#end(why);
  }

  #end(cause: ExportError | null): void {
    this.#state = 'over';
    this.#ended.abort();
    this.#events.over(cause);
  }
}
