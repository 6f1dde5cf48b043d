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
}

/**
 * The member that owns: who became the owner last, so that one which has slept through its end
 * loses against its successor; else the first by name. Null: there is no member that may.
 */
export function ownerOf(members: readonly Candidate[]): string | null {
  const [owner] = members
    .filter(({ isDrained }) => !isDrained)
    .sort(
      (a, b) => (b.ownsSince ?? -1) - (a.ownsSince ?? -1) || (a.memberId < b.memberId ? -1 : 1),
    );
  return owner?.memberId ?? null;
}

/** What each member is told, of whom each has said in its metadata since when it owns. */
export function assignments(members: readonly joinGroupV9.JoinGroupResponseMember[]) {
  const candidates = members.map(({ memberId, metadata }) => {
    const said = JSON.parse(String(metadata)) as Omit<Candidate, 'memberId'>;
    return { memberId, ownsSince: said.ownsSince, isDrained: said.isDrained === true };
  });
  const owner = ownerOf(candidates);
  return candidates.map(({ memberId }) => ({
    memberId,
    assignment: memberId === owner ? owns : standsBy,
  }));
}
