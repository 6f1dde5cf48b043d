// One RELP session with a receiver: opened once, then messages within a window, each acknowledged
// by its transaction number, in any order (librelp issue 288: the specification requires order and
// contradicts itself). A session ends with the receiver's FIN, reset or `serverclose`, with bytes
// that are no RELP, with a stall, or by sluice. Invariants: only a `rsp` of 200 to the same
// transaction marks its message as accepted; once over, a session changes nothing.

import type { Socket } from 'node:net';
import { type Clock, type EncodedLines, ExportError } from '../../../src/contracts/index.ts';
import type { Range } from '../../shared/halves.ts';
import { plainLine } from '../../shared/receiver-words.ts';
import type { Address } from './address.ts';
import { dial, type SyslogReceiver } from './dial.ts';
import { broken, brokenConnection } from './failures.ts';
import {
  FrameMemory,
  FrameReader,
  frameOf,
  type MessageFrames,
  type RelpFrame,
  stepsBetween,
  txnrAfter,
} from './relp-frames.ts';

/** Size and time limit of a session's window. */
export interface RelpWindow {
  /** Maximum unanswered messages. */
  readonly messages: number;
  /** A session without an expected response for this long is ended. */
  readonly stallMs: number;
}

/** The result of each message of a range: null if there is no response (yet). */
export type RelpResponses = (RelpResponse | null)[];

/** The receiver's response to one message: empty if accepted, otherwise the reason. */
export type RelpResponse = string;

/** Why a session is over; `byReceiver` if the receiver has ended it. */
export interface SessionEnd {
  readonly cause: ExportError;
  readonly byReceiver: boolean;
}

/** Maximum unanswered bytes; one message is always allowed. */
const bytesMax = 1024 * 1024;
/** Each write has a cost: the window is refilled once this share is free. */
const refillShare = 4;
const closeMs = 5_000;
// Version 0 is the version of every deployed peer, although the specification says 1.
const offers = 'relp_version=0\nrelp_software=sluice\ncommands=syslog';

interface Carrying {
  readonly frames: MessageFrames;
  readonly first: number;
  readonly answers: RelpResponses;
  readonly messagesMax: number;
  readonly done: PromiseWithResolvers<void>;
  sent: number;
  answered: number;
  answeredBytes: number;
}

/** One session; see the file's head. */
export class RelpSession {
  readonly #socket: Socket;
  readonly #address: Address;
  readonly #clock: Clock;
  readonly #window: RelpWindow;
  readonly #reader = new FrameReader();
  readonly #memory = new FrameMemory();
  readonly #over = new AbortController();
  #end: SessionEnd | null = null;
  #next = 1;
  #unflushed = 0;
  #carrying: Carrying | null = null;
  /** The caller that waits for the response to `open` or `close`. */
  #asked: { readonly txnr: number; readonly answer: PromiseWithResolvers<string> } | null = null;

