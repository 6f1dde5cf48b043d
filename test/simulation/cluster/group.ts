// Kafka's coordinators of consumer groups, in the classic protocol (Kafka protocol guide; KIP-345 for
// static members, KIP-394 for the id that a new member must have received): a join waits for all known
// members until their session is over; generations, sessions.

import type { joinGroupV9 } from '@platformatic/kafka';
import { shareIn } from '../../../src/cluster/assignment.ts';
import { refused } from './broker.ts';
import type { Course } from './course.ts';

type Joined = joinGroupV9.JoinGroupResponse;

interface Member {
  readonly id: string;
  /** The life that has joined. */
  readonly who: string;
  readonly instance: string | null;
  metadata: Buffer;
  /** The request that waits for a response. */
  joining: { answer: (joined: Joined) => void; refuse: (error: Error) => void } | null;
  syncing: { answer: (assignment: Buffer) => void; refuse: (error: Error) => void } | null;
  assignment: Buffer;
  /** The last response. */
  owns: readonly number[];
  answeredAt: number;
}

/** The content of a join request. */
export interface Joining {
  readonly who: string;
  readonly sessionMs: number;
  readonly memberId: string;
  readonly instance: string | null;
  readonly metadata: Buffer;
}

const coordinatorNotAvailable = 15;
const unknownMember = 25;
const illegalGeneration = 22;
const rebalancing = 27;
const idRequired = 79;
const fencedInstance = 82;
/** `group.initial.rebalance.delay.ms`, which is 3 s by default. */
const firstDelayMs = 500;

/** The groups, each with its own coordinator. */
export class Groups {
  /** Groups without a coordinator at present. */
  readonly out = new Set<string>();
  readonly #course: Course;
  readonly #groups = new Map<string, Group>();

  constructor(course: Course) {
    this.#course = course;
  }

  of(id: string): Group {
    if (this.out.has(id)) throw refused(coordinatorNotAvailable);
    return this.seen(id);
  }

  /** The group as the oracle sees it. */
  seen(id: string): Group {
    const group = this.#groups.get(id) ?? new Group(this.#course, id);
    this.#groups.set(id, group);
    return group;
  }
}

/** A group. */
class Group {
  generation = 0;
  readonly #course: Course;
  readonly #id: string;
  readonly #members = new Map<string, Member>();
  readonly #named = new Set<string>();
  #state: 'stable' | 'preparing' | 'completing' | 'empty' = 'empty';
  #leader = '';
  #round = 0;
  #names = 0;
  #sessionMs = 0;

  constructor(course: Course, id: string) {
    this.#course = course;
    this.#id = id;
  }

