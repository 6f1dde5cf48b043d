// A list whose records upstream pushes. A request is judged (delivery.ts) and waits for the next poll, which stores all
// waiting deliveries in one transaction and then answers them: many at once cost as much as one. Invariants: no
// delivery is acknowledged before it is durable; a delivery is dropped only if both its id and its body are known. The
// id may be outside the signed text, so the same id with another body is another record, and so is the same body with
// another id.

import { hash } from 'node:crypto';
import {
  type Clock,
  ExportError,
  isObject,
  type Json,
  type Log,
  type NewPage,
  type PushStream,
  type Spool,
} from '../contracts/index.ts';
import { asWords, Identifier, identityWords, keyBytes, Repeats } from '../list/index.ts';
import { checkpointMismatch, mismatch, type PollResult, pageContext } from '../poll/index.ts';
import { fingerprintOf, refreshSecrets } from '../tools/index.ts';
import { readBody } from './body.ts';
import {
  type DeliveryRefusal,
  inList,
  onlyOne,
  recordsIn,
  refusalOfBody,
  refusalOfHead,
} from './delivery.ts';
import type { DeliveryEndpoint, Exchange } from './listener.ts';

/** Dependencies of a pushed stream. */
export interface PushDeps {
  readonly stream: PushStream;
  readonly spool: Pick<Spool, 'append' | 'recall' | 'room'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly endpoint: DeliveryEndpoint;
  /** Triggers a poll, because a delivery waits. */
  readonly wake: () => void;
  /** Called with the names of the events received; null: an event without a name. */
  readonly announced: (events: ReadonlySet<string | null>) => void;
}

/** Deliveries since the stream was created, by outcome. */
export type DeliveryCounts = Readonly<Record<'taken' | 'repeated' | DeliveryRefusal, number>>;

/** Limits of one transaction, so the first of many deliveries is not answered last. */
const batchDeliveriesMax = 500;
const batchBytesMax = 8 * 1024 * 1024;
/** Longest wait for room in the spool with deliveries unanswered, milliseconds. */
const roomMsMax = 1_000;
/** This many wrong signatures without a right one are no stranger's requests. */
const forgedMin = 10;
/** A delivery's id is unverified text: of a longer one the beginning is kept. */
const textMax = 256;

interface Waiting {
  /** The uid of the whole delivery. */
  readonly uid: Buffer;
  /** One page for each of its records. */
  readonly pages: readonly NewPage[];
  readonly event: string | null;
  /** Callbacks of its senders: called once it is durable, or could not be stored. */
  readonly settle: ((why: DeliveryRefusal | null) => void)[];
}

/** Accepts one stream's deliveries. */
export class PushPoller {
  readonly #deps: PushDeps;
  readonly #identifier: Identifier;
  readonly #counts: Partial<Record<keyof DeliveryCounts, number>> = {};
  /** By uid, in order of arrival. */
  readonly #waiting = new Map<string, Waiting>();
  #known: Repeats | null = null;
  #forged = 0;
  #isFull = false;
  #isRefreshing = false;
  #isClosed = false;

  constructor(deps: PushDeps) {
    const { source, name } = deps.stream;
    this.#deps = deps;
    this.#identifier = new Identifier({ source, company: '', stream: name });
  }

  get counts(): Partial<DeliveryCounts> {
    return this.#counts;
  }

