// The connection to an HTTP Event Collector. Batches are posted one after the other, in spool order,
// and each waits until an indexer confirms that it is written; meanwhile the next ones are posted.
// The connection has a channel of its own. If another indexer responds, the waiting batches are sent
// again. If it is unknown whether a post arrived, a new channel is started: the batches waiting on
// the previous one are still queried if cookies identify the indexer, and sent again otherwise.
// Invariants:
//
//   - one request at a time, and no post on a channel after an unanswered one: each id on it is known
//     before the next query, so that no `true` is assigned to another batch;
//   - nothing is posted after a batch that must be sent again, until all earlier ones are settled;
//   - a batch is released once it is posted: many wait, and only their ids are kept.

import { randomUUID } from 'node:crypto';
import {
  type Batch,
  type Delivery,
  type Event,
  ExportError,
  HttpFailure,
  type Notice,
  type Tools,
  untilAborted,
} from '../../../src/contracts/index.ts';
import { type PartAnswer, type Range, sendInHalves } from '../../shared/halves.ts';
import { type HttpReceiver, heldNext, isCopied } from '../../shared/http-post.ts';
import { linesOf } from '../../shared/lines.ts';
import { Acks } from './acks.ts';
import { noAckNext, noCollector, readAcks } from './answer.ts';
import { Cookies } from './cookies.ts';
import { type Posted, type PostedPart, settled, uidsOf } from './posted.ts';
import { requestCollector } from './wire.ts';

/** Options of a collector connection. */
export interface CollectorDeps {
  readonly events: HttpReceiver;
  readonly acks: HttpReceiver;
  readonly ack: 'required' | 'off';
  readonly ackTimeoutMs: number;
  /** Null: a random one. */
  readonly channel: string | null;
  /** Names the index of a source's events in error messages. */
  indexOf(event: Event | undefined): string;
  /** True if events are for several indexes, by their source. */
  readonly hasIndexes: boolean;
  /** Start of every error message. */
  readonly doing: string;
  readonly tools: Tools;
}

/** Batches that are posted or wait for it: the next one is encoded while one is in flight. */
const postingMax = 2;
/** Query interval: half of the time waited so far, within bounds. */
const pollMsMin = 200;
const pollMsMax = 10_000;
const closingMsMax = 1_000;

/** One connection; see the file's head. */
export class HecConnection {
  readonly #deps: CollectorDeps;
  readonly #cookies = new Cookies();
  #acks: Acks;
  /** Earlier channels, on which nothing is posted any more. */
  #earlier: readonly Acks[] = [];
  /** Settles when no request is in flight. */
  #turn: Promise<unknown> = Promise.resolve();
  #posting = 0;
  #unsettled = 0;
  /** Why something must be sent again; null once everything sent before is settled. */
  #broken: ExportError | null = null;
  /** Why the indexed batches cannot be queried. */
  #unheard: ExportError | null = null;
  #polling: Promise<void> | null = null;
  /** End the wait before a query; and the query. */
  #pause = new AbortController();
  #question = new AbortController();
  #isClosing = false;

  constructor(deps: CollectorDeps) {
    this.#deps = deps;
    this.#acks = this.#begun();
  }

