// The operator, and the lake: other writers of the store beside the process that archives.

import { hash } from 'node:crypto';
import { signRequest } from '../../../src/archive/authority.ts';
import { signedFacts } from '../../../src/archive/cut-signature.ts';
import { encodeRequest, requestPath } from '../../../src/archive/erasure-request.ts';
import { encodeHold, type Hold, holdPath, releaseOf } from '../../../src/archive/holds.ts';
import { encodeLakeMade } from '../../../src/archive/lake-cuts.ts';
import type { Signer } from '../../../src/archive/note.ts';
import { encodeWish, prunePath, pruneWish } from '../../../src/archive/retention.ts';
import type { Random } from '../../../src/sandbox/random.ts';
import { timeText } from '../../../src/tools/time-text.ts';
import type { Tell } from '../verdict.ts';
import type { Focus } from './attacker.ts';
import type { HostileStore } from './hostile-store.ts';
import type { Process } from './process.ts';
import { encodeTable } from './tables.ts';
import type { Granted, Rules } from './truth.ts';

const day = 86_400_000;

/** How many of an operator's acts are about holds, and how many erase; the others prune. */
const shares: Readonly<Record<Focus, readonly [number, number]>> = {
  any: [0.5, 0.25],
  opening: [0.5, 0.25],
  holds: [0.7, 0.1],
  erasures: [0.15, 0.75],
  lake: [0.35, 0.45],
};

/** What an operator works with. */
interface OperatorMeans {
  readonly store: HostileStore;
  readonly process: Process;
  readonly rules: Rules;
  readonly key: Signer;
  /** Of the log. */
  readonly signer: Signer;
  readonly random: Random;
}

/** The operator of one archive. */
export class Operator {
  readonly #deps: OperatorMeans;
  readonly #holds = new Map<string, Hold>();
  /** Numbers of events that the lake has, by spool. */
  readonly #lake = new Map<string, number>();

  constructor(deps: OperatorMeans) {
    this.#deps = deps;
  }

  /** Sets or releases a hold, or requests the removal of a record or of old bodies. */
  async ask(focus: Focus, report: Tell, step: number): Promise<void> {
    const { random } = this.#deps;
    const open = [...this.#holds.values()].filter((hold) => hold.released_at === null);
    const what = random.next();
    const [holds, erasures] = shares[focus];
    if (what < holds / 2 || (what < holds && open.length === 0)) return this.#hold(report, step);
    if (what < holds) return await this.#release(random.pick(open), report, step);
    if (what < holds + erasures) return await this.#erase(report, step);
    return await this.#prune(report, step);
  }

  #hold(report: Tell, step: number): void {
    const { random, rules, store } = this.#deps;
    const now = rules.now();
    const id = random.chance(0.8) ? 'case-1' : 'case-2';
    const known = this.#holds.get(id);
    if (known !== undefined && known.released_at === null) return;
    const [from, to] = random.pick([
      [null, null],
      [now - 60 * day, null],
      [now - 60 * day, now + day],
      [null, now - random.below(20) * day],
      // Of a cut of the lake it keeps some pages, and others not.
      [now, null],
    ] as const);
    const text = (at: number | null) => (at === null ? null : timeText(at));
    const span = { from: text(from), to: text(to) };
    const hold = { id, ...span, reason: 'a case', placed_at: timeText(now), released_at: null };
    this.#holds.set(id, hold);
    store.write(holdPath(id) ?? '', encodeHold(hold));
    report(`${step}: hold ${id} ${span.from} to ${span.to}`);
  }

