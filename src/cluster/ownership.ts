// The shards that a process owns, by its membership in one consumer group that reads nothing (Kafka protocol guide, "Group
// membership API"). The assignment of the group is the lock of each shard (assignment.ts). What must stay true: a process has
// one membership for all its shards; an owner remains the owner through each rebalance, until it releases the shard; and it
// requests nothing from upstream once a successor may have begun, by its own clocks. That a process which does not know of its
// successor writes nothing is guarded by the transactional id (log/shard-log.ts).

import { hostname } from 'node:os';
import {
  type Broker,
  type Connection,
  FindCoordinatorKeyTypes,
  findCoordinatorV4,
  heartbeatV4,
  joinGroupV9,
  leaveGroupV5,
  ResponseError,
  syncGroupV5,
} from '@platformatic/kafka';
import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import { Connections, kafkaFailureOf } from '../kafka/log-client.ts';
import { assignments, type MemberShards, reportFields, shareIn } from './assignment.ts';
import { GroupContact, type SentAt } from './group-contact.ts';
import { connectionOf, type MemberSettings, ownersOf, processName } from './log/settings.ts';
import type { SelfDescription } from './processes.ts';

/** Dependencies of a membership. */
export interface MemberDeps {
  readonly log: Log;
  readonly clock: Clock;
  /** Whether this process must accept no shard. Owned shards stay until they are released. */
  readonly isDrained?: () => boolean;
  /** Called with the time of each request that the group has answered; epoch milliseconds. */
  readonly answered?: (at: number) => void;
  /** Aborts when the process ends; default: the argument of `close` decides. */
  readonly ending?: AbortSignal;
}

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

const protocolType = 'sluice';
/** Members of a state of one shard write what older versions read, so both may be in the group. */
const protocolName = { one: 'one-owner', several: 'shards' };
/** Heartbeats in the time after which a silent member is removed. */
const heartbeats = 5;
const pauseMs = 200;
const requestMsBeyondSession = 10_000;

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

/** The report of a member, and the text by which a change is noticed. */
interface Report {
  readonly key: string;
  readonly metadata: Buffer;
}

/** The membership of a process, for all its shards. */
export class GroupMember {
  readonly #settings: MemberSettings;
  readonly #deps: MemberDeps;
  readonly #group: string;
  readonly #self: Omit<SelfDescription, 'print'>;
  readonly #connections: Connections;
  readonly #over = new AbortController();
  readonly #claims = new Map<number, Ownership>();
  #coordinator: Broker | null = null;
  #memberId = '';
  #generation = -1;
  #isNameTaken = false;
  #isRunning = false;
  #givenUp = 0;
  /** Grows when the group must assign again although this process accepts the same shards. */
  #releases = 0;
  /** The key of the last report that the group has; null: none. */
  #reported: string | null = null;
  /** Ends the pause before the next heartbeat. */
  #nap = new AbortController();
  /** The next heartbeat, not sent yet, and the present one. */
  #next: Promise<boolean> | null = null;
  #beating: Promise<unknown> = Promise.resolve();
  /** The contact with the group. */
  readonly contact: GroupContact;

