// A list whose records upstream brings itself. Whatever comes in is judged (delivery.ts) and waits
// for the next poll, which holds all that waits in one transaction and only then has it answered:
// many at once cost what one does. What must stay true: nothing is acknowledged that is not
// durable, and a delivery is dropped only where its id and its body are both known. Its id may
// stand outside what is signed, so the same id with another body is another record, and so is the
// same body under another id.

import { hash } from 'node:crypto';
import { ExportError } from '../../contracts/errors.ts';
import { isObject, type Json } from '../../contracts/json.ts';
import type { PushStream } from '../../contracts/source.ts';
import type { NewPage, Spool } from '../../contracts/spool.ts';
import type { Clock, Log } from '../../contracts/tools.ts';
import { Identifier } from '../list/identity.ts';
import { asWords, identityWords, keyBytes, Repeats } from '../list/repeats.ts';
import { checkpointMismatch, mismatch, type PollResult } from '../outcome.ts';
import { pageContext } from '../own-pages.ts';
import { readBody } from './body.ts';
import {
  type DeliveryRefusal,
  inList,
  onlyOne,
  recordsIn,
  refusalOfBody,
  refusalOfHead,
} from './delivery.ts';
import type { DeliveryPort, Exchange } from './listener.ts';

/** What one stream's deliveries are taken with. */
export interface PushDeps {
  readonly stream: PushStream;
  readonly spool: Pick<Spool, 'append' | 'recall' | 'room'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly door: DeliveryPort;
  /** Has the stream polled: something waits. */
  readonly wake: () => void;
  /** Upstream has told of these, by name; null: it did not say what. */
  readonly told: (events: ReadonlySet<string | null>) => void;
}

/** Deliveries since the stream was made, by what became of them. */
export type DeliveryCounts = Readonly<Record<'taken' | 'repeated' | DeliveryRefusal, number>>;

/** One transaction's share, so that the first of many is not answered last. */
const batchDeliveriesMax = 500;
const batchBytesMax = 8 * 1024 * 1024;
/** So long room in the spool is waited for with deliveries unanswered. */
const roomMsMax = 1_000;
/** So many false signatures, and no right one, are no stranger's doing. */
const forgedMin = 10;
/** A delivery's id is somebody's word: of a longer one the beginning is kept. */
const textMax = 256;

interface Waiting {
  /** Of the delivery as a whole. */
  readonly uid: Buffer;
  /** One for each of its records. */
  readonly pages: readonly NewPage[];
  readonly event: string | null;
  /** Those who sent it: once it is durable, or was not held. */
  readonly settle: ((why: DeliveryRefusal | null) => void)[];
}

/** Takes one stream's deliveries. */
export class PushPoller {
  readonly #deps: PushDeps;
  readonly #identifier: Identifier;
  readonly #counts: Partial<Record<keyof DeliveryCounts, number>> = {};
  /** In the order they came, by uid. */
  readonly #waiting = new Map<string, Waiting>();
  #known: Repeats | null = null;
  #forged = 0;
  #isFull = false;
  #isClosed = false;

  constructor(deps: PushDeps) {
    const { source, name } = deps.stream;
    this.#deps = deps;
    this.#identifier = new Identifier({ source, company: '', stream: name });
  }

  get counts(): Partial<DeliveryCounts> {
    return this.#counts;
  }

  /** Holds what waits. The first poll opens the door. */
  async poll(signal: AbortSignal): Promise<PollResult> {
    const { stream, spool, door } = this.#deps;
    if (this.#known === null) {
      const { checkpoint, identities } = await spool.recall(stream.name);
      if (checkpoint !== null && !isOurs(checkpoint)) {
        return mismatch(checkpointMismatch(stream.name, 'it is of a source of another kind'));
      }
      const known = new Repeats();
      for (const { bytes } of identities) known.addAll(asWords(bytes), true);
      this.#known = known;
    }
    await door.open((exchange) => {
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

  /** Whoever waits, or comes from now on, is asked to come again. */
  close(): void {
    this.#isClosed = true;
    this.#deps.door.close();
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
    const wrong = refusalOfBody(request, body, { rules, nowMs });
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

  /** Resolves once it is durable, with null, or with why it is not. */
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

  /** Holds as much of what waits as one transaction takes; how many that were. */
  async #hold(known: Repeats, signal: AbortSignal): Promise<number> {
    const { stream, spool, told: reported } = this.#deps;
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

  /** False once there was none for a while: nobody was kept waiting for it, and now there is. */
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

  /** What an operator should look at, though the address is open. */
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

/** There is no place to go on from: what was taken is known by its identities. */
const ours: Json = { version: 1, kind: 'push' };

function isOurs(checkpoint: Json): boolean {
  return isObject(checkpoint) && checkpoint.kind === 'push' && checkpoint.version === 1;
}

/** The identity that is kept of a delivery: the beginning of its uid. */
function identityOf(uid: Buffer): Uint32Array {
  const words = new Uint32Array(identityWords);
  new Uint8Array(words.buffer).set(uid.subarray(0, keyBytes));
  return words;
}
