// A spool in memory that keeps the real one's first promise, and no other: what is appended becomes durable together or
// not at all. The trail is thinned as the real one thins it (see hold/store.ts), since rewinds depend on what is left.

import type { Json } from '../../src/contracts/json.ts';
import {
  type Append,
  type EntityChoice,
  type Spool,
  type TrailEntry,
  uidBytes,
} from '../../src/contracts/spool.ts';
import { cutRecords } from '../../src/tools/record-list.ts';
import { asVersion1 } from '../support/older-checkpoint.ts';

const trailRecent = 16;
const dayMs = 24 * 3_600_000;

/** The spool of one stream. */
export class ModelSpool {
  /** How often each record is held, by its text. */
  readonly held = new Map<string, number>();
  readonly conditions: string[] = [];
  /** Changes of a collection, as they came. */
  readonly changes: string[] = [];
  /** Appends that became durable. */
  commits = 0;
  #entities = new Map<string, string>();
  readonly #uids = new Set<string>();
  #checkpoint: string | null = null;
  #blocks: { block: number; bytes: Uint8Array }[] = [];
  #trail: TrailEntry[] = [];
  #appends = 0;
  readonly #tell: (line: string) => void;
  /** Each process finds its checkpoint as version 1 would have left it. */
  readonly #isOlder: boolean;

  constructor(report: (line: string) => void, isOlder: boolean) {
    this.#tell = report;
    this.#isOlder = isOlder;
  }

  /** Makes an append durable, and returns its block. */
  commit({ pages, checkpoint, identities, trail, entities }: Append): number {
    for (const { body, items, kept, uids, slices, context } of pages) {
      const { starts, ends } = slices ?? cutRecords(body, items);
      const count = uids.length / uidBytes;
      for (let i = 0; i < count; i += 1) {
        const at = kept === null ? i : (kept[i] ?? 0);
        const text = Buffer.from(body.subarray(starts[at], ends[at])).toString();
        const uid = Buffer.from(uids.subarray(i * uidBytes, (i + 1) * uidBytes)).toString('latin1');
        if (this.#uids.has(uid)) throw new Error(`two records share a uid: ${text}`);
        this.#uids.add(uid);
        const { condition = '', n } = JSON.parse(text) as { condition?: string; n?: number };
        this.#tell(`holds ${context.kind === 'drift' ? text : (n ?? condition)}`);
        if (context.kind === 'condition') this.conditions.push(condition);
        else if (context.kind === 'drift') this.changes.push(text);
        else this.held.set(text, (this.held.get(text) ?? 0) + 1);
      }
    }
    this.commits += 1;
    this.#checkpoint = JSON.stringify(checkpoint);
    for (const place of trail ?? []) this.#extendTrail(place);
    // As in hold/streams.ts: what is put is put before the rest is dropped.
    for (const [key, body] of entities?.put ?? []) this.#entities.set(key, body);
    for (const key of entities?.drop ?? []) this.#entities.delete(key);
    if (identities === undefined || identities.length === 0) return 0;
    this.#appends += 1;
    this.#blocks.push({ block: this.#appends, bytes: identities.slice() });
    return this.#appends;
  }

  #choose(which: EntityChoice): ReadonlyMap<string, string> {
    if (!('after' in which)) {
      return new Map([...this.#entities].filter(([key]) => which.includes(key)));
    }
    const behind = [...this.#entities].filter(([key]) => key > which.after).toSorted();
    return new Map(behind.slice(0, which.max));
  }

  /** The checkpoint is gone, and with it the entities or not. */
  lose(entities: boolean): void {
    this.#checkpoint = null;
    if (entities) this.#entities.clear();
  }

  #extendTrail(entry: TrailEntry): void {
    this.#trail.push(entry);
    if (this.#trail.length % trailRecent !== 0) return;
    const minutes = new Set<number>();
    const recent = this.#trail.length - trailRecent;
    this.#trail = this.#trail.filter(({ at }, index) => {
      const minute = Math.floor(at / 60_000);
      const isFirst = at > entry.at - dayMs && !minutes.has(minute);
      if (isFirst) minutes.add(minute);
      return isFirst || index >= recent;
    });
  }

  /** The spool as one run of the process sees it; `step` runs before each of its calls. */
  face(step: () => Promise<void>): Spool {
    const never = () => Promise.reject(new Error('the fetch stage does not ask for this'));
    return {
      numbering: { spool: 'simulated', epochs: [] },
      gauge: { bytes: 0, oldest: 0, end: 0 },
      append: async (entry) => {
        await step();
        const block = this.commit(entry);
        await step();
        return block;
      },
      recall: async () => {
        const held = this.#checkpoint === null ? null : (JSON.parse(this.#checkpoint) as Json);
        const checkpoint = this.#isOlder ? asVersion1(held) : held;
        return { checkpoint, identities: [...this.#blocks] };
      },
      trail: async () => [...this.#trail],
      room: async () => undefined,
      entities: async (_stream, which) => this.#choose(which),
      parents: { due: never, answered: never, counts: never },
      aside: { destinations: never, read: never, settle: never },
      note: () => undefined,
      read: never,
      arrival: never,
      progress: never,
      settledFrom: never,
      reached: () => undefined,
      acknowledge: never,
      close: async () => undefined,
    };
  }
}
