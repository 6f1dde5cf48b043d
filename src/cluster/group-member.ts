// The shards that a process owns, by its membership in one consumer group that reads nothing (Kafka protocol guide, "Group
// membership API"). The assignment of the group is the lock of each shard (assignment.ts). Invariant: a process has
// one membership for all its shards; an owner remains the owner through each rebalance, until it releases the shard; and it
// requests nothing from upstream once a successor may have begun, by its own clocks. That a process which does not know of its
// successor writes nothing is guarded by the transactional id (log/shard-log.ts).

import { hostname } from 'node:os';
import { type Clock, ExportError, type Log } from '../contracts/index.ts';
import { kafkaFailureOf } from '../kafka/log-client.ts';
import { type MemberShards, reportFields } from './assignment.ts';
import { GroupContact, type SentAt } from './group-contact.ts';
import { answerIn, GroupRequests } from './group-requests.ts';
import { type MemberSettings, processName } from './log/settings.ts';
import { type Membership, Ownership, type OwnMember, type ShardDeps } from './ownership.ts';
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

/** Heartbeats in the time after which a silent member is removed. */
const heartbeats = 5;
const pauseMs = 200;

/** The report of a member, and the text by which a change is noticed. */
interface Report {
  readonly key: string;
  readonly metadata: Buffer;
  /** The shards that it names as owned or accepted. */
  readonly named: ReadonlySet<Ownership>;
}

/** The membership of a process, for all its shards. */
export class GroupMember implements OwnMember {
  readonly #settings: MemberSettings;
  readonly #deps: MemberDeps;
  readonly #self: Omit<SelfDescription, 'print'>;
  readonly #requests: GroupRequests;
  readonly #over = new AbortController();
  readonly #claims = new Map<number, Ownership>();
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
  /** The assignment that will be requested; null: the process does not join. */
  #joined: PromiseWithResolvers<boolean> | null = null;
  readonly contact: GroupContact;

  constructor(settings: MemberSettings, deps: MemberDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.contact = new GroupContact(settings.sessionMs, deps);
    this.#requests = new GroupRequests(settings);
    this.#self = {
      ...{ host: hostname(), pid: process.pid, startedAt: deps.clock.now() },
      ...{ deployment: settings.deployment(), process: processName(settings) },
    };
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
    const fields = { group: this.#requests.group, generation };
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

  /**
   * Sends a new heartbeat; resolves with whether the process is still a member, so an owned shard is still its own. Callers
   * that wait share one heartbeat. While the process joins, the assignment that it requests next is the answer: the broker
   * would answer a heartbeat only after the join, and many joins may follow each other.
   */
  isMember(): Promise<boolean> {
    if (this.#joined !== null) return this.#joined.promise;
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
    const leaves = !this.#isKept(isEnd);
    this.#over.abort(new Error('the membership is over'));
    if (leaves) {
      // A member that cannot leave is removed after the session.
      const patience = this.#deps.clock.sleep(pauseMs * heartbeats);
      await Promise.race([this.#requests.leave(this.#memberId), patience]).catch(() => undefined);
    }
    this.#requests.cut();
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
      named: new Set([...owned, ...waiting].map(([, claim]) => claim)),
      key: JSON.stringify([accepted, report.isDrained, print, releases]),
      metadata: Buffer.from(
        JSON.stringify({ ...this.#self, print, releases, ...reportFields(report, shards) }),
      ),
    };
  }

  async #beat(): Promise<boolean> {
    const generation = this.#generation;
    if (generation < 0) return false;
    try {
      await this.#requests.connect();
      const sentAt = this.#moment();
      await this.#requests.heartbeat({ memberId: this.#memberId, generation });
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
    this.#requests.forgetCoordinator();
    const failure = kafkaFailureOf(error, `joining the group ${this.#requests.group}`);
    // A refused login may be accepted later, with another token or password. Until then an owner has no contact.
    const isLogin = answer === null && this.#owned.length > 0;
    this.contact.failed(failure.message);
    if (isLogin || (failure.kind === 'passing' && answer !== 'INVALID_SESSION_TIMEOUT')) {
      this.#deps.log.debug('group_not_answering', 'the group coordinator did not respond', {
        error: failure.message,
      });
      return;
    }
    throw new ExportError('sink_refused', failure.message, {
      next: `Check state.kafka: sasl, session_timeout, and the account’s right to read the group ${this.#requests.group}. Nothing was lost.`,
      cause: failure,
    });
  }

  async #join(): Promise<void> {
    // A connection can take long, and the report is the one of the moment after it.
    await this.#requests.connect();
    const { key, metadata, named } = this.#report();
    const answer = Promise.withResolvers<boolean>();
    this.#joined = answer;
    try {
      const joined = await this.#requests.join(this.#memberId, metadata, (memberId) => {
        this.#memberId = memberId;
      });
      this.#memberId = joined.memberId;
      const sentAt = this.#moment();
      // A later caller needs a later answer.
      this.#joined = null;
      const share = await this.#requests.sync(joined);
      this.#reported = key;
      this.#generation = joined.generationId;
      this.#note(sentAt);
      this.#assigned(share, named);
      answer.resolve(true);
    } finally {
      this.#joined = null;
      answer.resolve(false);
    }
  }

  /** Applies an assignment, which follows the report of this member that named these shards. */
  #assigned({ shards, gives }: MemberShards, named: ReadonlySet<Ownership>): void {
    for (const [shard, claim] of this.#claims) {
      // Released while the group shared out: it has the shard by the report, and must hear of the release first.
      if (!named.has(claim)) continue;
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
      if (claim.since === null) claim.standBy(this.#requests.group, this.#generation, isDrained);
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

/** Accepts the only shard of a state, with its own membership, which ends with it; as `GroupMember.gain`. */
export async function gainOnly(
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
