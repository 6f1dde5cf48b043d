// One shard of a process: accepted, owned, released or lost. The membership of the process (group-member.ts) reports each step. Invariant: a
// shard that is over never becomes owned again; the next attempt is another object.

import type { Clock, ExportError, Log } from '../contracts/index.ts';
import type { GroupContact } from './group-contact.ts';

/** Calls about one shard. */
export interface ShardDeps {
  readonly log: Log;
  /** Called once, when another process owns the shard and this one waits. */
  readonly waits?: () => void;
  /** Called when the shard is to be stopped in order and released, since another process has fewer. */
  readonly gives?: () => void;
  /** Called once, when another process owns what this one did. */
  readonly lost: (why: ExportError) => void;
}

/** The right of a process to work on a shard. */
export interface Membership {
  /** True while no successor can have begun. */
  readonly hasContact: () => boolean;
  /** How often the group has removed this process: another one may have owned since. */
  readonly givenUp: number;
  /** Time of the last answer of the group, epoch milliseconds; null: none yet. */
  readonly answeredAt: number | null;
  /**
   * Queries the group, and resolves if this process still owns the shard: with a number that has grown if the group had
   * removed the process meanwhile, so others may have been the owner. Rejects with `state_locked` if another process is the
   * owner, so that this one does not fence its successor.
   */
  readonly confirm: (signal?: AbortSignal) => Promise<number>;
  /** Releases the shard, so that another process owns it at once. `isEnd` (default): not if its membership is kept. */
  close(isEnd?: boolean): Promise<void>;
}

/** The part of the membership that an owned shard uses. */
export interface OwnMember {
  readonly contact: GroupContact;
  /** How often the group has removed this process. */
  readonly givenUp: number;
  /** Why this process does not own a shard any more. */
  readonly whyLost: ExportError;
  /** Aborts once the membership is over. */
  readonly over: AbortSignal;
  /** Sends a heartbeat; resolves with whether the membership is unchanged. */
  isMember(): Promise<boolean>;
}

/** Pause before the group is queried again. */
const pauseMs = 200;

/** A shard of a process: accepted, owned, released. */
export class Ownership implements Membership {
  readonly #member: OwnMember;
  readonly #clock: Clock;
  readonly #deps: ShardDeps;
  readonly #release: (isEnd: boolean) => boolean;
  readonly #gained = Promise.withResolvers<void>();
  #since: number | null = null;
  #isOver = false;
  #isReported = false;

  /** `release` is called when the process releases the shard; it returns false if the membership is kept. */
  constructor(
    member: OwnMember,
    clock: Clock,
    deps: ShardDeps,
    release: (isEnd: boolean) => boolean,
  ) {
    this.#member = member;
    this.#clock = clock;
    this.#deps = deps;
    this.#release = release;
    this.#gained.promise.catch(() => undefined);
  }

  /** Resolves once this process owns it. */
  get owned(): Promise<void> {
    return this.#gained.promise;
  }

  /** The generation since which this process owns the shard; null: it does not. */
  get since(): number | null {
    return this.#since;
  }

  /** Another process owns the shard, or this one does not accept it any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  get contact(): GroupContact {
    return this.#member.contact;
  }

  get hasContact(): () => boolean {
    return this.#member.contact.hasContact;
  }

  get givenUp(): number {
    return this.#member.givenUp;
  }

  get answeredAt(): number | null {
    return this.#member.contact.answeredAt;
  }

  readonly confirm = async (signal = this.#member.over): Promise<number> => {
    while (this.#since !== null) {
      const isMember = await this.#member.isMember();
      if (isMember && this.#since !== null) return this.#member.givenUp;
      // Meanwhile the member joins again, and gets the present owner.
      await this.#clock.sleep(pauseMs, signal);
    }
    throw this.#member.whyLost;
  };

  async close(isEnd = true): Promise<void> {
    if (!this.#release(isEnd)) return;
    this.#since = null;
    this.#isOver = true;
  }

  /** The group has assigned it to this process. */
  assign(generation: number): void {
    if (this.#isOver) return;
    this.#since ??= generation;
    this.#gained.resolve();
  }

  /** Another process owns the shard, and this one waits. */
  standBy(group: string, generation: number, isDrained: boolean): void {
    if (this.#isReported || this.#isOver) return;
    this.#isReported = true;
    const why = isDrained ? 'drained' : 'another process has the state in Kafka';
    this.#deps.log.info('standing_by', `standing by: ${why}`, { group, generation });
    this.#deps.waits?.();
  }

  /** The shard must be stopped in order and released. */
  give(): void {
    if (this.#since !== null) this.#deps.gives?.();
  }

  /** Another process owns it. */
  lose(why: ExportError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#gained.reject(why);
    if (this.#since === null) return;
    this.#since = null;
    this.#deps.lost(why);
  }

  /** It cannot be owned. */
  refuse(why: unknown): void {
    this.#gained.reject(why);
  }
}