  private constructor(socket: Socket, address: Address, window: RelpWindow, clock: Clock) {
    this.#socket = socket;
    this.#address = address;
    this.#clock = clock;
    this.#window = window;
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('end', () => this.#finish('the receiver ended the session', true));
    socket.on('close', () => this.#finish('the connection was closed', true));
    socket.on('error', (error) => this.#stop(brokenConnection(address, error), true));
  }

  /** Connects and opens a session. Rejects with an ExportError, or the signal's reason. */
  static async open(
    to: SyslogReceiver,
    window: RelpWindow,
    { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<RelpSession> {
    const socket = await dial(to, clock, signal);
    const session = new RelpSession(socket, to.address, window, clock);
    const abort = () => session.drop('sluice is ending');
    signal.addEventListener('abort', abort, { once: true });
    try {
      const said = await session.#ask('open', offers, to.connectTimeoutMs);
      if (!said.startsWith('200')) throw session.#refused(said);
      if (!/^commands=(.*,)?syslog(,|$)/m.test(said))
        throw session.#refused('it accepts no syslog');
      return session;
    } catch (error) {
      session.drop('it could not be opened');
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Why it is over; null while it is open. */
  get end(): SessionEnd | null {
    return this.#end;
  }

  /**
   * Sends the messages of a range, at most `messagesMax` unanswered at a time. Resolves to the
   * responses, once all have arrived or the session is over. One range at a time.
   */
  async carry(lines: EncodedLines, range: Range, messagesMax: number): Promise<RelpResponses> {
    const count = range.to - range.from;
    const answers: RelpResponses = new Array(count).fill(null);
    if (this.#end !== null || count === 0) return answers;
    const first = this.#next;
    const frames = this.#memory.frame(lines, range, first);
    this.#next = txnrAfter(first, count);
    const carrying: Carrying = {
      ...{ frames, first, answers, messagesMax, done: Promise.withResolvers<void>() },
      ...{ sent: 0, answered: 0, answeredBytes: 0 },
    };
    this.#carrying = carrying;
    this.#fill(carrying);
    const watched = new AbortController();
    void this.#watch(carrying, AbortSignal.any([watched.signal, this.#over.signal]));
    await carrying.done.promise;
    watched.abort();
    this.#carrying = null;
    if (this.#unflushed === 0) this.#memory.release(frames);
    return answers;
  }

  /** Ends an idle session regularly: `close`, and the receiver's response to it. */
  async close(): Promise<void> {
    if (this.#end === null) await this.#ask('close', '', closeMs).catch(() => undefined);
    this.drop('sluice has closed the session');
  }

  /** Ends it at once. */
  drop(why: string): void {
    this.#finish(why, false);
  }

  #fill(carrying: Carrying): void {
    const { bytes, ends } = carrying.frames;
    const { answered, answeredBytes, messagesMax } = carrying;
    const from = carrying.sent;
    const start = ends[from - 1] ?? 0;
    const untilMax = Math.min(ends.length, answered + messagesMax);
    let until = from;
    while (until < untilMax && (ends[until] ?? 0) - answeredBytes <= bytesMax) until++;
    if (until === from && answered === from && from < ends.length) until++;
    const isFew = (until - from) * refillShare < messagesMax && until < ends.length;
    if (until === from || (isFew && answered < from)) return;
    carrying.sent = until;
    this.#unflushed += 1;
    this.#socket.write(bytes.subarray(start, ends[until - 1]), () => {
      this.#unflushed -= 1;
    });
  }

  async #watch(carrying: Carrying, over: AbortSignal): Promise<void> {
    const { stallMs } = this.#window;
    try {
      for (let seen = -1; seen !== carrying.answered; ) {
        seen = carrying.answered;
        await this.#clock.sleep(stallMs, over);
      }
    } catch {
      return; // Everything is answered, or the session is over.
    }
    this.#finish(`nothing was answered for ${stallMs / 1000} s`, false);
  }

  #read(bytes: Buffer): void {
    if (this.#end !== null) return;
    const frames = this.#reader.push(bytes);
    if (frames === null) this.#nonsense('the server there does not speak RELP');
    for (const frame of frames ?? []) {
      if (this.#end === null) this.#take(frame);
    }
    const carrying = this.#carrying;
    if (carrying === null || this.#end !== null) return;
    if (carrying.answered === carrying.answers.length) carrying.done.resolve();
    else this.#fill(carrying);
  }

  #take({ txnr, command, data }: RelpFrame): void {
    if (txnr === 0) {
      // Other hints are ignored.
      const isEnd = command === 'serverclose';
      if (isEnd) this.#finish('the receiver announced the end of the session', true);
    } else if (command === 'rsp' && txnr === this.#asked?.txnr) {
      this.#asked.answer.resolve(data);
    } else if (command !== 'rsp' || !this.#answer(txnr, data)) {
      this.#nonsense('the receiver sent a response without a request');
    }
  }

  /** False if no message waits for this response. */
  #answer(txnr: number, data: string): boolean {
    const carrying = this.#carrying;
    if (carrying === null) return false;
    const { answers, first, frames } = carrying;
    const index = stepsBetween(first, txnr);
    if (index >= carrying.sent || answers[index] !== null) return false;
    answers[index] = data.startsWith('200') ? '' : plainLine(data) || 'no reason';
    carrying.answered += 1;
    carrying.answeredBytes += (frames.ends[index] ?? 0) - (frames.ends[index - 1] ?? 0);
    return true;
  }

  async #ask(command: string, data: string, withinMs: number): Promise<string> {
    const txnr = this.#next;
    this.#next = txnrAfter(txnr, 1);
    const answer = Promise.withResolvers<string>();
    this.#asked = { txnr, answer };
    const over = new AbortController();
    const late = this.#clock.sleep(withinMs, over.signal).then(() => {
      throw broken(this.#address, `no answer to ${command} within ${withinMs / 1000} s`, {
        hint: 'A receiver of plain syslog never answers: for that use tcp:// or tls://.',
      });
    });
    this.#socket.write(frameOf({ txnr, command, data }));
    try {
      return await Promise.race([answer.promise, late]);
    } finally {
      over.abort();
      late.catch(() => undefined);
      this.#asked = null;
    }
  }

  #refused(said: string): ExportError {
    const { text } = this.#address;
    return new ExportError('sink_refused', `opening a session with ${text}: ${plainLine(said)}`, {
      next: 'Check the receiver’s log for the reason why it refuses this machine. Nothing was lost.',
      details: { address: text },
    });
  }

  #nonsense(what: string): void {
    const { text } = this.#address;
    const cause = new ExportError('sink_refused', `sending to ${text}: ${what}`, {
      next: 'Use the port of the receiver’s RELP input, relps:// where it has TLS; for plain syslog use tcp:// or tls://. Nothing was lost.',
      details: { address: text },
    });
    this.#stop(cause, false);
  }

  #finish(what: string, byReceiver: boolean): void {
    if (this.#end === null) this.#stop(broken(this.#address, what), byReceiver);
  }

  #stop(cause: ExportError, byReceiver: boolean): void {
    if (this.#end !== null) return;
    this.#end = { cause, byReceiver };
    this.#socket.destroy();
    this.#over.abort();
    this.#asked?.answer.reject(cause);
    this.#carrying?.done.resolve();
  }
}
