// One open connection to a syslog receiver and the batches sent on it. Syslog over TCP has no
// acknowledgement, so a batch's result depends on the connection's end. A reset can lose bytes that
// the peer's TCP stack had acknowledged and its program had not read; so a batch is settled when
// sluice has closed its side and the receiver has then closed its own, having read to the end. If
// the receiver never does (habit.ts), a batch is settled once it was flushed, the peer's TCP stack
// has acknowledged it (if this machine can see that), and the connection has stayed healthy for the
// window since. If the connection breaks before, the batch is sent again.
//
//   open ──finish()──▶ finishing ──our FIN, then the receiver's──▶ over   all settled: it has read to the end
//     └──error, FIN, stall──┴──error, stall, no FIN──▶ over               unsettled batches are sent again
//
// Invariants: results are reported in the order of writing, settled ones first; nothing is reported
// twice; large batches wait for the kernel one at a time.

import type { Socket } from 'node:net';
import type { Clock, ExportError } from '../../../src/contracts/index.ts';
import type { Address } from './address.ts';
import { broken, brokenConnection } from './failures.ts';
import type { Frames } from './framing.ts';
import type { Habit } from './habit.ts';
import { Arrival } from './send-queue.ts';
import { Unsettled, type UnsettledBatch, type Waiter } from './unsettled.ts';

/** Callbacks to the owner of a connection. */
export interface ConnectionEvents {
  /** More may be written. */
  room(): void;
  /** `isDue`; repeated until `finish`. */
  due(): void;
  /**
   * This side is closed and everything before it is at the peer's TCP stack; not called if nothing
   * was sent.
   */
  ended(): void;
  /** The connection is closed and every batch has its result. Called once; `cause` if it broke. */
  over(cause: ExportError | null): void;
}

// A write's callback is the finest sign of progress available, and large writes cost least
// (measured: 64 to 192 KiB).
const writeBytesMax = 128 * 1024;
// Bytes that may wait for the kernel before the next batch is delayed. Counted here: Node emits
// 'drain' once for each write of a batch, and each would admit another batch.
const aheadBytesMax = writeBytesMax;
const drainLookMs = 2;
const drainLookMsMax = 160;
// Reading the kernel's table costs up to tens of milliseconds on a machine with many connections:
// at most this fraction of the time.
const lookShareMax = 50;

/** One connection; see the file's head. */
export class SyslogConnection {
  readonly #socket: Socket;
  readonly #address: Address;
  readonly #habit: Habit;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  readonly #arrival: Arrival;
  readonly #ended = new AbortController();
  readonly #carried = new Unsettled();
  #state: 'open' | 'finishing' | 'over' = 'open';
  #watching = false;
  #written = 0;
  #flushed = 0;
  /** The parts that had arrived and were flushed when progress was last checked. */
  #seen = 0;
  #flushedSeen = 0;
  readonly #openedMs: number;
  #writtenMs = Number.NEGATIVE_INFINITY;
  #progressMs: number;
  /** When the last look found that nothing moves. */
  #stuckMs = Number.NEGATIVE_INFINITY;
  /** When the last look did not show that bytes arrive. */
  #healthySinceMs = Number.NEGATIVE_INFINITY;
  /** When this side was closed. */
  #finMs: number | null = null;

