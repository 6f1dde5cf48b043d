// Sends batches over RELP, where the receiver acknowledges each message: acknowledged messages are
// delivered, the others are sent again over a new session. One batch at a time, so that after a break
// only the window is repeated. Two cases that RELP leaves open are decided here. A receiver ends the
// session over a message that is longer than its limit, and would do so for ever (rsyslog issues
// 1782, 2190): the first unanswered message is suspected, is sent alone, and is refused once sessions
// end over it repeatedly. And `500` does not distinguish a wrong message from a full disk: a message
// with 500 that is followed by an accepted one is sent once more, and refused if the response is the
// same. Others are sent again, and if nothing of a batch is accepted, the engine finds the messages
// to blame (src/send/trial.ts).
//
// Invariants: nothing counts as delivered without a 200, and nothing with a 200 is sent again by this
// process.

import {
  type Batch,
  type Clock,
  type Delivery,
  type EncodedLines,
  ExportError,
  invariant,
  type Refusal,
  type Sink,
  type Uid,
  untilAborted,
} from '../../../src/contracts/index.ts';
import { lineAt } from '../../shared/lines.ts';
import type { SyslogReceiver } from './dial.ts';
import { connectFailure } from './failures.ts';
import { type RelpResponses, RelpSession, type RelpWindow } from './relp-session.ts';

// Sessions that must end over the same message: a longer message than any accepted one most likely
// is the cause; with any other the receiver may be restarting repeatedly.
const endsOverLong = 2;
const endsOverOther = 5;

/** A message that sessions have ended over. */
interface Suspect {
  readonly uid: Uid;
  readonly ends: number;
  /** It and this many messages after it were unanswered: they are sent one by one. */
  readonly careful: number;
}

/** See the file's head. */
export class RelpSender implements Sink {
  readonly #to: SyslogReceiver;
  readonly #window: RelpWindow;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #session: RelpSession | null = null;
  #suspect: Suspect | null = null;
  /** The longest accepted message, in bytes; 0: none. */
  #longest = 0;

  constructor(to: SyslogReceiver, window: RelpWindow, clock: Clock) {
    this.#to = to;
    this.#window = window;
    this.#clock = clock;
  }

  /** Frames are copies. */
  readonly isDoneOnceDelivered = true;

  /** One batch; rejects only when the signal aborts, and then the session ends with it. */
  send(batch: Batch, signal: AbortSignal): Promise<Delivery> {
    if (batch.events.length === 0) return Promise.resolve({ outcome: 'delivered' });
    return untilAborted(this.#send(batch, signal), signal, () => {
      this.#session?.drop('sluice is ending');
    });
  }

  /** Ends the session regularly. */
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
    // Another accepted message proves nothing about the one that sessions ended over.
    if (batch.events.some(({ uid }) => uid === this.#suspect?.uid)) this.#suspect = null;
    if (takenAt.length === batch.events.length) return { outcome: 'delivered' };
    const last = takenAt.at(-1);
    if (last !== undefined) return await this.#judge(session, { batch, answers, last });
    return refusedWhole(`the receiver answered ${answers[0]}`);
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

  /** The messages unanswered at a session's end one by one, then the rest. */
  async #carry(session: RelpSession, { events, lines }: Batch): Promise<RelpResponses> {
    const suspect = this.#suspect;
    const isSuspected = events.some(({ uid }) => uid === suspect?.uid);
    const careful = isSuspected ? Math.min(suspect?.careful ?? 0, events.length) : 0;
    const first = await session.carry(lines, { from: 0, to: careful }, 1);
    if (session.end !== null) return first;
    const range = { from: careful, to: events.length };
    return [...first, ...(await session.carry(lines, range, this.#window.messages))];
  }

  #remember({ lines }: Batch, answers: RelpResponses): readonly number[] {
    const taken = answers.flatMap((answer, i) => (answer === '' ? [i] : []));
    for (const i of taken) {
      this.#longest = Math.max(this.#longest, (lines.ends[i] ?? 0) - (lines.starts[i] ?? 0));
    }
    return taken;
  }

  /** Sends messages once more that were rejected before an accepted one. */
  async #judge(
    session: RelpSession,
    { batch, answers, last }: { batch: Batch; answers: RelpResponses; last: number },
  ): Promise<Delivery> {
    const doubtful = answers.flatMap((answer, at) => (answer !== '' && at < last ? [at] : []));
    const range = { from: 0, to: doubtful.length };
    const lines = linesAt(batch.lines, doubtful);
    const second = await session.carry(lines, range, this.#window.messages);
    const final = answers.slice();
    for (const [n, at] of doubtful.entries()) final[at] = second[n] ?? null;
    const refused: Refusal[] = [];
    const again: Uid[] = [];
    for (const [at, { uid }] of batch.events.entries()) {
      const answer = final[at] ?? null;
      if (answer === '') continue;
      if (answer === null || at > last) again.push(uid);
      else refused.push({ uid, reason: `the receiver answered ${answer}` });
    }
    const isDelivered = refused.length + again.length === 0;
    return isDelivered ? { outcome: 'delivered' } : { outcome: 'partly', refused, again };
  }

  /** The session is over, and some messages have no response. */
  #brokenOff(batch: Batch, answers: RelpResponses, session: RelpSession): Delivery {
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
    // If nothing was ever accepted, the engine finds out whether anything is.
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
}

function left({ events }: Batch, answers: RelpResponses): readonly Uid[] {
  return events.flatMap(({ uid }, i) => (answers[i] === '' ? [] : [uid]));
}

/** Some of the lines, by their indexes. */
function linesAt({ bytes, starts, ends }: EncodedLines, indexes: readonly number[]): EncodedLines {
  const picked = (places: Uint32Array) => Uint32Array.from(indexes, (at) => places[at] ?? 0);
  return { bytes, starts: picked(starts), ends: picked(ends), length: indexes.length };
}

function refusedWhole(reason: string): Delivery {
  const cause = new ExportError('record_refused', reason, {
    next: 'See the receiver’s log; an event that is refused by itself is kept as a dead letter.',
  });
  return { outcome: 'refused', scope: 'batch', cause };
}
