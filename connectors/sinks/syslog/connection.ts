// One open connection to a syslog receiver and the batches that travel on it. Syslog over TCP has no acknowledgement, so
// a batch's fate is the connection's: a batch is settled once it was flushed, the far kernel has acknowledged it (where
// this machine can tell), and the connection has stayed healthy for the resend window since; when the connection breaks
// before, the batch is to be sent again. A reset can take away bytes that the far kernel had acknowledged and its program
// not read: that is what the window is for.
//
//   open ──finish()──▶ finishing ──our FIN, then the receiver's──▶ over   all settled: it has read to the end
//     └──error, FIN, stall──┴──error, stall, no FIN──▶ over               what is unsettled goes again
//
// What must stay true: fates are told in the order of writing, settled ones first; nothing is told twice; large batches
// wait for the kernel one at a time.

import type { Socket } from 'node:net';
import type { ExportError } from '../../../src/contracts/errors.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import type { Address } from './address.ts';
import { broken, brokenConnection } from './failures.ts';
import type { Frames } from './framing.ts';
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
// So many bytes may wait for the kernel before the next batch is held back. Counted here: Node tells 'drain' once for
// each write of a batch, and each would let in another batch.
const aheadBytesMax = writeBytesMax;
const drainLookMs = 10;
const drainLookMsMax = 160;
// Looking costs up to tens of milliseconds where a machine has many connections: at most one part in so many of the time.
const lookShareMax = 50;
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
  #state: 'open' | 'finishing' | 'over' = 'open';
  #watching = false;
  #written = 0;
  #flushed = 0;
  /** Bytes that are known to have left, by the far kernel's word or else by our own kernel's. */
  #reached = 0;
  /** Whether the kernel's table has shown this connection. */
  #listed = false;
  #progressMs: number;
  #healthySinceMs = Number.NEGATIVE_INFINITY;

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
    socket.on('end', () => this.#peerEnded());
    socket.on('error', (error) => this.#break(() => brokenConnection(this.#address, error)));
    socket.on('close', () => this.#break(() => broken(this.#address, 'the connection was closed')));
    // Receivers send nothing; reading is what makes a FIN or a reset seen.
    socket.resume();
  }

  /** Whether a batch may be written now. */
  get hasRoom(): boolean {
    return this.#state === 'open' && this.#written - this.#flushed < aheadBytesMax;
  }

  /** Writes a batch's frames, of which there is at least one, and releases them once the kernel has them. */
  write({ bytes, release }: Frames, waiter: Waiter): void {
    if (this.#carried.length === 0) this.#progressMs = this.#clock.monotonic();
    this.#written += bytes.length;
    const carried: Carried = { end: this.#written, flushedMs: notYet, waiter };
    this.#carried.push(carried);
    for (let start = 0; start < bytes.length; start += writeBytesMax) {
      const part = bytes.subarray(start, start + writeBytesMax);
      this.#socket.write(part, (error) => {
        if (error) return; // 'error' or 'close' tells
        this.#flushed += part.length;
        if (this.#flushed < carried.end) return;
        carried.flushedMs = this.#clock.monotonic();
        release();
        this.#events.room();
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
      if (this.#carried.every(({ waiter }) => waiter.signal.aborted)) {
        if (this.#flushed < this.#written) this.#socket.destroy();
        else this.#socket.destroySoon();
        this.#end(null);
        return;
      }
      void this.#endOurSide();
    }
    void this.#awaitFin(waitMs);
  }

  // Only once the far kernel has everything does a FIN in answer to ours mean that all was read: a program that closes
  // before sends a reset instead, and one that closed before our last bytes came never acknowledges them.
  async #endOurSide(): Promise<void> {
    try {
      for (let waitMs = drainLookMs; this.#state === 'finishing'; waitMs *= 2) {
        if ((await this.#reachedBytes()) >= this.#written) break;
        await this.#clock.sleep(Math.min(waitMs, drainLookMsMax), this.#ended.signal);
      }
      if (this.#state === 'finishing') this.#socket.end();
    } catch {
      // The connection is over: everything has its fate.
    }
  }

  async #awaitFin(waitMs: number): Promise<void> {
    try {
      await this.#clock.sleep(waitMs, this.#ended.signal);
    } catch {
      return; // over: everything has its fate
    }
    const what = `the receiver has not closed its side within ${waitMs / 1000} s of ours`;
    const { confirm } = this.#settling;
    const hint = confirm === 'close' ? 'If it never does that, use confirm: window.' : '';
    this.#break(() => broken(this.#address, what, { hint }));
  }

  #peerEnded(): void {
    if (!this.#socket.writableEnded) {
      this.#break(() => broken(this.#address, 'the receiver closed the connection'));
    } else if (this.#state === 'finishing') {
      this.#settle(this.#carried.length);
      this.#letGo();
    }
  }

  // One loop for as long as anything is unsettled: it settles what is due and notices when nothing moves.
  async #watch(): Promise<void> {
    if (this.#watching) return;
    this.#watching = true;
    const { windowMs, stallMs } = this.#settling;
    const shortestMs = Math.max(5, Math.min(windowMs, stallMs) / 4);
    let tickMs = shortestMs;
    try {
      for (let oldest = this.#carried[0]; oldest !== undefined; oldest = this.#carried[0]) {
        // All flushed: nothing to see before the oldest is due, and looking has its price (send-queue.ts).
        const idleMs =
          this.#flushed < this.#written
            ? tickMs
            : oldest.flushedMs + windowMs - this.#clock.monotonic();
        await this.#clock.sleep(Math.max(idleMs, tickMs), this.#ended.signal);
        const begunMs = this.#clock.monotonic();
        await this.#look();
        const lookedMs = this.#clock.monotonic() - begunMs;
        tickMs = Math.max(shortestMs, Math.min(lookedMs * lookShareMax, windowMs, stallMs / 4));
      }
    } catch {
      // The connection is over: everything has its fate.
    } finally {
      this.#watching = false;
    }
  }

  async #look(): Promise<void> {
    const reached = await this.#reachedBytes();
    if (this.#state === 'over') return;
    const nowMs = this.#clock.monotonic();
    const moved = reached > this.#reached || reached === this.#written;
    this.#reached = Math.max(this.#reached, reached);
    // While nothing moves the receiver may be hung, and what it has not read would go with a reset.
    if (moved) this.#progressMs = nowMs;
    else this.#healthySinceMs = nowMs;

    const { stallMs } = this.#settling;
    if (nowMs - this.#progressMs >= stallMs) {
      this.#break(() => broken(this.#address, `nothing has moved for ${stallMs / 1000} s`));
    } else {
      this.#settleDue(nowMs);
    }
  }

  async #reachedBytes(): Promise<number> {
    // Taken before the queue is: what is flushed meanwhile only makes the queue look longer.
    const flushed = this.#flushed;
    const queue = await sendQueue(this.#ports);
    if (queue !== null) {
      this.#listed = true;
      return flushed - queue;
    }
    // Gone from the table is no news, or bad news that an 'error' will tell.
    return this.#listed ? this.#reached : flushed;
  }

  #settleDue(nowMs: number): void {
    const { confirm, windowMs, stallMs } = this.#settling;
    const isDue = ({ end, flushedMs }: Carried) =>
      end <= this.#reached && Math.max(flushedMs, this.#healthySinceMs) + windowMs <= nowMs;
    const firstOpen = this.#carried.findIndex((batch) => !isDue(batch));
    const count = firstOpen === -1 ? this.#carried.length : firstOpen;
    if (count === 0) return;
    switch (confirm) {
      case 'window':
        this.#settle(count);
        if (this.#state === 'finishing' && this.#carried.length === 0) this.#letGo();
        break;
      case 'close':
        if (this.#state === 'open') this.finish(stallMs);
        break;
    }
  }

  #settle(count: number): void {
    for (const batch of this.#carried.splice(0, count)) batch.waiter.tell({ outcome: 'delivered' });
  }

  #letGo(): void {
    this.#socket.destroy();
    this.#end(null);
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