  get notice(): Notice | null {
    if (this.#unheard === null || this.#waiting.length === 0) return null;
    const { message, next } = this.#unheard;
    return { what: `the indexing status cannot be requested: ${message}`, next };
  }

  send(batch: Batch, signal: AbortSignal, freeLines?: () => void): Promise<Delivery> {
    this.#posting += 1;
    this.#unsettled += 1;
    const posted = this.#inTurn(() => this.#post(batch, signal, freeLines)).finally(this.#posted);
    // Not in a closure that references the batch, which would stay in memory until the whole is
    // indexed.
    return untilAborted(posted.then(settled), signal, this.#giveUp).finally(this.#settled);
  }

  async ready(signal: AbortSignal): Promise<void> {
    while (this.#posting >= postingMax) await untilAborted(this.#turn, signal);
  }

  /** Queries until nothing waits; the signal of `send` bounds that. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#pause.abort();
    await this.#polling;
  }

  readonly #posted = (): void => {
    this.#posting -= 1;
  };

  readonly #settled = (): void => {
    this.#unsettled -= 1;
    if (this.#unsettled === 0) this.#broken = null;
  };

  readonly #giveUp = (): void => {
    for (const acks of this.#waiting) acks.forgetAborted();
    if (this.#waiting.length > 0) return;
    this.#pause.abort();
    this.#question.abort();
  };

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  async #post(batch: Batch, signal: AbortSignal, freeLines?: () => void): Promise<Posted> {
    signal.throwIfAborted();
    if (this.#broken !== null) {
      return { answer: { outcome: 'retry', cause: this.#broken }, parts: [] };
    }
    const parts: PostedPart[] = [];
    const answer = await sendInHalves(batch, (range) =>
      this.#postPart(batch, { range, signal, parts }),
    );
    if (answer.outcome === 'retry' || answer.outcome === 'refused') this.#broken = answer.cause;
    if (answer.outcome === 'partly' && answer.again.length > 0) {
      this.#broken ??= this.#failure('a part of a batch was not accepted');
    }
    if (isCopied(this.#deps.events)) freeLines?.();
    return { answer, parts };
  }

  async #postPart(
    batch: Batch,
    about: { readonly range: Range; readonly signal: AbortSignal; readonly parts: PostedPart[] },
  ): Promise<PartAnswer> {
    const { doing, events: receiver, ack, tools, hasIndexes } = this.#deps;
    const { range, signal, parts } = about;
    const { channel } = this.#acks;
    const indexOf = (place: number) => this.#deps.indexOf(batch.events[range.from + place]);
    const body = linesOf(batch.lines, range);
    const { answer, said, cookies } = await requestCollector({
      ...{
        receiver,
        body,
        channel,
        cookies: this.#cookies,
        doing,
        tools,
        signal,
        indexOf,
        hasIndexes,
      },
    });
    if (said !== null && this.#cookies.take(cookies)) this.#lose(this.#moved);
    if (answer.outcome !== 'accepted') {
      if (said?.code === 11) this.#renew(answer.cause);
      else if (said === null && mayHaveArrived(answer)) this.#leave(answer.cause);
      return answer;
    }
    if (said?.code !== 0) {
      const cause = noCollector(answer.response, doing);
      this.#leave(cause);
      return { outcome: 'refused', scope: 'sink', cause };
    }
    if (ack === 'required' && said.ackId === null) {
      return { outcome: 'refused', scope: 'sink', cause: noAck(doing) };
    }
    if (ack === 'off' || said.ackId === null) return { outcome: 'delivered' };
    if (this.#acks.has(said.ackId)) {
      const cause = this.#failure('the receiver issued an ack id a second time');
      this.#renew(cause);
      return { outcome: 'retry', cause };
    }
    const end = this.#acks.add(said.ackId, { sinceMs: tools.clock.monotonic(), signal });
    parts.push({ end, uids: uidsOf(batch, range) });
    this.#polling ??= this.#pollUntilDone();
    return { outcome: 'delivered' };
  }

  async #pollUntilDone(): Promise<void> {
    const { clock } = this.#deps.tools;
    while (this.#waiting.length > 0) {
      this.#pause = new AbortController();
      this.#question = new AbortController();
      const { signal } = this.#question;
      await clock.sleep(this.#pollAfterMs, this.#pause.signal).catch(() => undefined);
      for (const acks of this.#waiting) {
        await this.#inTurn(() => this.#pollIndexed(acks, signal)).catch((error) => {
          if (!signal.aborted) throw error;
        });
      }
      this.#giveUpLate();
      this.#earlier = this.#earlier.filter(({ size }) => size > 0);
    }
    this.#polling = null;
  }

  /** The channels with waiting batches. */
  get #waiting(): readonly Acks[] {
    return [...this.#earlier, this.#acks].filter(({ size }) => size > 0);
  }

  get #pollAfterMs(): number {
    const sinceMs = Math.min(...this.#waiting.map((acks) => acks.sinceMs));
    const lastedMs = this.#deps.tools.clock.monotonic() - sinceMs;
    return Math.max(pollMsMin, Math.min(lastedMs / 2, this.#isClosing ? closingMsMax : pollMsMax));
  }

  async #pollIndexed(acks: Acks, signal: AbortSignal): Promise<void> {
    const { ids, channel } = acks;
    if (ids.length === 0) return;
    const { acks: receiver, tools } = this.#deps;
    const doing = `${this.#deps.doing}: requesting the indexing status`;
    const body = Buffer.from(JSON.stringify({ acks: ids }));
    const { answer, said, cookies } = await requestCollector({
      ...{ receiver, body, channel, cookies: this.#cookies, doing, tools, signal },
    });
    if (answer.outcome !== 'accepted') {
      this.#unheard = answer.cause;
      // An unknown channel, or a token without acknowledgement, will never confirm.
      if (said?.code === 11 || said?.code === 14) this.#renew(answer.cause);
      return;
    }
    const indexed = readAcks(answer.response.body, ids);
    if (indexed === null) {
      this.#unheard = noCollector(answer.response, doing);
      return;
    }
    this.#unheard = null;
    acks.confirm(indexed);
    const isHers = indexed.length > 0;
    if (this.#cookies.take(cookies, isHers)) this.#renew(this.#moved);
    if (isHers) this.#cookies.settle();
  }

  #giveUpLate(): void {
    const { tools, ackTimeoutMs } = this.#deps;
    const why = this.#unheard === null ? '' : `; ${this.#unheard.message}`;
    const word = `no acknowledgement within ${ackTimeoutMs / 1000} s that sent events are indexed${why}`;
    this.#lose(this.#failure(word), tools.clock.monotonic() - ackTimeoutMs);
  }

  /** Waiting batches that were posted before are sent again. */
  #lose(cause: ExportError, untilMs?: number): void {
    for (const acks of this.#waiting) if (acks.lose(cause, untilMs)) this.#broken ??= cause;
  }

  /** Waiting batches are sent again, on a new channel. */
  #renew(cause: ExportError): void {
    this.#lose(cause);
    this.#acks = this.#begun();
  }

  /** Nothing is posted on the channel any more. */
  #leave(cause: ExportError): void {
    if (this.#cookies.size === 0) this.#lose(cause);
    this.#earlier = this.#waiting;
    this.#acks = this.#begun();
  }

  #begun(): Acks {
    return new Acks(this.#deps.channel ?? randomUUID());
  }

  get #moved(): ExportError {
    return this.#failure('another indexer responds, which does not know the sent events');
  }

  #failure(what: string): ExportError {
    const next = `Look at the indexer’s health, and whether the load balancer keeps to one. ${heldNext}`;
    return new ExportError('sink_unreachable', `${this.#deps.doing}: ${what}`, { next });
  }
}

/** False only if the request cannot have left this machine. */
function mayHaveArrived({ cause }: { readonly cause: ExportError }): boolean {
  return !(cause.cause instanceof HttpFailure && cause.cause.reason === 'unreachable');
}

function noAck(doing: string): ExportError {
  const message = `${doing}: ack is required, and the token does not acknowledge`;
  return new ExportError('sink_refused', message, { next: noAckNext });
}
