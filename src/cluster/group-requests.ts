// The requests of a member to its consumer group (Kafka protocol guide, "Group membership API"), sent to the coordinator of the group. After
// an error response, the next request looks for the coordinator again.

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
import { Connections } from '../kafka/log-client.ts';
import { assignments, type MemberShards, shareIn } from './assignment.ts';
import { connectionOf, type MemberSettings, ownersOf } from './log/settings.ts';

const protocolType = 'sluice';
/** Members of a state of one shard write what older versions read, so both may be in the group. */
const protocolName = { one: 'one-owner', several: 'shards' };
const requestMsBeyondSession = 10_000;

/** A member as the group knows it. */
interface MemberIdentity {
  /** Empty: a new member. */
  readonly memberId: string;
  readonly generation: number;
}

/** The requests of one process. */
export class GroupRequests {
  readonly #settings: MemberSettings;
  readonly #connections: Connections;
  #coordinator: Broker | null = null;
  /** The name of the group. */
  readonly group: string;

  constructor(settings: MemberSettings) {
    this.#settings = settings;
    this.group = ownersOf(settings);
    const options = connectionOf(settings);
    // The broker answers a joining member after all others have joined or were removed.
    const requestTimeout = settings.sessionMs + requestMsBeyondSession;
    this.#connections = new Connections({
      ...options,
      connection: { ...options.connection, requestTimeout },
    });
  }

  /** Connects to the coordinator. */
  async connect(): Promise<void> {
    await this.#connection();
  }

  /** Another broker may be the coordinator now. */
  forgetCoordinator(): void {
    this.#coordinator = null;
  }

  /** Rejects with the error response of the group. */
  async heartbeat({ memberId, generation }: MemberIdentity): Promise<void> {
    const { instance = null } = this.#settings;
    const who = [this.group, generation, memberId, instance] as const;
    await heartbeatV4.api.async(await this.#connection(), ...who);
  }

  /** Joins with a report. A new member gets its id, which `named` receives, and joins again with it. */
  async join(
    before: string,
    metadata: Buffer,
    named: (memberId: string) => void,
  ): Promise<joinGroupV9.JoinGroupResponse> {
    const { sessionMs, instance = null } = this.#settings;
    const name = this.#protocolName;
    const join = async (memberId: string) =>
      await joinGroupV9.api.async(
        await this.#connection(),
        ...([this.group, sessionMs, sessionMs, memberId, instance] as const),
        ...[protocolType, [{ name, metadata }], null],
      );
    return await join(before).catch(async (error) => {
      // The broker gives a new member its id, and requires a second request with it.
      if (answerIn(error) !== 'MEMBER_ID_REQUIRED') throw error;
      const { memberId } = error.response as joinGroupV9.JoinGroupResponse;
      named(memberId);
      return await join(memberId);
    });
  }

  /** Receives the assignment of this member; the leader of the group sends those of all. */
  async sync(joined: joinGroupV9.JoinGroupResponse): Promise<MemberShards> {
    const { instance = null, shards = 1 } = this.#settings;
    const { memberId, generationId, leader, skipAssignment, members } = joined;
    const leads = leader === memberId && !skipAssignment;
    const given = leads ? assignments(members, shards) : [];
    const synced = await syncGroupV5.api.async(
      // The join may have lasted longer than a session of the connection.
      await this.#connection(),
      ...([this.group, generationId, memberId, instance] as const),
      ...([protocolType, this.#protocolName, given] as const),
    );
    return shareIn(synced.assignment);
  }

  /** Leaves the group; nothing is sent without a coordinator. */
  async leave(memberId: string): Promise<void> {
    if (this.#coordinator === null || memberId === '') return;
    const groupInstanceId = this.#settings.instance ?? null;
    const member = { memberId, groupInstanceId, reason: null };
    const connection = await this.#connections.to(this.#coordinator);
    await leaveGroupV5.api.async(connection, this.group, [member]);
  }

  /** Cuts all connections. */
  cut(): void {
    this.#connections.cut();
  }

  get #protocolName(): string {
    return (this.#settings.shards ?? 1) === 1 ? protocolName.one : protocolName.several;
  }

  async #connection(): Promise<Connection> {
    if (this.#coordinator !== null) return await this.#connections.to(this.#coordinator);
    let last: unknown;
    for (const broker of this.#settings.brokers) {
      try {
        const any = await this.#connections.to(broker);
        const { async: find } = findCoordinatorV4.api;
        const { coordinators } = await find(any, FindCoordinatorKeyTypes.GROUP, [this.group]);
        const connection = await this.#connections.to(coordinators[0]);
        this.#coordinator = coordinators[0] ?? null;
        return connection;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }
}

/** The name of the protocol error in a response. */
export function answerIn(error: unknown): string | null {
  if (!(error instanceof ResponseError)) return null;
  const [first] = error.errors as readonly { readonly apiId?: string }[];
  return first?.apiId ?? null;
}
