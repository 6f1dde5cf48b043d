// Which of several processes has the shard: a consumer group that reads nothing, its assignment
// being the lock (Kafka protocol guide, "Group membership API"). One member owns, the others stand
// by; whoever owns keeps it through every rebalance. What must stay true: whoever owns asks upstream
// for nothing once a successor may have begun, which it tells by its own clock. That a process which
// has not heard of its successor writes nothing is the transactional id's doing (log/shard-log.ts).

import { hostname } from 'node:os';
import {
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
import { assignments, owns } from './assignment.ts';
import type { ConfigPrint } from './config-print.ts';
import { GroupContact, type SentAt } from './group-contact.ts';
import { connectionOf, type MemberSettings, processName, shardNames } from './log/settings.ts';
import type { SelfDescription } from './processes.ts';

/** What a membership works with. */
export interface OwnershipDeps {
  readonly log: Log;
  readonly clock: Clock;
  /** Called once, when another process owns and this one waits. */
  readonly waits?: () => void;
  /** Whether this process is to own nothing, from the next time on that it does not own. */
  readonly isDrained?: () => boolean;
  /** Whether it gives the shard away to a process that has fewer, from the next time on that it does not own. */
  readonly isGiven?: () => boolean;
  /** Called with the time of each request that the group has answered; epoch milliseconds. */
  readonly heard?: (at: number) => void;
  /** How many other shards this process has; left out: none. */
  readonly load?: () => number;
  /** Called once, when another process owns what this one did. */
  readonly lost: (why: ExportError) => void;
}

const protocolType = 'sluice';
const protocolName = 'one-owner';
/** Heartbeats in the time after which a silent member is taken for dead. */
const heartbeats = 5;
const pauseMs = 200;
const requestMsBeyondSession = 10_000;

/** What whoever works on a shard has to know of the membership by which it may. */
export interface Membership {
  /** True while no successor can have begun. */
  readonly hasContact: () => boolean;
  /** How often the group has given this process up: another one may have owned since. */
  readonly givenUp: number;
  /** When the group has answered last, epoch milliseconds; null: it has not. */
  readonly heardAt: number | null;
  /**
   * Asks the group, and resolves where this process still owns: with a number that has grown where the group had given
   * it up meanwhile, and others may have owned. Rejects with `state_locked` where it
   * has slept through its end, so that it does not take from its successor what that one has.
   */
  readonly confirm: (signal?: AbortSignal) => Promise<number>;
  /** Leaves, so that another process owns at once; `isEnd`, as if left out: unless its place is to wait for it. */
  close(isEnd?: boolean): Promise<void>;
}

/** A process's membership. */
export class Ownership implements Membership {
  readonly #settings: MemberSettings;
  readonly #deps: OwnershipDeps;
  readonly #group: string;
  readonly #self: Omit<SelfDescription, 'print'>;
  readonly #connections: Connections;
  readonly #over = new AbortController();
  #coordinator: Connection | null = null;
  #memberId = '';
  #generation = -1;
  #ownsSince: number | null = null;
  #isNameTaken = false;
  /** How often the group took it for dead: whoever owned then may be dead by now, and unknown to the group. */
  #givenUp = 0;
  /** Whether the group was asked to assign nothing to this process. */
  #standsAside = false;
  /** The print of its config that the group has. */
  #print: ConfigPrint | null = null;
  /** When the group has heard of this process. */
  readonly hearing: GroupContact;

  private constructor(settings: MemberSettings, deps: OwnershipDeps) {
    this.#settings = settings;
    this.#deps = deps;
    this.hearing = new GroupContact(settings.sessionMs, deps);
    this.#group = shardNames(settings).owners;
    this.#self = {
      ...{ host: hostname(), pid: process.pid, startedAt: deps.clock.now() },
      ...{ deployment: settings.deployment(), process: processName(settings) },
    };
    const options = connectionOf(settings);
    // The broker answers a member that joins once all others have, or were given up.
    const requestTimeout = settings.sessionMs + requestMsBeyondSession;
    this.#connections = new Connections({
      ...options,
      connection: { ...options.connection, requestTimeout },
    });
  }

  /**
   * Joins, and resolves once this process owns. Waits for that as long as it takes; rejects with
   * the signal's reason when aborted, and with `sink_refused` where Kafka refuses for good.
   */
  static async gain(
    settings: MemberSettings,
    deps: OwnershipDeps,
    signal: AbortSignal,
  ): Promise<Ownership> {
    const ownership = new Ownership(settings, deps);
    try {
      await Promise.race([ownership.#gain(signal), abortOf(signal)]);
    } catch (error) {
      await ownership.close();
      throw signal.aborted ? signal.reason : error;
    }
    const generation = ownership.#generation;
    deps.log.info('state_owned', 'this process owns the state in Kafka', {
      group: ownership.#group,
      generation,
    });
    void ownership.#keep();
    return ownership;
  }

  /** That another process has come under this one's name: to join again would only put that one out. */
  get nameTaken(): ExportError | null {
    return this.#isNameTaken ? this.#sameName() : null;
  }

  get hasContact(): () => boolean {
    return this.hearing.hasContact;
  }

  get givenUp(): number {
    return this.#givenUp;
  }

  get heardAt(): number | null {
    return this.hearing.heardAt;
  }

  readonly confirm = async (signal = this.#over.signal): Promise<number> => {
    while (this.#ownsSince !== null) {
      if (this.#generation >= 0) {
        try {
          await this.#beat();
          return this.#givenUp;
        } catch (error) {
          this.#learn(error);
        }
      }
      // Meanwhile it joins again (`#keep`), and hears who owns.
      await this.#deps.clock.sleep(pauseMs, signal);
    }
    throw this.#isNameTaken ? this.#sameName() : this.#whyLost();
  };

  async close(isEnd = true): Promise<void> {
    const coordinator = this.#isKept(isEnd) ? null : this.#coordinator;
    this.#over.abort(new Error('the membership is over'));
    const member = {
      memberId: this.#memberId,
      groupInstanceId: this.#settings.instance ?? null,
      reason: null,
    };
    if (coordinator !== null && this.#memberId !== '') {
      const left = leaveGroupV5.api.async(coordinator, this.#group, [member]);
      // Who cannot leave is given up after the session.
      const patience = this.#deps.clock.sleep(pauseMs * heartbeats);
      await Promise.race([left, patience]).catch(() => undefined);
    }
    this.#connections.cut();
  }

  /** Whether its place waits for it, by its name, until the session is over (KIP-345). */
  #isKept(isEnd: boolean): boolean {
    const { instance, leavesAtEnd = true } = this.#settings;
    return isEnd && !this.#isUnrequested() && instance !== undefined && !leavesAtEnd;
  }

  async #gain(signal: AbortSignal): Promise<void> {
    let isReported = false;
    while (this.#ownsSince === null) {
      signal.throwIfAborted();
      await this.#round(signal);
      if (isReported || this.#ownsSince !== null || this.#generation < 0) continue;
      isReported = true;
      const why = this.#whyWaits();
      const generation = this.#generation;
      this.#deps.log.info('standing_by', `standing by: ${why}`, {
        group: this.#group,
        generation,
      });
      this.#deps.waits?.();
    }
  }

  #isUnrequested(): boolean {
    const { isDrained, isGiven } = this.#deps;
    return isDrained?.() === true || isGiven?.() === true;
  }

  #whyWaits(): string {
    if (!this.#standsAside) return 'another process has the state in Kafka';
    if (this.#deps.isDrained?.() === true) return 'drained';
    return 'the shard moves to a process that has fewer shards';
  }

  async #keep(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      await this.#round(signal).catch(async (error) => {
        if (signal.aborted) return;
        this.#deps.log.warn('group_join_failed', 'group membership failed; joining again', {
          error: String(error),
        });
        await this.#deps.clock.sleep(this.#settings.sessionMs, signal).catch(() => undefined);
      });
      if (this.#ownsSince !== null) continue;
      if (!signal.aborted) this.#deps.lost(this.#isNameTaken ? this.#sameName() : this.#whyLost());
      return;
    }
  }

  /** A heartbeat after its pause, or what is due instead: joining, or looking for the coordinator. */
  async #round(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    try {
      // Who owns lets go first, in order.
      const standsAside = this.#ownsSince === null && this.#isUnrequested();
      if (standsAside !== this.#standsAside || this.#generation < 0 || this.#hasNewPrint()) {
        return await this.#join(standsAside);
      }
      await clock.sleep(this.#settings.sessionMs / heartbeats, signal);
      await this.#beat();
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      this.#learn(error);
      await clock.sleep(pauseMs, signal);
    }
  }

  /** After a reload the other processes get the new print: a member can change it only by joining again. */
  #hasNewPrint(): boolean {
    const print = this.#settings.config?.() ?? null;
    return print !== this.#print && JSON.stringify(print) !== JSON.stringify(this.#print);
  }

  async #beat(): Promise<void> {
    const { instance = null } = this.#settings;
    const who = [this.#group, this.#generation, this.#memberId, instance] as const;
    const connection = await this.#connection();
    const sentAt = this.#moment();
    await heartbeatV4.api.async(connection, ...who);
    this.#note(sentAt);
  }

  /** What an answer says of the membership. Throws where asking again is of no use. */
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
        // Another process has this one's name; to join again would only put that one out.
        if (this.#ownsSince === null) throw this.#sameName();
        this.#ownsSince = null;
        this.#isNameTaken = true;
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

  async #join(isDrained: boolean): Promise<void> {
    const connection = await this.#connection();
    const { sessionMs, instance = null } = this.#settings;
    const load = this.#deps.load?.() ?? 0;
    const print = this.#settings.config?.() ?? null;
    const said = { ...this.#self, print, ownsSince: this.#ownsSince, isDrained, load };
    const metadata = Buffer.from(JSON.stringify(said));
    const protocols = [{ name: protocolName, metadata }];
    const ask = async () =>
      await joinGroupV9.api.async(
        connection,
        ...([this.#group, sessionMs, sessionMs, this.#memberId, instance] as const),
        ...([protocolType, protocols, null] as const),
      );
    const joined = await ask().catch(async (error) => {
      // The broker names new members, and wants to see that they have heard it.
      if (answerIn(error) !== 'MEMBER_ID_REQUIRED') throw error;
      this.#memberId = (error.response as joinGroupV9.JoinGroupResponse).memberId;
      return await ask();
    });
    this.#memberId = joined.memberId;
    const { generationId, leader, skipAssignment, members } = joined;
    const shares = leader === joined.memberId && !skipAssignment;
    const given = shares ? assignments(members, this.#settings.shard ?? 0) : [];
    const sentAt = this.#moment();
    const synced = await syncGroupV5.api.async(
      connection,
      ...([this.#group, generationId, this.#memberId, instance] as const),
      ...([protocolType, protocolName, given] as const),
    );
    this.#standsAside = isDrained;
    this.#print = print;
    this.#generation = generationId;
    this.#note(sentAt);
    if (!synced.assignment.equals(owns)) this.#ownsSince = null;
    else this.#ownsSince ??= generationId;
  }

  #note(sentAt: SentAt): void {
    this.hearing.note(sentAt);
    this.#deps.heard?.(sentAt.now);
  }

  #moment() {
    const { clock } = this.#deps;
    return { monotonic: clock.monotonic(), now: clock.now() };
  }

  async #connection(): Promise<Connection> {
    if (this.#coordinator !== null) return this.#coordinator;
    let last: unknown;
    for (const broker of this.#settings.brokers) {
      try {
        const asked = await this.#connections.to(broker);
        const { async: find } = findCoordinatorV4.api;
        const { coordinators } = await find(asked, FindCoordinatorKeyTypes.GROUP, [this.#group]);
        this.#coordinator = await this.#connections.to(coordinators[0]);
        return this.#coordinator;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  #whyLost(): ExportError {
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

function abortOf(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

/** The protocol error that a broker has answered with, by its name. */
function answerIn(error: unknown): string | null {
  if (!(error instanceof ResponseError)) return null;
  const [first] = error.errors as readonly { readonly apiId?: string }[];
  return first?.apiId ?? null;
}