  constructor(settings: MemberSettings, deps: MemberDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.contact = new GroupContact(settings.sessionMs, deps);
    this.#group = ownersOf(settings);
    this.#self = {
      ...{ host: hostname(), pid: process.pid, startedAt: deps.clock.now() },
      ...{ deployment: settings.deployment(), process: processName(settings) },
    };
    const options = connectionOf(settings);
    // The broker answers a joining member after all others have joined or were removed.
    const requestTimeout = settings.sessionMs + requestMsBeyondSession;
    this.#connections = new Connections({
      ...options,
      connection: { ...options.connection, requestTimeout },
    });
  }

  /**
   * Accepts a shard, and resolves once this process owns it. Waits for that as long as it takes; rejects with the signal's
   * reason when aborted, and with `sink_refused` where Kafka refuses for good.
   */
  async gain(shard: number, deps: ShardDeps, signal: AbortSignal): Promise<Ownership> {
    signal.throwIfAborted();
    if (this.#isNameTaken) throw this.#sameName();
    const claim = new Ownership(this, this.#deps.clock, deps, (isEnd) =>
      this.#release(shard, claim, isEnd),
    );
    this.#claims.set(shard, claim);
    const stop = () => claim.refuse(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#keep();
    try {
      await claim.owned;
    } catch (error) {
      await claim.close(this.#deps.ending?.aborted);
      throw error;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    const generation = this.#generation;
    const fields = { group: this.#group, generation };
    deps.log.info('state_owned', 'this process owns the state in Kafka', fields);
    return claim;
  }

  /** Another process has the instance name of this one: to join again would only remove that one. */
  get nameTaken(): ExportError | null {
    return this.#isNameTaken ? this.#sameName() : null;
  }

  /** How often the group has removed this process. */
  get givenUp(): number {
    return this.#givenUp;
  }

  /** Why this process does not own a shard any more. */
  get whyLost(): ExportError {
    return this.#isNameTaken ? this.#sameName() : this.#ownedElsewhere();
  }

  /** Aborts once the membership is over. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Sends a new heartbeat; resolves with whether the membership is unchanged. Callers that wait share one heartbeat. */
  isMember(): Promise<boolean> {
    this.#next ??= this.#beating.then(() => {
      this.#next = null;
      const beat = this.#beat();
      this.#beating = beat.catch(() => undefined);
      return beat;
    });
    return this.#next;
  }

  /** Leaves the group, so that other processes own its shards at once. `isEnd` (default): not if its membership is kept. */
  async close(isEnd = true): Promise<void> {
    const coordinator = this.#isKept(isEnd) ? null : this.#coordinator;
    this.#over.abort(new Error('the membership is over'));
    const member = {
      memberId: this.#memberId,
      groupInstanceId: this.#settings.instance ?? null,
      reason: null,
    };
    if (coordinator !== null && this.#memberId !== '') {
      const left = this.#connections
        .to(coordinator)
        .then((connection) => leaveGroupV5.api.async(connection, this.#group, [member]));
      // A member that cannot leave is removed after the session.
      const patience = this.#deps.clock.sleep(pauseMs * heartbeats);
      await Promise.race([left, patience]).catch(() => undefined);
    }
    this.#connections.cut();
  }

  /** Whether the group keeps the membership by its instance name until the session is over (KIP-345). */
  #isKept(isEnd: boolean): boolean {
    const { instance, leavesAtEnd = true } = this.#settings;
    const isDrained = this.#deps.isDrained?.() === true;
    return isEnd && !isDrained && instance !== undefined && !leavesAtEnd;
  }

  /** Releases a shard in the group at once. False: the membership is kept, so the shard is too. */
  #release(shard: number, claim: Ownership, isEnd: boolean): boolean {
    if (this.#isKept(isEnd)) return false;
    if (this.#claims.get(shard) === claim) this.#claims.delete(shard);
    if (claim.since !== null) this.#releases += 1;
    this.#nap.abort();
    return true;
  }

  /** Joins the group at the first shard. */
  #keep(): void {
    this.#nap.abort();
    if (this.#isRunning) return;
    this.#isRunning = true;
    void this.#run().finally(() => {
      this.#isRunning = false;
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted && !this.#isNameTaken) {
      try {
        await this.#step(signal);
      } catch (error) {
        if (signal.aborted) return;
        if (this.#owned.length === 0) {
          for (const claim of this.#claims.values()) claim.refuse(error);
          return;
        }
        this.#deps.log.warn('group_join_failed', 'group membership failed; joining again', {
          error: String(error),
        });
        await this.#deps.clock.sleep(this.#settings.sessionMs, signal).catch(() => undefined);
      }
    }
  }

  get #owned(): readonly Ownership[] {
    return [...this.#claims.values()].filter(({ since }) => since !== null);
  }

  /** One step: a pause and a heartbeat, or a join if it is due. */
  async #step(signal: AbortSignal): Promise<void> {
    if (this.#generation < 0 || this.#report().key !== this.#reported) {
      await this.#join().catch(async (error) => {
        signal.throwIfAborted();
        this.#learn(error);
        await this.#deps.clock.sleep(pauseMs, signal);
      });
      return;
    }
    this.#standBy();
    await this.#pause(this.#settings.sessionMs / heartbeats, signal);
    if (this.#report().key !== this.#reported) return;
    if (!(await this.isMember())) await this.#deps.clock.sleep(pauseMs, signal);
  }

  /** Ends early if the report has changed. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    this.#nap = new AbortController();
    const early = AbortSignal.any([signal, this.#nap.signal]);
    await this.#deps.clock.sleep(ms, early).catch(() => undefined);
    signal.throwIfAborted();
  }

  /** The present report. A member can change its report only by joining again. */
  #report(): Report {
    const { shards = 1 } = this.#settings;
    const isDrained = this.#deps.isDrained?.() === true;
    const owned = [...this.#claims].filter(([, { since }]) => since !== null);
    const waiting = [...this.#claims].filter(([, { since, isOver }]) => since === null && !isOver);
    const owns = Object.fromEntries(owned.map(([shard, { since }]) => [shard, since ?? -1]));
    const ready = isDrained ? [] : waiting.map(([shard]) => shard);
    const print = this.#settings.config?.() ?? null;
    const report = { owns, ready, isDrained: isDrained && owned.length === 0 };
    const accepted = [...Object.keys(owns).map(Number), ...ready].sort((a, b) => a - b);
    const releases = this.#releases;
    return {
      key: JSON.stringify([accepted, report.isDrained, print, releases]),
      metadata: Buffer.from(
        JSON.stringify({ ...this.#self, print, releases, ...reportFields(report, shards) }),
      ),
    };
  }

  async #beat(): Promise<boolean> {
    const { instance = null } = this.#settings;
    const generation = this.#generation;
    if (generation < 0) return false;
    try {
      const connection = await this.#connection();
      const sentAt = this.#moment();
      const who = [this.#group, generation, this.#memberId, instance] as const;
      await heartbeatV4.api.async(connection, ...who);
      this.#note(sentAt);
      return true;
    } catch (error) {
      // An answer to an earlier membership does not concern this one.
      if (generation === this.#generation && !this.over.aborted) this.#learn(error);
      return false;
    }
  }

  /** Applies an error response to the membership. Throws if a repeated request cannot help. */
  #learn(error: unknown): void {
    const answer = answerIn(error);
    switch (answer) {
      case 'REBALANCE_IN_PROGRESS':
      case 'ILLEGAL_GENERATION':
        this.#generation = -1;
        return;
      case 'UNKNOWN_MEMBER_ID':
        this.#givenUp += 1;
        this.#memberId = '';
        this.#generation = -1;
        return;
      case 'FENCED_INSTANCE_ID':
        // Another process has the instance name of this one: to join again would only remove that one.
        this.#isNameTaken = true;
        for (const claim of this.#claims.values()) claim.lose(this.#sameName());
        return;
    }
    this.#coordinator = null;
    const failure = kafkaFailureOf(error, `joining the group ${this.#group}`);
    if (failure.kind === 'passing' && answer !== 'INVALID_SESSION_TIMEOUT') {
      this.#deps.log.debug('group_not_answering', 'the group coordinator did not respond', {
        error: failure.message,
      });
      return;
    }
    throw new ExportError('sink_refused', failure.message, {
      next: `Check state.kafka: sasl, session_timeout, and the account’s right to read the group ${this.#group}. Nothing was lost.`,
      cause: failure,
    });
  }

  async #join(): Promise<void> {
    const connection = await this.#connection();
    const { sessionMs, instance = null, shards = 1 } = this.#settings;
    const { key, metadata } = this.#report();
    const name = shards === 1 ? protocolName.one : protocolName.several;
    const ask = async () =>
      await joinGroupV9.api.async(
        connection,
        ...([this.#group, sessionMs, sessionMs, this.#memberId, instance] as const),
        ...[protocolType, [{ name, metadata }], null],
      );
    const joined = await ask().catch(async (error) => {
      // The broker gives a new member its id, and requires a second request with it.
      if (answerIn(error) !== 'MEMBER_ID_REQUIRED') throw error;
      this.#memberId = (error.response as joinGroupV9.JoinGroupResponse).memberId;
      return await ask();
    });
    this.#memberId = joined.memberId;
    const { generationId, leader, skipAssignment, members } = joined;
    const leads = leader === joined.memberId && !skipAssignment;
    const given = leads ? assignments(members, shards) : [];
    const sentAt = this.#moment();
    const synced = await syncGroupV5.api.async(
      await this.#connection(), // the join may have lasted longer than a session of the connection
      ...([this.#group, generationId, this.#memberId, instance] as const),
      ...([protocolType, name, given] as const),
    );
    this.#reported = key;
    this.#generation = generationId;
    this.#note(sentAt);
    this.#assigned(shareIn(synced.assignment));
  }

  #assigned({ shards, gives }: MemberShards): void {
    for (const [shard, claim] of this.#claims) {
      if (shards.includes(shard)) claim.assign(this.#generation);
      else if (claim.since !== null) claim.lose(this.#ownedElsewhere());
      if (gives.includes(shard)) claim.give();
    }
    // A restart under the same name gets its earlier shards, which it may not accept now.
    if (shards.some((shard) => this.#claims.get(shard)?.since == null)) this.#releases += 1;
  }

  #standBy(): void {
    const isDrained = this.#deps.isDrained?.() === true;
    for (const claim of this.#claims.values()) {
      if (claim.since === null) claim.standBy(this.#group, this.#generation, isDrained);
    }
  }

  #note(sentAt: SentAt): void {
    this.contact.note(sentAt);
    this.#deps.answered?.(sentAt.now);
  }

  #moment() {
    const { clock } = this.#deps;
    return { monotonic: clock.monotonic(), now: clock.now() };
  }

  async #connection(): Promise<Connection> {
    if (this.#coordinator !== null) return await this.#connections.to(this.#coordinator);
    let last: unknown;
    for (const broker of this.#settings.brokers) {
      try {
        const asked = await this.#connections.to(broker);
        const { async: find } = findCoordinatorV4.api;
        const { coordinators } = await find(asked, FindCoordinatorKeyTypes.GROUP, [this.#group]);
        const connection = await this.#connections.to(coordinators[0]);
        this.#coordinator = coordinators[0] ?? null;
        return connection;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  #ownedElsewhere(): ExportError {
    const what = `another process has the state ${this.#settings.prefix} in Kafka now`;
    return new ExportError('state_locked', what, {
      next: 'Nothing was lost: the other process resumes from the last commit of this one. Start this one again as a standby.',
    });
  }

  #sameName(): ExportError {
    const what = `another process has the instance name ${this.#settings.instance}`;
    return new ExportError('state_locked', what, {
      next: 'Nothing was lost. Give each process a name of its own in state.kafka.instance, or leave it out.',
    });
  }
}

/** A shard of a process: accepted, owned, released. */
export class Ownership implements Membership {
  readonly #member: GroupMember;
  readonly #clock: Clock;
  readonly #deps: ShardDeps;
  readonly #release: (isEnd: boolean) => boolean;
  readonly #gained = Promise.withResolvers<void>();
  #since: number | null = null;
  #isOver = false;
  #isReported = false;

  /** `release` is called when the process releases the shard; it returns false if the membership is kept. */
  constructor(
    member: GroupMember,
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

  /** The only shard of a state, with a membership of its own, which ends with it; as `GroupMember.gain`. */
  static async gain(
    settings: MemberSettings,
    deps: MemberDeps & Omit<ShardDeps, 'gives'>,
    signal: AbortSignal,
  ): Promise<Membership> {
    const member = new GroupMember(settings, deps);
    try {
      const shard = await member.gain(settings.shard ?? 0, deps, signal);
      return {
        hasContact: shard.hasContact,
        confirm: shard.confirm,
        get givenUp() {
          return shard.givenUp;
        },
        get answeredAt() {
          return shard.answeredAt;
        },
        close: (isEnd) => member.close(isEnd),
      };
    } catch (error) {
      await member.close();
      throw error;
    }
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

/** The name of the protocol error in a response. */
function answerIn(error: unknown): string | null {
  if (!(error instanceof ResponseError)) return null;
  const [first] = error.errors as readonly { readonly apiId?: string }[];
  return first?.apiId ?? null;
}