  /** The members; during a join their new reports are not shown. */
  described() {
    const isKnown = this.#state === 'stable';
    return [...this.#members.values()].map(({ id, instance, metadata, assignment }) => ({
      ...{ memberId: id, groupInstanceId: instance, clientHost: '/modelled' },
      memberMetadata: isKnown ? metadata : Buffer.alloc(0),
      memberAssignment: assignment,
    }));
  }

  /** The life that owns a shard by the last report; null: none. */
  ownerOf(shard: number): string | null {
    const owner = [...this.#members.values()].find(({ owns }) => owns.includes(shard));
    return owner?.who ?? null;
  }

  join({ who, sessionMs, memberId, instance, metadata }: Joining): Promise<Joined> {
    this.#sessionMs = sessionMs;
    let id = memberId;
    if (id === '') {
      this.#names += 1;
      id = `m-${String(this.#names).padStart(4, '0')}`;
      const before = [...this.#members.values()].find((one) => one.instance === instance);
      if (instance === null) {
        this.#named.add(id);
        throw refused(idRequired, { memberId: id });
      }
      if (before !== undefined) this.#remove(before, fencedInstance);
    } else if (!this.#members.has(id) && !this.#named.has(id)) {
      throw refused(instance === null ? unknownMember : fencedInstance);
    }
    this.#named.delete(id);
    const member = this.#members.get(id) ?? {
      ...{ id, who, instance, metadata, joining: null, syncing: null },
      ...{ assignment: Buffer.alloc(0), owns: [], answeredAt: 0 },
    };
    this.#members.set(id, member);
    member.metadata = metadata;
    this.#hear(member);
    const answered = new Promise<Joined>((answer, refuse) => {
      member.joining = { answer, refuse };
    });
    if (this.#state === 'preparing') this.#lookWhetherAll();
    else this.#rebalance();
    return answered;
  }

  sync(
    generation: number,
    memberId: string,
    given: readonly { readonly memberId: string; readonly assignment: Buffer }[],
  ): Promise<Buffer> {
    const member = this.#known(memberId, generation);
    this.#hear(member);
    if (this.#state === 'preparing') throw refused(rebalancing);
    if (this.#state === 'stable') return Promise.resolve(member.assignment);
    const answered = new Promise<Buffer>((answer, refuse) => {
      member.syncing = { answer, refuse };
    });
    if (memberId === this.#leader) {
      for (const one of given) {
        const to = this.#members.get(one.memberId);
        if (to === undefined) continue;
        to.assignment = one.assignment;
        to.owns = shareIn(one.assignment).shards;
      }
      this.#state = 'stable';
      for (const one of this.#members.values()) {
        one.syncing?.answer(one.assignment);
        one.syncing = null;
        this.#hear(one);
      }
    }
    return answered;
  }

  heartbeat(generation: number, memberId: string): void {
    const member = this.#known(memberId, generation);
    this.#hear(member);
    if (this.#state === 'preparing') throw refused(rebalancing);
  }

  leave(memberId: string): void {
    const member = this.#members.get(memberId);
    if (member === undefined) return;
    this.#remove(member, unknownMember);
    this.#rebalance();
  }

  #known(id: string, generation: number): Member {
    const member = this.#members.get(id);
    if (member === undefined) throw refused(unknownMember);
    if (generation !== this.generation) throw refused(illegalGeneration);
    return member;
  }

  #hear(member: Member): void {
    const at = this.#course.now;
    member.answeredAt = at;
    this.#course.after(this.#sessionMs, null, () => {
      // A member that waits for a response is alive.
      if (member.answeredAt !== at || member.joining !== null || !this.#members.has(member.id))
        return;
      this.#course.tell(`${this.#id} gives ${member.id} up`);
      this.#remove(member, unknownMember);
      this.#rebalance();
    });
  }

  #remove(member: Member, why: number): void {
    this.#members.delete(member.id);
    member.joining?.refuse(refused(why));
    member.syncing?.refuse(refused(why));
    member.joining = null;
    member.syncing = null;
  }

  #rebalance(): void {
    if (this.#state === 'preparing') {
      this.#lookWhetherAll();
      return;
    }
    const isFirst = this.#state === 'empty';
    this.#state = 'preparing';
    this.#round += 1;
    const round = this.#round;
    for (const member of this.#members.values()) {
      member.syncing?.refuse(refused(rebalancing));
      member.syncing = null;
    }
    const isOver = () => this.#state !== 'preparing' || this.#round !== round;
    this.#course.after(isFirst ? firstDelayMs : this.#sessionMs, null, () => {
      if (isOver()) return;
      // The group removes each member that has not joined by now.
      for (const member of this.#members.values()) {
        if (member.joining === null) this.#remove(member, unknownMember);
      }
      this.#complete();
    });
    if (!isFirst) this.#lookWhetherAll();
  }

  #lookWhetherAll(): void {
    const members = [...this.#members.values()];
    if (this.generation > 0 && members.every(({ joining }) => joining !== null)) this.#complete();
  }

  #complete(): void {
    const members = [...this.#members.values()];
    if (members.length === 0) {
      this.#state = 'empty';
      return;
    }
    this.generation += 1;
    this.#state = 'completing';
    if (!this.#members.has(this.#leader)) this.#leader = members[0]?.id ?? '';
    this.#course.tell(
      `${this.#id}, generation ${this.generation}: ${members.map(({ id }) => id).join(' ')}`,
    );
    for (const member of members) {
      member.assignment = Buffer.alloc(0);
      const isLeader = member.id === this.#leader;
      const reported = isLeader ? members : [];
      member.joining?.answer({
        ...{ throttleTimeMs: 0, errorCode: 0, generationId: this.generation },
        ...{ protocolType: 'sluice', protocolName: 'one-owner', leader: this.#leader },
        ...{ skipAssignment: false, memberId: member.id },
        members: reported.map(({ id, instance, metadata }) => ({
          ...{ memberId: id, groupInstanceId: instance, metadata },
        })),
      });
      member.joining = null;
      this.#hear(member);
    }
  }
}
