// The faults that the simulation of clusters must find: in a shard's log and its ownership, in the assignment of
// shards, and in the messages between a process and its workers.

import type { Mutation } from '../mutations.ts';

const shardLog = 'src/cluster/log/shard-log.ts';
const assignment = 'src/cluster/assignment.ts';
const member = 'src/cluster/group-member.ts';
const supervisor = 'src/run/shard-supervisor.ts';
const pool = 'src/run/worker-pool.ts';
const turn = 'src/run/shard-turn.ts';
const worker = 'src/run/shard-worker.ts';
/** Faults in the work of a simulated process on the log of its shard. */
const work = 'test/simulation/cluster/work.ts';

/** All faults. */
export const ofCluster: readonly Mutation[] = [
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'each process writes under a transactional id of its own',
    from: 'this.#id = transactionalId;',
    to: 'this.#id = `${transactionalId}.${this.#name}`;',
    firstSeed: 299,
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/log/client.ts' },
    what: 'the state is read up to the last stable offset only',
    from: 'const readUncommitted = 0;',
    to: 'const readUncommitted = 1;',
    firstSeed: 6,
  },
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'a process continues with state that was compacted during the read',
    from: 'if ((await this.#newestMark()) !== null) throw shardLost(this.#settings);',
    to: '',
    isRare: true,
  },
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'the log is not read again after the group has removed the owner',
    from: 'if (givenUp === this.#givenUp) return;\n    await',
    to: 'if (givenUp >= 0) return;\n    await',
    firstSeed: 1210,
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/group-contact.ts' },
    what: 'a process without contact to the group still polls upstream',
    from: 'const silentShareMax = 2 / 3;',
    to: 'const silentShareMax = 1_000;',
    firstSeed: 830,
  },
  {
    ...{ of: 'cluster', file: assignment },
    what: 'a shard is given to a process that has one less',
    from: 'if (giver.load - receiver.load < 2) break;',
    to: 'if (giver.load - receiver.load < 1) break;',
  },
  {
    ...{ of: 'cluster', file: assignment },
    what: 'no process gives a shard away',
    from: 'giver.gives.push(shard);',
    to: '',
  },
  {
    ...{ of: 'cluster', file: assignment },
    what: 'a shard moves before its owner has released it',
    from: '{ shards: [...shards].sort(',
    to: '{ shards: [...shards].filter((one) => !given.get(memberId)?.includes(one)).sort(',
  },
  {
    ...{ of: 'cluster', file: member },
    what: 'the group does not learn that a shard was released and is accepted again',
    from: 'if (claim.since !== null) this.#releases += 1;',
    to: '',
  },
  {
    ...{ of: 'cluster', file: supervisor },
    what: 'a shard that the group moves is not stopped',
    from: 'gives: () => moved.abort(',
    to: 'gives: () => void Object(',
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/log/settings.ts' },
    what: 'all shards are written under one transactional id',
    from: 'transactionalId: `${prefix}.shard.${shard}`,',
    to: 'transactionalId: `${prefix}.shard.0`,',
  },
  {
    ...{ of: 'cluster', file: pool },
    what: 'a frozen worker keeps its shards',
    from: "        this.#child.kill('SIGKILL');\n",
    to: '',
  },
  {
    ...{ of: 'cluster', file: turn },
    what: 'a turn gets a later time of the last response of the group',
    from: 'uptimeMs: uptimeMs() - agoMs',
    to: 'uptimeMs: uptimeMs() - agoMs * 0',
    firstSeed: 5413,
  },
  {
    ...{ of: 'cluster', file: worker },
    what: 'a message to a stopped worker counts as sent when the worker resumes',
    from: 'const agoMs = uptimeMs() - message.uptimeMs;',
    to: 'const agoMs = Math.min(0, message.uptimeMs);',
    firstSeed: 5413,
  },
  {
    ...{ of: 'cluster', file: pool },
    what: 'the shards of a worker that has ended stay with it',
    from: 'for (const turn of turns) turn.end(1);',
    to: '',
    firstSeed: 3,
  },
  {
    ...{ of: 'cluster', file: worker },
    what: 'a worker outlives the process that has started it',
    from: 'own.exit(turns.size === 0 ? 0 : 1)',
    to: 'own.send',
    firstSeed: 48,
  },
  {
    ...{ of: 'cluster', file: supervisor },
    what: 'a turn gets no report that another process has its shard',
    from: 'moved.abort(why) : own.turn.lose(why)),',
    to: 'moved.abort(why) : own.turn.lose.bind(why)),',
    firstSeed: 67,
  },
  {
    ...{ of: 'cluster', file: work },
    what: 'the limiter starts full after a takeover',
    from: 'const tokensAtTakeover = 0;',
    to: 'const tokensAtTakeover = 5;',
    firstSeed: 44,
  },
  {
    ...{ of: 'cluster', file: work },
    what: 'a position is committed before the sink has the records',
    from: `    oracle.delivered(due);
    await this.#commit([row('position', ['sink'], next)]);`,
    to: `    await this.#commit([row('position', ['sink'], next)]);
    oracle.delivered(due);`,
  },
  {
    ...{ of: 'cluster', file: work },
    what: 'the checkpoint is committed in another transaction than its page',
    from: "await this.#commit([row('page', [from], found), checkpoint]);",
    to: "await this.#commit([row('page', [from], found)]);\n    await this.#commit([checkpoint]);",
  },
];
