// Assigns the shards to the members of the group; the texts that the leader of the group and its members write to each
// other. Every leader computes the same. Invariant: an owner keeps its shard through each rebalance, so a
// shard moves only after its owner has released it.

import { isObject, type Json } from '../contracts/index.ts';

/** A member of the group, as the leader sees it. */
export interface Candidate {
  readonly memberId: string;
  /** Name of the process (`processName`): the order of members with the same number of shards. */
  readonly process: string;
  /** Its shards, each with the generation since which it owns it. */
  readonly owns: ReadonlyMap<number, number>;
  /** The shards that it accepts. */
  readonly ready: ReadonlySet<number>;
}

/** What a member gets. */
export interface MemberShards {
  readonly shards: readonly number[];
  /** Those of them that it stops in order and releases, since another member has fewer. */
  readonly gives: readonly number[];
}

/**
 * Shares out the shards. An owner keeps its shard. Of two owners the newer one keeps it, so a member that was frozen loses
 * against its successor. A free shard goes to the member with the fewest shards that accepts it.
 */
export function shareOut(members: readonly Candidate[]): ReadonlyMap<string, MemberShards> {
  const inTurn = members.toSorted(
    (a, b) => order(a.process, b.process) || order(a.memberId, b.memberId),
  );
  const shares = new Map(inTurn.map(({ memberId }) => [memberId, new Set<number>()]));
  const loadOf = ({ memberId }: Candidate) => shares.get(memberId)?.size ?? 0;
  const free: number[] = [];
  for (const shard of shardsOf(inTurn)) {
    const since = ({ owns }: Candidate) => owns.get(shard) ?? -1;
    const owners = inTurn.filter(({ owns }) => owns.has(shard));
    const [owner] = owners.toSorted((a, b) => since(b) - since(a));
    if (owner === undefined) free.push(shard);
    else shares.get(owner.memberId)?.add(shard);
  }
  for (const shard of free) {
    const [receiver] = inTurn
      .filter(({ ready }) => ready.has(shard))
      .sort((a, b) => loadOf(a) - loadOf(b));
    if (receiver !== undefined) shares.get(receiver.memberId)?.add(shard);
  }
  const given = givenIn(inTurn, shares);
  return new Map(
    [...shares].map(([memberId, shards]) => [
      memberId,
      { shards: [...shards].sort((a, b) => a - b), gives: given.get(memberId) ?? [] },
    ]),
  );
}

/**
 * The shards that members release, by member: moved in thought from the one with the most to the one with the fewest, until no
 * one has two more than another. All release at the same time, so that a start of several processes needs few rebalances.
 */
function givenIn(
  inTurn: readonly Candidate[],
  shares: ReadonlyMap<string, ReadonlySet<number>>,
): ReadonlyMap<string, readonly number[]> {
  const members = inTurn.map(({ memberId, owns, ready }) => {
    const shards = shares.get(memberId) ?? new Set();
    const movable = [...owns.keys()].filter((one) => shards.has(one)).sort((a, b) => b - a);
    return { memberId, ready, load: shards.size, movable: new Set(movable), gives: [] as number[] };
  });
  const next = () => {
    const receivers = members.filter(({ ready }) => ready.size > 0);
    receivers.sort((a, b) => a.load - b.load);
    for (const giver of members.toSorted((a, b) => b.load - a.load)) {
      for (const receiver of receivers) {
        if (giver.load - receiver.load < 2) break;
        const shard = giver.movable.values().find((one) => receiver.ready.has(one));
        if (shard !== undefined) return { giver, receiver, shard };
      }
    }
    return null;
  };
  for (let move = next(); move !== null; move = next()) {
    const { giver, receiver, shard } = move;
    giver.movable.delete(shard);
    giver.gives.push(shard);
    giver.load -= 1;
    receiver.load += 1;
  }
  return new Map(members.map(({ memberId, gives }) => [memberId, gives]));
}

function shardsOf(members: readonly Candidate[]): readonly number[] {
  const named = members.flatMap(({ owns, ready }) => [...owns.keys(), ...ready]);
  return [...new Set(named)].sort((a, b) => a - b);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What a member reports when it joins, beside what it says of itself. */
export interface MemberReport {
  /** Generations by shard. */
  readonly owns: Readonly<Record<string, number>>;
  readonly ready: readonly number[];
  readonly isDrained: boolean;
}

/** A report as older versions of a state of one shard read it too: `ownsSince` and `load`. */
export function reportFields(report: MemberReport, shards: number) {
  if (shards > 1) return report;
  return { ...report, ownsSince: report.owns[0] ?? null, load: 0 };
}

// What an older version of a state of one shard writes as the assignment, and reads.
const ownerText = 'owner';
const standbyText = 'standby';

/** What each member gets, by the reports of all, as the leader sends it. */
export function assignments(
  members: readonly { readonly memberId: string; readonly metadata?: Buffer | null }[],
  shards: number,
) {
  const shares = shareOut(
    members.map(({ memberId, metadata }) => candidateOf(memberId, metadata ?? Buffer.alloc(0))),
  );
  return [...shares].map(([memberId, share]) => ({
    memberId,
    assignment: Buffer.from(assignmentText(share, shards)),
  }));
}

function assignmentText(share: MemberShards, shards: number): string {
  if (shards > 1) return JSON.stringify(share);
  return share.shards.length > 0 ? ownerText : standbyText;
}

/** An assignment as a member or an observer reads it; of what sluice did not write, nothing. */
export function shareIn(assignment: Buffer): MemberShards {
  const text = assignment.toString();
  if (text === ownerText) return { shards: [0], gives: [] };
  const { shards, gives } = parsed(text);
  return { shards: numbersIn(shards), gives: numbersIn(gives) };
}

function candidateOf(memberId: string, metadata: Buffer): Candidate {
  const { process, owns, ready, ownsSince, isDrained } = parsed(metadata.toString());
  const name = typeof process === 'string' ? process : memberId;
  const since = typeof ownsSince === 'number' ? { 0: ownsSince } : {};
  const generations = Object.entries(isObject(owns as Json) ? (owns as object) : since);
  return {
    ...{ memberId, process: name },
    owns: new Map(generations.map(([shard, generation]) => [Number(shard), Number(generation)])),
    // An older version has one shard only, and accepts it unless it is drained.
    ready: new Set(ready === undefined ? (isDrained === true ? [] : [0]) : numbersIn(ready)),
  };
}

function numbersIn(list: unknown): readonly number[] {
  return Array.isArray(list) ? list.filter((one) => Number.isInteger(one)) : [];
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value as Json) ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
