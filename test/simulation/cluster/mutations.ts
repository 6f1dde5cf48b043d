// The flaws that the simulation of clusters must find: of a shard's log and its owner, of how shards
// are shared, and of what a process says to those that it starts.

import type { Mutation } from '../mutations.ts';

const shardLog = 'src/cluster/log/shard-log.ts';
const assignment = 'src/cluster/assignment.ts';
const keeper = 'src/run/shard-supervisor.ts';
const shardProcess = 'src/run/shard-process.ts';
const seat = 'src/run/shard-worker.ts';
/** Of the work that a simulated process does with the log of its shard. */
const work = 'test/simulation/cluster/work.ts';

/** All of them. */
export const ofCluster: readonly Mutation[] = [
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'each process writes under a transactional id of its own',
    from: 'this.#id = transactionalId;',
    to: 'this.#id = `${transactionalId}.${this.#name}`;',
    firstSeed: 209,
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/log/client.ts' },
    what: 'the state is read up to the last stable offset only',
    from: 'const readUncommitted = 0;',
    to: 'const readUncommitted = 1;',
  },
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'state that was compacted while it was read is gone on from',
    from: 'if ((await this.#newestMark()) !== null) throw shardLost(this.#settings);',
    to: '',
    isRare: true,
  },
  {
    ...{ of: 'cluster', file: shardLog },
    what: 'the log is not looked at where the group had given its owner up',
    from: 'if (givenUp === this.#givenUp) return;\n    await',
    to: 'if (givenUp >= 0) return;\n    await',
    firstSeed: 849,
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/group-contact.ts' },
    what: 'who is not received goes on asking upstream',
    from: 'const silentShareMax = 2 / 3;',
    to: 'const silentShareMax = 1_000;',
    firstSeed: 811,
  },
  {
    ...{ of: 'cluster', file: assignment },
    what: 'a shard is given to whoever has one less',
    from: 'Math.min(...loads.values()) >= 2;',
    to: 'Math.min(...loads.values()) >= 1;',
  },
  {
    ...{ of: 'cluster', file: assignment },
    what: 'a shard is given away while one is being given out',
    from: 'if (groups.flat().some(({ process }) => process === null)) return false;',
    to: '',
    firstSeed: 667,
  },
  {
    ...{ of: 'cluster', file: keeper },
    what: 'what was given away is never taken again',
    from: 'this.#given !== null && !this.#processes.has(this.#given)',
    to: 'this.#given !== null && this.#processes.size > 1_000',
    firstSeed: 319,
  },
  {
    ...{ of: 'cluster', file: keeper },
    what: 'nobody gives a shard away',
    from: 'if (shard === undefined || !isGiver(',
    to: 'if (shard === undefined || this.#processes.size < 1_000 || !isGiver(',
  },
  {
    ...{ of: 'cluster', file: 'src/cluster/log/settings.ts' },
    what: 'all shards are written under one transactional id',
    from: 'transactionalId: `${prefix}.shard.${shard}`,',
    to: 'transactionalId: `${prefix}.shard.0`,',
  },
  {
    ...{ of: 'cluster', file: shardProcess },
    what: 'a frozen process keeps its shard',
    from: "      this.#child.kill('SIGKILL');\n",
    to: '',
  },
  {
    ...{ of: 'cluster', file: shardProcess },
    what: 'a process is reported that the group has received of it when it has not',
    from: 'uptimeMs: uptimeMs() - agoMs',
    to: 'uptimeMs: uptimeMs() - agoMs * 0',
    firstSeed: 3604,
  },
  {
    ...{ of: 'cluster', file: seat },
    what: 'what was said while a process was stopped counts as said when it goes on',
    from: 'const agoMs = uptimeMs() - message.uptimeMs;',
    to: 'const agoMs = Math.min(0, message.uptimeMs);',
    firstSeed: 3604,
  },
  {
    ...{ of: 'cluster', file: seat },
    what: 'a process outlives the one that has started it',
    from: 'const abandoned = () => own.exit(1);',
    to: 'const abandoned = () => own.off;',
    firstSeed: 22,
  },
  {
    ...{ of: 'cluster', file: keeper },
    what: 'a process is not reported that another one has its shard',
    from: 'lost: (why: ExportError) => own.process?.lose(why),',
    to: 'lost: (why: ExportError) => own.process?.lose.bind(why),',
    firstSeed: 54,
  },
  {
    ...{ of: 'cluster', file: work },
    what: 'the limiter starts full after a takeover',
    from: 'const tokensAtTakeover = 0;',
    to: 'const tokensAtTakeover = 5;',
    firstSeed: 40,
  },
  {
    ...{ of: 'cluster', file: work },
    what: 'a position is committed before the sink has what it says',
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
