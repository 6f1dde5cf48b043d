// Sends batches over RELP, where the receiver answers each message: what it has answered is delivered,
// what it has not goes again over a new session. One batch at a time, so that after a break only the
// window is repeated. Two things are judged here that RELP leaves open. A receiver ends the session
// over a message that is longer than it takes, and would do so for ever (rsyslog issues 1782, 2190):
// the first unanswered message is suspected, is sent alone, and once sessions end over it again and
// again is refused. And `500` says neither whether the message is wrong nor whether the disk is full:
// so it goes again, and is refused only where the receiver takes another one meanwhile.
//
// What must stay true: nothing is delivered that was not answered with 200; a receiver that takes
// nothing makes no dead letters.

import { ExportError, invariant } from '../../../src/contracts/errors.ts';
import type { Uid } from '../../../src/contracts/event.ts';
import type { EncodedLines } from '../../../src/contracts/format.ts';
import type { Batch, Delivery, Sink } from '../../../src/contracts/sink.ts';
import type { Clock } from '../../../src/contracts/tools.ts';
import { lineAt } from '../../shared/lines.ts';
import { untilAborted } from '../../shared/until-aborted.ts';
import type { SyslogReceiver } from './dial.ts';
import { connectFailure } from './failures.ts';
import { type Answers, RelpSession, type RelpWindow } from './relp-session.ts';

// Sessions that must end over the same message: a longer one than any that was taken is most likely
// what ends them; with another it may be a receiver that is being restarted again and again.
const endsOverLong = 2;
const endsOverOther = 5;

/** A message that sessions have ended over. */
interface Suspect {
  readonly uid: Uid;
  readonly ends: number;
  /** It and so many behind it were unanswered: they go one by one. */
  readonly careful: number;
}

/** See the head of this file. */
export class RelpSender implements Sink {
  readonly #to: SyslogReceiver;
  readonly #window: RelpWindow;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #session: RelpSession | null = null;
  #suspect: Suspect | null = null;
  /** The longest message that was taken, in bytes; 0: none was. */
  #longest = 0;
  /** A message that was taken, to see whether the receiver takes any. */
  #taken: EncodedLines | null = null;

  constructor(to: SyslogReceiver, window: RelpWindow, clock: Clock) {
    this.#to = to;
    this.#window = window;
    this.#clock = clock;
  }