  constructor(
    socket: Socket,
    to: { readonly address: Address; readonly habit: Habit },
    world: { readonly clock: Clock; readonly events: ConnectionEvents },
  ) {
    this.#socket = socket;
    this.#address = to.address;
    this.#habit = to.habit;
    this.#clock = world.clock;
    this.#events = world.events;
    this.#arrival = new Arrival(socket);
    this.#openedMs = world.clock.monotonic();
    this.#progressMs = this.#openedMs;
    socket.on('end', () => this.#peerEnded());
    socket.on('error', (error) => this.#break(() => brokenConnection(this.#address, error)));
    socket.on('close', () => this.#break(() => broken(this.#address, 'the connection was closed')));
    // Receivers send nothing; reading makes a FIN or a reset visible.
    socket.resume();
  }

  /** Whether a batch may be written now. */
  get hasRoom(): boolean {
    const ahead = this.#written - this.#flushed;
    return this.#state === 'open' && ahead < aheadBytesMax && this.#written < this.#habit.bytesMax;
  }

  /** Whether `finish` should be called, to make the receiver confirm what it has read. */
  get isDue(): boolean {
    if (this.#state !== 'open') return false;
    const { oldest } = this.#carried;
    const nowMs = this.#clock.monotonic();
    const { settling, settlesBy, bytesMax, ageMsMax } = this.#habit;
    if (settlesBy === 'window') return nowMs - this.#openedMs >= ageMsMax;
    if (oldest === undefined) return false;
    // While nothing moves, another connection would only fill up as well.
    const sinceMs = Math.max(oldest.writtenMs, this.#stuckMs);
    return nowMs - sinceMs >= settling.windowMs || this.#written >= bytesMax;
  }

  /** Whether nothing was written lately, so that closing delays no sender. */
  get isQuiet(): boolean {
    return this.#clock.monotonic() - this.#writtenMs > this.#habit.settling.windowMs / 2;
  }

  /** Writes a batch's frames, at least one; releases them once the kernel has them. */
  write({ bytes, release }: Frames, waiter: Waiter): void {
    const writtenMs = this.#clock.monotonic();
    if (this.#carried.oldest === undefined) this.#progressMs = writtenMs;
    this.#writtenMs = writtenMs;
    this.#written += bytes.length;
    const carried = this.#carried.add({ end: this.#written, writtenMs, waiter });
    for (let start = 0; start < bytes.length; start += writeBytesMax) {
      const part = bytes.subarray(start, start + writeBytesMax);
      this.#socket.write(part, (error) => {
        if (error) return; // 'error' or 'close' reports it.
        this.#flushed += part.length;
        if (this.#flushed < carried.end) return;
        carried.flushedMs = this.#clock.monotonic();
        release();
        this.#events.room();
      });
    }
    void this.#watch();
    if (this.isDue) this.#events.due();
  }

  /**
   * Closes this side and waits for the receiver to close its own, which it does when it has read
   * everything (RFC 9293, section 3.6). With `withinMs` every batch has its result after that at
   * the latest; may be called again to set it.
   */
  finish(withinMs: number | null = null): void {
    if (this.#state === 'over') return;
    if (this.#state === 'open') {
      this.#state = 'finishing';
      if (this.#carried.isAbandoned) {
        if (this.#flushed < this.#written) this.#socket.destroy();
        else this.#socket.destroySoon();
        this.#end(null);
        return;
      }
      void this.#endOurSide();
    }
    if (withinMs !== null) this.#endWithin(withinMs);
  }

  /** Sends everything back for another attempt, for a fault of another connection, and closes. */
  giveUp(cause: ExportError): void {
    this.#carried.sendBack(cause);
    this.finish();
  }

  // Only once the peer's TCP stack has everything does a FIN in reply to ours prove that all was
  // read: a program that closes before sends a reset instead, and one that closed before the last
  // bytes came never acknowledges them.
  async #endOurSide(): Promise<void> {
    try {
      for (let waitMs = drainLookMs; this.#state === 'finishing'; waitMs *= 2) {
        if (await this.#hasArrived()) break;
        await this.#clock.sleep(Math.min(waitMs, drainLookMsMax), this.#ended.signal);
      }
      if (this.#state !== 'finishing') return;
      this.#socket.end();
      this.#finMs = this.#clock.monotonic();
      this.#events.ended();
      await this.#clock.sleep(this.#habit.answerMsMax, this.#ended.signal);
      this.#unanswered();
    } catch {
      // The connection is closed: every batch has its result.
    }
  }

  /** Whether the peer's TCP stack has everything. */
  async #hasArrived(): Promise<boolean> {
    // It cannot have what this kernel has not accepted: the table is not read.
    if (this.#flushed < this.#written) return false;
    return (await this.#arrival.look(this.#flushed)) >= this.#written;
  }

  #unanswered(): void {
    const waitMs = this.#habit.answerMsMax;
    if (this.#habit.unanswered() === 'delivered') this.#confirm();
    else this.#break(() => this.#notClosed(waitMs));
  }

  #endWithin(waitMs: number): void {
    this.#clock.sleep(waitMs, this.#ended.signal).then(
      () => this.#break(() => this.#notClosed(waitMs)),
      () => undefined, // Closed: every batch has its result.
    );
  }

  #notClosed(waitMs: number): ExportError {
    const what = `the receiver has not closed its side within ${waitMs / 1000} s of ours`;
    const { confirm } = this.#habit.settling;
    const hint = confirm === 'close' ? 'If it never does that, use confirm: window.' : '';
    return broken(this.#address, what, { hint });
  }

  #peerEnded(): void {
    if (!this.#socket.writableEnded) {
      this.#break(() => broken(this.#address, 'the receiver closed the connection'));
    } else if (this.#state === 'finishing') {
      const nowMs = this.#clock.monotonic();
      this.#habit.answered(nowMs - (this.#finMs ?? nowMs), this.#written);
      this.#confirm();
    }
  }

  // One loop while anything is unsettled: it settles due batches and detects a stall.
  async #watch(): Promise<void> {
    if (this.#watching) return;
    this.#watching = true;
    const carried = this.#carried;
    const { windowMs, stallMs } = this.#habit.settling;
    const shortestMs = Math.max(5, Math.min(windowMs, stallMs) / 4);
    let tickMs = shortestMs;
    try {
      for (let { oldest } = carried; oldest !== undefined; oldest = carried.oldest) {
        // All flushed: nothing changes before the oldest is due, and looking is costly.
        const fromMs = this.#habit.settlesBy === 'close' ? oldest.writtenMs : oldest.flushedMs;
        const idleMs =
          this.#flushed < this.#written ? tickMs : fromMs + windowMs - this.#clock.monotonic();
        await this.#clock.sleep(Math.max(idleMs, tickMs), this.#ended.signal);
        const begunMs = this.#clock.monotonic();
        await this.#look();
        const lookedMs = this.#clock.monotonic() - begunMs;
        tickMs = Math.max(shortestMs, Math.min(lookedMs * lookShareMax, windowMs, stallMs / 4));
      }
    } catch {
      // The connection is closed: every batch has its result.
    } finally {
      this.#watching = false;
    }
  }

  async #look(): Promise<void> {
    const flushed = this.#flushed;
    // Bytes that the kernel has accepted since are progress too, and where the receiver's FIN
    // settles batches, the table would show nothing that counts: it is not read.
    const isFlowing = this.#habit.settlesBy === 'close' && flushed > this.#flushedSeen;
    this.#flushedSeen = flushed;
    const reached = isFlowing ? this.#arrival.bytes : await this.#arrival.look(flushed);
    if (this.#state === 'over') return;
    const nowMs = this.#clock.monotonic();
    const moved = reached > this.#seen || reached === this.#written;
    this.#seen = reached;
    if (moved || isFlowing) this.#progressMs = nowMs;
    else this.#stuckMs = nowMs;
    // While nothing moves the receiver may hang, and its unread bytes would be lost in a reset.
    if (!moved) this.#healthySinceMs = nowMs;

    const { stallMs } = this.#habit.settling;
    if (nowMs - this.#progressMs >= stallMs) {
      this.#break(() => broken(this.#address, `nothing has moved for ${stallMs / 1000} s`));
    } else {
      this.#settleDue(nowMs);
    }
  }

  #settleDue(nowMs: number): void {
    if (this.isDue) this.#events.due();
    if (this.#habit.settlesBy === 'close') return;
    const { windowMs } = this.#habit.settling;
    const isSettled = ({ end, flushedMs }: UnsettledBatch) =>
      end <= this.#arrival.bytes && Math.max(flushedMs, this.#healthySinceMs) + windowMs <= nowMs;
    this.#carried.settle(isSettled);
    if (this.#state === 'finishing' && this.#carried.oldest === undefined) this.#confirm();
  }

  /** Everything was read. */
  #confirm(): void {
    this.#carried.settle();
    this.#socket.destroy();
    this.#end(null);
  }

  #break(cause: () => ExportError): void {
    if (this.#state === 'over') return;
    this.#socket.destroy();
    const why = cause();
    if (this.#finMs !== null) this.#habit.broke(this.#clock.monotonic() - this.#finMs);
    this.#carried.sendBack(why);
    this.#end(why);
  }

  #end(cause: ExportError | null): void {
    this.#state = 'over';
    this.#ended.abort();
    this.#events.over(cause);
  }
}
