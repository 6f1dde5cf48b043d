// Who of the members of the group has the shard. Whichever member shares out comes to the same.

import type { joinGroupV9 } from '@platformatic/kafka';

/** What a member is told that owns, and what others are. */
export const owns: Buffer = Buffer.from('owner');
const standsBy = Buffer.from('standby');

/** A member of the group, as whoever shares out sees it. */
export interface Candidate {
  readonly memberId: string;
  /** The generation in which it became the owner; null: it is not. */
  readonly ownsSince: number | null;
  /** It is to own nothing. */
  readonly isDrained: boolean;
  /** How many other shards it had when it joined. */
  readonly load: number;
  /** Which process it is: the same in the groups of all shards. */
  readonly process: string;
}

/**
 * The member that owns a shard: who became the owner last, so that one which has slept through its
 * end loses against its successor; else who has the fewest other shards; of those that have as few
 * each shard begins at another one, so that processes which start together share the shards. Null:
 * there is no member that may.
 */
export function ownerOf(members: readonly Candidate[], shard: number): string | null {
  const inTurn = members
    .filter(({ isDrained }) => !isDrained)
    .sort((a, b) => order(a.process, b.process) || order(a.memberId, b.memberId));
  const first = shard % Math.max(1, inTurn.length);
  const [owner] = [...inTurn.slice(first), ...inTurn.slice(0, first)].sort(
    (a, b) => (b.ownsSince ?? -1) - (a.ownsSince ?? -1) || a.load - b.load,
  );
  return owner?.memberId ?? null;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What each member is told, by what each has said in its metadata; one of another version says less. */
export function assignments(
  members: readonly joinGroupV9.JoinGroupResponseMember[],
  shard: number,
) {
  const candidates = members.map(({ memberId, metadata }) => {
    const said = JSON.parse(String(metadata)) as Partial<Candidate>;
    const { ownsSince = null, isDrained = false, load = 0, process = memberId } = said;
    return { memberId, ownsSince, isDrained, load, process };
  });
  const owner = ownerOf(candidates, shard);
  return candidates.map(({ memberId }) => ({
    memberId,
    assignment: memberId === owner ? owns : standsBy,
  }));
}

/** How a process looks to others that look at the group of a shard. */
interface SeenProcess {
  readonly process: string | null;
  readonly works: boolean;
  readonly isDrained: boolean;
}

/**
 * Whether a process is to give a shard away, by the members of the groups of all shards: it has at
 * least two more than another one that may have any, and nobody has more. Of several only the first by
 * name is told so, or they would all give to the same one.
 */
export function isGiver(process: string, groups: readonly (readonly SeenProcess[])[]): boolean {
  // Of those that join anew Kafka does not tell who they are, and so not what they have.
  if (groups.flat().some(({ process }) => process === null)) return false;
  const loads = new Map<string, number>();
  for (const member of groups.flat()) {
    if (member.process === null || (member.isDrained && !member.works)) continue;
    loads.set(member.process, (loads.get(member.process) ?? 0) + (member.works ? 1 : 0));
  }
  const most = Math.max(...loads.values());
  const [giver] = [...loads].filter(([, load]) => load === most).sort(([a], [b]) => order(a, b));
  return giver?.[0] === process && most - Math.min(...loads.values()) >= 2;
}