  /** One batch; rejects only when the signal aborts, and then the session ends with it. */
  send(batch: Batch, signal: AbortSignal): Promise<Delivery> {
    if (batch.events.length === 0) return Promise.resolve({ outcome: 'delivered' });
    return untilAborted(this.#send(batch, signal), signal, () => {
      this.#session?.drop('sluice is ending');
    });
  }

  /** Ends the session in order. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#session?.close();
  }

  async #send(batch: Batch, signal: AbortSignal): Promise<Delivery> {
    let session: RelpSession;
    try {
      session = await this.#opened(signal);
    } catch (error) {
      signal.throwIfAborted();
      return { outcome: 'retry', cause: connectFailure(this.#to.address, error) };
    }
    const answers = await this.#carry(session, batch);
    const takenAt = this.#remember(batch, answers);
    const isWhole = answers.length === batch.events.length && !answers.includes(null);
    if (!isWhole && session.end !== null) return this.#brokenOff(batch, answers, session);
    this.#suspect = null;
    if (takenAt.length === batch.events.length) return { outcome: 'delivered' };
    if (takenAt.length > 0) return { outcome: 'partly', refused: [], again: left(batch, answers) };
    return await this.#allRefused(batch, answers, session);
  }

  async #opened(signal: AbortSignal): Promise<RelpSession> {
    if (this.#session === null || this.#session.end !== null) {
      this.#session = null;
      const either = AbortSignal.any([signal, this.#closing.signal]);
      const world = { clock: this.#clock, signal: either };
      this.#session = await RelpSession.open(this.#to, this.#window, world);
    }
    return this.#session;
  }

  /** One by one what was unanswered when a session ended, then the rest. */
  async #carry(session: RelpSession, { events, lines }: Batch): Promise<Answers> {
    const suspect = this.#suspect;
    const isSuspected = events.some(({ uid }) => uid === suspect?.uid);
    const careful = isSuspected ? Math.min(suspect?.careful ?? 0, events.length) : 0;
    const first = await session.carry(lines, { from: 0, to: careful }, 1);
    if (session.end !== null) return first;
    const range = { from: careful, to: events.length };
    return [...first, ...(await session.carry(lines, range, this.#window.messages))];
  }

  #remember({ lines }: Batch, answers: Answers): readonly number[] {
    const taken = answers.flatMap((answer, i) => (answer === '' ? [i] : []));
    for (const i of taken) {
      this.#longest = Math.max(this.#longest, (lines.ends[i] ?? 0) - (lines.starts[i] ?? 0));
    }
    const last = taken.at(-1);
    if (last !== undefined) this.#taken = onlyLine(lineAt(lines, last));
    return taken;
  }

  /** The session is over, and something has no answer. */
  #brokenOff(batch: Batch, answers: Answers, session: RelpSession): Delivery {
    const { cause, byReceiver } = session.end ?? {};
    const again = left(batch, answers);
    const index = batch.events.findIndex((_, i) => (answers[i] ?? null) === null);
    const first = batch.events[index]?.uid;
    invariant(
      cause !== undefined && first !== undefined,
      'a session broke before all was answered',
    );
    const before = this.#suspect?.uid === first ? this.#suspect.ends : 0;
    const ends = before + (byReceiver ? 1 : 0);
    const careful = Math.min(again.length, this.#window.messages);
    this.#suspect = { uid: first, ends, careful };
    const bytes = lineAt(batch.lines, index).length;
    const isGuilty = ends >= (bytes > this.#longest ? endsOverLong : endsOverOther);
    if (!isGuilty) {
      return again.length === batch.events.length
        ? { outcome: 'retry', cause }
        : { outcome: 'partly', refused: [], again };
    }
    const reason = `the receiver ended ${ends} sessions over this message of ${bytes} bytes${this.#limit(bytes)}`;
    // Where nothing was ever taken, the engine finds out whether anything is.
    if (this.#longest === 0) return refusedWhole(reason);
    return {
      outcome: 'partly',
      refused: [{ uid: first, reason }],
      again: again.filter((uid) => uid !== first),
    };
  }

  #limit(bytes: number): string {
    if (bytes <= this.#longest) return '';
    const least = this.#longest === 0 ? '' : `at least ${this.#longest} and `;
    return `: its limit is ${least}less than that (rsyslog: maxDataSize of imrelp); raise it or lower max_message`;
  }

  /** Every message was answered with another code than 200: is it them, or the receiver? */
  async #allRefused(batch: Batch, answers: Answers, session: RelpSession): Promise<Delivery> {
    const reason = `the receiver answered ${answers[0]}`;
    const [event] = batch.events;
    if (this.#taken === null || event === undefined) return refusedWhole(reason);
    const other = await session.carry(this.#taken, { from: 0, to: 1 }, 1);
    const repeated = await session.carry(batch.lines, { from: 0, to: 1 }, 1);
    if (other[0] === '' && repeated[0] === '') return this.#againBut(batch, []);
    if (other[0] === '' && repeated[0]) {
      return this.#againBut(batch, [
        { uid: event.uid, reason: `the receiver answered ${repeated[0]}` },
      ]);
    }
    const cause = session.end?.cause ?? answeredFailure(this.#to, reason);
    return { outcome: 'retry', cause };
  }

  #againBut(batch: Batch, refused: Extract<Delivery, { outcome: 'partly' }>['refused']): Delivery {
    const again = batch.events.slice(1).map(({ uid }) => uid);
    return refused.length + again.length === 0
      ? { outcome: 'delivered' }
      : { outcome: 'partly', refused, again };
  }
}

function left({ events }: Batch, answers: Answers): readonly Uid[] {
  return events.flatMap(({ uid }, i) => (answers[i] === '' ? [] : [uid]));
}

function onlyLine(line: Uint8Array): EncodedLines {
  const bytes = new Uint8Array(line);
  return { bytes, starts: new Uint32Array(1), ends: Uint32Array.of(bytes.length), length: 1 };
}

function refusedWhole(reason: string): Delivery {
  const cause = new ExportError('record_refused', reason, {
    next: 'See the receiver’s log; an event that is refused by itself is kept as a dead letter.',
  });
  return { outcome: 'refused', scope: 'batch', cause };
}

function answeredFailure({ address }: SyslogReceiver, reason: string): ExportError {
  return new ExportError('sink_unreachable', `sending to ${address.text}: ${reason}`, {
    next: 'Look at the receiver’s log, and whether its disk is full. Nothing was lost: the events stay held and are sent again by themselves.',
    details: { address: address.text },
  });
}