  async #release(hold: Hold, report: Tell, step: number): Promise<void> {
    const { store, rules } = this.#deps;
    const released = { ...hold, released_at: timeText(rules.now()) };
    const { kind, wish } = releaseOf(released);
    const signed = await this.#signed(kind, wish as Granted['wish']);
    this.#holds.set(hold.id, released);
    store.write(holdPath(hold.id) ?? '', encodeHold({ ...released, ...signed }));
    report(`${step}: release ${hold.id}`);
  }

  async #erase(report: Tell, step: number): Promise<void> {
    const { random, rules, store } = this.#deps;
    const { uids } = rules.upstream;
    if (uids.length === 0) return;
    const uid = random.pick(uids);
    const wish = { uid, reason: 'a case', asked_at: timeText(rules.now()) };
    const signed = await this.#signed('erase', wish);
    store.write(requestPath(uid), encodeRequest({ ...wish, ...signed }));
    report(`${step}: erase ${uid.slice(0, 8)}`);
  }

  async #prune(report: Tell, step: number): Promise<void> {
    const { random, rules, store } = this.#deps;
    const now = rules.now();
    const before = now - random.below(25) * day;
    const { signed } = await this.#signed('prune', pruneWish(before, now));
    store.write(prunePath, encodeWish(before, now, signed));
    report(`${step}: prune before ${timeText(before)}`);
  }

  async #signed(kind: Granted['kind'], wish: Granted['wish']): Promise<{ signed?: string }> {
    const { rules, key } = this.#deps;
    (rules.granted as Granted[]).push({ kind, wish });
    if (rules.accepts) return {};
    const of = { origin: rules.origin, archive: this.#archive };
    return { signed: await signRequest(key, of, { kind, wish }) };
  }

  /** SHA-256 of archive.json as the process has written it. */
  get #archive(): string {
    const manifest = this.#deps.store.honest.get('archive.json')?.at(-1);
    return hash('sha256', manifest ?? '', 'hex');
  }

  /** The lake writes what came since its last cut. */
  async cutLake(report: Tell, step: number): Promise<void> {
    const { process, rules, store, signer } = this.#deps;
    const { spool, epoch, next } = process;
    const from = this.#lake.get(spool) ?? 0;
    if (next <= from) return;
    this.#lake.set(spool, next);
    const pages = [...rules.upstream.pages.entries()].flatMap(([key, page]) => {
      const { first, count, context } = page.held;
      return key.startsWith(`${spool} `) && first >= from && first + count <= next && count > 0
        ? [{ page, at: context.fetchedAt }]
        : [];
    });
    const uids = pages.flatMap(({ page }) =>
      page.records.filter(({ isKept }) => isKept).map(({ uid }) => uid),
    );
    const stem = `${String(epoch).padStart(13, '0')}-${String(from).padStart(16, '0')}`;
    const now = rules.now();
    const path = new Date(now).toISOString().slice(0, 10).replaceAll('-', '/');
    const half = Math.ceil(uids.length / 2);
    const objects = [uids.slice(0, half), uids.slice(half)].flatMap((some, i) => {
      if (some.length === 0) return [];
      const body = encodeTable({ cut: stem, uids: some });
      const sha256 = hash('sha256', body, 'hex');
      const digits = `${now + i}`.padStart(13, '0');
      const object = `lake/300${i + 2}/region=none/accountId=none/eventDay=20260105/${digits}-${digits}-${sha256.slice(0, 12)}.parquet`;
      store.write(object, body);
      const made = { object, bytes: body.length, sha256, rows: some.length };
      return [{ ...made, first: now, last: now }];
    });
    const times = pages.map(({ at }) => at);
    const read: [number, number] = [Math.min(...times), Math.max(...times)];
    const facts = {
      'sluice-spool': spool,
      'sluice-epoch': String(epoch),
      'sluice-next': String(next),
    };
    const made = encodeLakeMade({ objects, events: [from, next], read });
    const object = `lake/cuts/${path}/${stem}.cut`;
    const line = await signedFacts(facts, [made], { signer, archive: this.#archive, object });
    store.write(object, Buffer.concat([line, made]));
    report(`${step}: the lake has events ${from} to ${next} of ${spool}`);
  }
}
