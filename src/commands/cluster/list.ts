// `sluice cluster`: who works with a state in Kafka, who stands by, and how its streams and sinks
// stand, from any machine that reaches the brokers. It reads what was committed there, so that it
// also answers while nobody works; what only the process that works knows, its own page has.

import type { LogSettings } from '../../cluster/log/settings.ts';
import type { ClusterProcess } from '../../cluster/processes.ts';
import type { Config } from '../../config/config.ts';
import { inShards } from '../../config/shards.ts';
import { lookInto } from '../../hold/store.ts';
import { type ClusterNote, clusterNote } from '../../run/cluster.ts';
import { painted, tableLines } from '../../terminal/table.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { systemClock } from '../../tools/clock.ts';
import { timeText } from '../../tools/time-text.ts';
import { joinedStanding } from '../../watch/joined.ts';
import type { StoredStanding } from '../../watch/standing.ts';
import { readState } from '../../watch/state.ts';
import { storedStanding } from '../../watch/stored.ts';
import { withCopy } from '../shared/afar.ts';
import { configOption, defineCommand } from '../shared/command.ts';
import { planToLook, readConfigToLook } from '../shared/looking.ts';
import { sinkTable, streamTable } from '../status.ts';
import { kafkaOf } from './kafka-of.ts';

/** Prints it. */
export const list = defineCommand({
  name: 'list',
  about: 'show every process of a state in Kafka, and how streams and sinks stand',
  options: { config: configOption, json: { about: 'as JSON' } },
  async run({ config: file, json }, { env, out }) {
    const { config } = readConfigToLook(file, env);
    const parts = inShards(config);
    // Its client takes long to load.
    const { processesOf } = await import('../../cluster/processes.ts');
    const told: Told = joined(
      kafkaOf(config),
      await Promise.all(
        parts.map(async (part) => {
          const kafka = kafkaOf(part);
          const processes = await processesOf(kafka, systemClock());
          const { standing, note } = await standingOf(part, processes);
          return { shard: kafka.shard ?? 0, processes, standing, note };
        }),
      ),
    );
    if (json) out(JSON.stringify(told, null, 2));
    else for (const line of clusterLines(told)) out(line);
    return 0;
  },
});

/** A shard, as it looks from outside. */
interface SeenShard {
  readonly shard: number;
  readonly processes: readonly ClusterProcess[];
  readonly standing: StoredStanding;
  readonly note: ClusterNote | null;
}

/** All shards together: a process stands ready for each of them. */
function joined({ prefix, shards = 1 }: LogSettings, seen: readonly SeenShard[]): Told {
  const all = seen.flatMap(({ processes, ...of }) => processes.map((one) => ({ one, ...of })));
  const { streams, sinks } = joinedStanding(seen.map(({ standing }) => standing));
  return {
    prefix,
    ...(shards > 1 && { shards }),
    processes: [...Map.groupBy(all, ({ one }) => seatKey(one)).values()]
      .map((of) => toldOf(of, shards))
      .sort((a, b) => Number(b.state === 'working') - Number(a.state === 'working')),
    takeovers: seen.reduce((sum, { note }) => sum + (note?.takeovers ?? 0), 0),
    ...{ streams, sinks },
  };
}

function toldOf(seats: readonly Seat[], shards: number) {
  const [{ one }] = seats as readonly [Seat];
  const { instance, host, pid, address, startedAt } = one;
  const owned = seats.filter(({ one: { works } }) => works);
  const isDrained = seats.every((seat) => seat.one.isDrained);
  // Noted when it took the state, so it may be the one before for a moment; a shard has a process of its own.
  const since = owned.flatMap(({ note }) =>
    note?.host === host && (note?.pid === pid || shards > 1) ? note.since : [],
  );
  return {
    instance,
    ...{ host, pid, address: cleanText(address, 100) },
    state: owned.length > 0 ? 'working' : isDrained ? 'drained' : 'standing by',
    ...(shards > 1 && { shards: owned.map(({ shard }) => shard) }),
    started_at: timeText(startedAt),
    works_since: since.length === 0 ? null : timeText(Math.min(...since)),
  };
}

/** The same for what a process is in the groups of all shards. */
function seatKey({ process, address, host, pid }: ClusterProcess): string {
  return process ?? `${address} ${host} ${pid}`;
}

interface Seat extends Pick<SeenShard, 'shard' | 'note'> {
  readonly one: ClusterProcess;
}

/** Of a copy, which is thrown away at once. */
async function standingOf(config: Config, processes: readonly ClusterProcess[]) {
  const kafka = kafkaOf(config);
  return await withCopy({ ...config, state: { ...config.state, kafka } }, async (copy) => {
    const { dir } = copy.state;
    const state = readState(dir);
    const positions = [...state.sinks.values()].flatMap(({ position }) => position ?? []);
    const works = processes.find((one) => one.works);
    const standing: StoredStanding = storedStanding(
      {
        ...state,
        // Its pages were not copied, so nobody here knows which are still held.
        spool: { ...state.spool, oldest: Math.min(0, ...positions) },
        holder: works === undefined ? null : String(works.instance ?? works.host),
      },
      { plan: await planToLook(config), state: copy.state, refused: null },
    );
    return { standing, note: lookInto(dir, null, clusterNote) };
  });
}

interface Told extends Pick<StoredStanding, 'streams' | 'sinks'> {
  readonly prefix: string;
  /** Left out: one. */
  readonly shards?: number;
  readonly processes: readonly ReturnType<typeof toldOf>[];
  readonly takeovers: number;
}

function clusterLines({ prefix, processes, takeovers, streams, sinks, shards }: Told) {
  const count = (of: string) => processes.filter(({ state }) => state === of).length;
  const working = count('working');
  const drained = count('drained') === 0 ? '' : `${count('drained')} drained, `;
  const head = `state ${prefix} in Kafka: ${working} working, ${count('standing by')} standing by, ${drained}taken over ${takeovers} times`;
  return [
    painted(head, working === 0 ? 'bad' : 'good'),
    '',
    ...tableLines(
      [
        'INSTANCE',
        'HOST',
        'PROCESS',
        'STATE',
        ...(shards ? ['SHARDS'] : []),
        'STARTED',
        'WORKS SINCE',
      ],
      processes.map(({ instance, host, address, pid, ...one }) => [
        cleanText(instance ?? '-', 200),
        cleanText(host ?? address, 200),
        String(pid ?? '-'),
        { text: one.state, mood: one.state === 'working' ? 'good' : 'dim' } as const,
        ...(one.shards ? [one.shards.join(' ') || '-'] : []),
        one.started_at ?? '-',
        one.works_since ?? '-',
      ]),
    ),
    '',
    ...streamTable({ streams }),
    '',
    ...sinkTable({ sinks }),
  ];
}