  /** Stores the waiting deliveries. The first poll opens the endpoint. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const { stream, spool, endpoint } = this.#deps;
    if (this.#known === null) {
      const { checkpoint, identities } = await spool.recall(stream.name);
      if (checkpoint !== null && !isOurs(checkpoint)) {
        return mismatch(checkpointMismatch(stream.name, 'it is of a source of another kind'));
      }
      const known = new Repeats();
      for (const { bytes } of identities) known.addAll(asWords(bytes), true);
      this.#known = known;
    }
    await endpoint.open((exchange) => {
      this.#take(exchange).catch((error) => {
        this.#deps.log.error('webhook_delivery_failed', 'storing a webhook delivery failed', {
          error: String(error),
        });
        exchange.refuse('not_held');
      });
    });
    const fresh = await this.#hold(this.#known, signal);
    const doubt = this.#doubt();
    return { outcome: 'done', fresh, more: this.#waiting.size > 0, ...(doubt && { doubt }) };
  }

  /** Answers waiting and later senders with a retryable response. */
  close(): void {
    this.#isClosed = true;
    this.#deps.endpoint.close();
    this.#refuseAll('closing');
  }

  async #take({ request, response, budget, ...exchange }: Exchange): Promise<void> {
    const { rules } = this.#deps.stream;
    const refuse = (why: DeliveryRefusal) => {
      this.#count(why);
      exchange.refuse(why);
    };
    const early = refusalOfHead(request, rules) ?? (this.#isFull ? 'full' : null);
    if (early !== null) return refuse(early);
    const read = await readBody(request, budget, rules.bodyBytesMax);
    if (read === 'gone') return;
    if (typeof read === 'string') return refuse(read);
    const { body, share } = read;
    response.once('close', () => share.release());
    const nowMs = this.#deps.clock.now();
    const judge = () => refusalOfBody(request, body, { rules, nowMs });
    let wrong = judge();
    if (wrong === 'forged') wrong = await this.#withNewSecrets(judge);
    this.#forged = wrong === 'forged' ? this.#forged + 1 : wrong === null ? 0 : this.#forged;
    if (wrong !== null) return refuse(wrong);
    if (this.#isClosed) return refuse('closing');
    share.prove();
    exchange.keep();
    const why = await this.#held(body, {
      id: onlyOne(request, rules.deliveryHeader)?.slice(0, textMax) ?? null,
      event: onlyOne(request, rules.eventHeader)?.slice(0, textMax) ?? null,
    });
    if (why === null) exchange.accept();
    else refuse(why);
  }

  /**
   * A command may print another secret by now: judges again with it. One delivery at a time waits for commands, so
   * senders without the secret occupy no more; the others can be sent again.
   */
  async #withNewSecrets(judge: () => DeliveryRefusal | null): Promise<DeliveryRefusal | null> {
    if (this.#isRefreshing) return 'no_secret';
    const { secrets } = this.#deps.stream.rules;
    const known = fingerprintOf(secrets);
    this.#isRefreshing = true;
    await refreshSecrets(secrets);
    this.#isRefreshing = false;
    return fingerprintOf(secrets) === known ? 'forged' : judge();
  }

  /** Resolves with null once the delivery is durable, or with the reason why it is not. */
  #held(
    body: Uint8Array,
    delivery: { readonly id: string | null; readonly event: string | null },
  ): Promise<DeliveryRefusal | null> {
    const { stream, clock, wake } = this.#deps;
    const identity = ['delivery', delivery.id ?? 0, hash('sha256', body)];
    const uid = this.#identifier.ownUid(identity);
    const key = uid.toString('hex');
    const { promise, resolve } = Promise.withResolvers<DeliveryRefusal | null>();
    const known = this.#waiting.get(key);
    if (known !== undefined || (this.#known?.value(identityOf(uid), 0) ?? -1) >= 0) {
      this.#count('repeated');
      if (known === undefined) resolve(null);
      else known.settle.push(resolve);
      return promise;
    }
    const context = { ...pageContext(stream, stream.records, clock.now()), delivery };
    const records = recordsIn(body);
    const page = { items: '', kept: null };
    const pages =
      records.length === 1 && records[0] === body
        ? [{ ...page, context, body: inList(body), uids: uid }]
        : records.map((record, at) => ({
            ...page,
            context: { ...context, delivery: { ...delivery, number: at + 1 } },
            body: inList(record),
            uids: this.#identifier.ownUid([...identity, at + 1]),
          }));
    this.#waiting.set(key, { uid, pages, event: delivery.event, settle: [resolve] });
    wake();
    return promise;
  }

  /** Stores as many waiting deliveries as fit in one transaction; returns their number. */
  async #hold(known: Repeats, signal: AbortSignal): Promise<number> {
    const { stream, spool, announced: reported } = this.#deps;
    if (this.#waiting.size === 0 || !(await this.#hasRoom(signal))) return 0;
    const batch = this.#nextBatch();
    if (batch.length === 0) return 0;
    const identities = new Uint32Array(batch.length * identityWords);
    for (const [at, [, { uid }]] of batch.entries()) {
      identities.set(identityOf(uid), at * identityWords);
    }
    const settleAll = (why: DeliveryRefusal | null) => {
      for (const [key, { settle }] of batch) {
        this.#waiting.delete(key);
        for (const settled of settle) settled(why);
      }
    };
    try {
      await spool.append({
        stream: stream.name,
        pages: batch.flatMap(([, { pages }]) => pages),
        checkpoint: ours,
        identities: new Uint8Array(identities.buffer),
      });
    } catch (error) {
      settleAll('not_held');
      throw error;
    }
    known.addAll(identities, true);
    this.#count('taken', batch.length);
    settleAll(null);
    reported(new Set(batch.map(([, { event }]) => event)));
    return batch.reduce((sum, [, { pages }]) => sum + pages.length, 0);
  }

  #nextBatch(): readonly (readonly [string, Waiting])[] {
    const batch: (readonly [string, Waiting])[] = [];
    let bytes = 0;
    for (const one of this.#waiting) {
      if (batch.length === batchDeliveriesMax || bytes >= batchBytesMax) break;
      for (const { body } of one[1].pages) bytes += body.length;
      batch.push(one);
    }
    return batch;
  }

  /** False after a while without room, so senders are not kept waiting. */
  async #hasRoom(signal: AbortSignal): Promise<boolean> {
    const { spool, clock } = this.#deps;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    const room = spool.room(signal).then(() => true);
    try {
      if (await Promise.race([room, clock.sleep(roomMsMax, either).then(() => false)])) return true;
      this.#isFull = true;
      this.#refuseAll('full');
      await room;
      return false;
    } finally {
      this.#isFull = false;
      over.abort(new Error('waited'));
    }
  }

  #refuseAll(why: DeliveryRefusal): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { settle } of all) for (const settled of settle) settled(why);
  }

  /** A condition for the operator, although the endpoint is open. */
  #doubt(): ExportError | null {
    if (this.#forged < forgedMin) return null;
    const what = `the signatures of the last deliveries were all wrong`;
    return new ExportError('signature_refused', `${this.#deps.stream.name}: ${what}`, {
      details: { in_a_row: this.#forged },
      next: 'Compare secret, signed_form and secret_encoding with the signature settings of upstream. Unless strangers send these, deliveries of upstream are lost. Polled sources are not affected.',
    });
  }

  #count(what: keyof DeliveryCounts, by = 1): void {
    const { log } = this.#deps;
    const before = this.#counts[what] ?? 0;
    this.#counts[what] = before + by;
    if (before > 0 || what === 'taken' || what === 'repeated') return;
    log.warn(
      'webhook_delivery_rejected',
      'webhook delivery rejected; further ones of this kind are only counted',
      { why: what },
    );
  }
}

/** The checkpoint has no position: accepted deliveries are known by their identities. */
const ours: Json = { version: 1, kind: 'push' };

function isOurs(checkpoint: Json): boolean {
  return isObject(checkpoint) && checkpoint.kind === 'push' && checkpoint.version === 1;
}

/** The stored identity of a delivery: the beginning of its uid. */
function identityOf(uid: Buffer): Uint32Array {
  const words = new Uint32Array(identityWords);
  new Uint8Array(words.buffer).set(uid.subarray(0, keyBytes));
  return words;
}
