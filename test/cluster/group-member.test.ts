// A membership whose group answers when the test wants: what a process does with an assignment that follows an outdated report,
// and which answer confirms that it still owns a shard.

import { expect, test, vi } from 'vitest';
import type { MemberShards } from '../../src/cluster/assignment.ts';
import { GroupMember } from '../../src/cluster/group-member.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { silent } from '../support/silent-log.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';

/** The requests of the process; each of them waits for the test. */
const group = vi.hoisted(() => ({
  joins: [] as { readonly report: { owns: object; ready: number[] }; answer(): void }[],
  syncs: [] as { answer(share: MemberShards): void }[],
  heartbeats: 0,
}));

vi.mock('../../src/cluster/group-requests.ts', async (original) => ({
  ...(await original<object>()),
  GroupRequests: class {
    readonly group = 'owners';
    async connect() {}
    async leave() {}
    async heartbeat() {
      group.heartbeats += 1;
    }
    join(_: string, metadata: Buffer) {
      const { promise, resolve } = Promise.withResolvers<object>();
      const joined = { memberId: 'one', generationId: group.joins.length + 1 };
      group.joins.push({ report: JSON.parse(`${metadata}`), answer: () => resolve(joined) });
      return promise;
    }
    sync() {
      const { promise, resolve } = Promise.withResolvers<MemberShards>();
      group.syncs.push({ answer: resolve });
      return promise;
    }
    cut() {}
    forgetCoordinator() {}
  },
}));

const never = new AbortController().signal;
const deps = { log: silent, lost: () => undefined };

/** Answers the join of this number; its assignment is requested then. */
async function joined(count: number): Promise<void> {
  await waitUntil(() => group.joins.length === count, { what: `join ${count}` });
  group.joins[count - 1]?.answer();
  await waitUntil(() => group.syncs.length === count, { what: `assignment ${count}` });
}

/** A process that owns shards 0 and 1. */
async function anOwner() {
  Object.assign(group, { joins: [], syncs: [], heartbeats: 0 });
  const brokers = [{ host: 'none', port: 1 }];
  const settings = { brokers, prefix: 'p', shards: 2, sessionMs: 6_000, deployment: () => [] };
  const member = new GroupMember(settings, { log: silent, clock: systemClock() });
  afterThisTest(() => member.close());
  const gained = [0, 1].map((shard) => member.gain(shard, deps, never));
  await joined(1);
  group.syncs[0]?.answer({ shards: [0, 1], gives: [] });
  const [first, second] = await Promise.all(gained);
  if (first === undefined || second === undefined) throw new Error('it owns no shard');
  return { member, first, second };
}

test('a shard that is released while the group shares out does not come back by the outdated report', async () => {
  const { member, first, second } = await anOwner();
  await first.close(false);
  await waitUntil(() => group.joins.length === 2, { what: 'the report of the release' });
  expect(group.joins[1]?.report).toMatchObject({ owns: { 1: 1 }, ready: [] });

  await second.close(false);
  const again = { owned: false };
  void member.gain(1, deps, never).then(
    () => {
      again.owned = true;
    },
    () => undefined,
  );
  await joined(2);
  group.syncs[1]?.answer({ shards: [1], gives: [] });

  // It reports the release, so that the group can give the shard to another process.
  await joined(3);
  expect(group.joins[2]?.report).toMatchObject({ owns: {}, ready: [1] });
  expect(again.owned).toBe(false);
  group.syncs[2]?.answer({ shards: [1], gives: [] });
  await waitUntil(() => again.owned, { what: 'the shard to be owned by the new report' });
});

test('during a join the next assignment confirms an owned shard, and one that was requested before does not', async () => {
  const { first, second } = await anOwner();
  await first.close(false);
  await waitUntil(() => group.joins.length === 2, { what: 'the report of the release' });
  const { heartbeats } = group;
  let confirmed = 0;
  const confirm = () => second.confirm().then(() => (confirmed += 1));

  const before = confirm();
  await joined(2);
  expect([confirmed, group.heartbeats]).toEqual([0, heartbeats]);
  const later = confirm();
  group.syncs[1]?.answer({ shards: [1], gives: [] });
  await before;
  await later;

  expect(confirmed).toBe(2);
  expect(group.heartbeats).toBeGreaterThan(heartbeats);
});

test('an assignment without the shard refuses it, also where it was confirmed by a join', async () => {
  const { first, second } = await anOwner();
  await first.close(false);
  await waitUntil(() => group.joins.length === 2, { what: 'the report of the release' });

  const refused = expect(second.confirm()).rejects.toMatchObject({ code: 'state_locked' });
  await joined(2);
  group.syncs[1]?.answer({ shards: [], gives: [] });
  await refused;
});
