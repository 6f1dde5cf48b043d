// `sluice cluster`: who works with a state in Kafka, who stands by, and how its streams and sinks
// stand, from any machine that reaches the brokers. It reads what was committed there, so that it
// also answers while nobody works; what only the process that works knows, its own page has.

import type { ClusterProcess } from '../../cluster/processes.ts';
import type { Config } from '../../config/config.ts';
import { lookInto } from '../../hold/store.ts';
import { type ClusterNote, clusterNote } from '../../run/cluster.ts';
import { painted, tableLines } from '../../terminal/table.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { systemClock } from '../../tools/clock.ts';
import { timeText } from '../../tools/time-text.ts';
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
    const kafka = kafkaOf(config);
    // Its client takes long to load.
    const { processesOf } = await import('../../cluster/processes.ts');
    const processes = await processesOf(kafka, systemClock());
    const { standing, note } = await standingOf(config, processes);
    const told = {
      prefix: kafka.prefix,
      processes: processes.map((one) => toldOf(one, note)),
      takeovers: note?.takeovers ?? 0,
      streams: standing.streams,
      sinks: standing.sinks,
    };
    if (json) out(JSON.stringify(told, null, 2));
    else for (const line of clusterLines(told)) out(line);
    return 0;
  },
});

function toldOf(one: ClusterProcess, note: ClusterNote | null) {
  const { instance, host, pid, address, works, isDrained, startedAt } = one;
  return {
    instance,
    ...{ host, pid, address: cleanText(address, 100) },
    state: works ? 'working' : isDrained ? 'drained' : 'standing by',
    started_at: timeText(startedAt),
    // Noted when it took the state, so it may be the one before for a moment.
    works_since: works && note?.pid === pid && note.host === host ? timeText(note.since) : null,
  };
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
  readonly processes: readonly ReturnType<typeof toldOf>[];
  readonly takeovers: number;
}

function clusterLines({ prefix, processes, takeovers, streams, sinks }: Told): readonly string[] {
  const count = (of: string) => processes.filter(({ state }) => state === of).length;
  const working = count('working');
  const drained = count('drained') === 0 ? '' : `${count('drained')} drained, `;
  const head = `state ${prefix} in Kafka: ${working} working, ${count('standing by')} standing by, ${drained}taken over ${takeovers} times`;
  return [
    painted(head, working === 0 ? 'bad' : 'good'),
    '',
    ...tableLines(
      ['INSTANCE', 'HOST', 'PROCESS', 'STATE', 'STARTED', 'WORKS SINCE'],
      processes.map(({ instance, host, address, pid, ...one }) => [
        cleanText(instance ?? '-', 200),
        cleanText(host ?? address, 200),
        String(pid ?? '-'),
        { text: one.state, mood: one.state === 'working' ? 'good' : 'dim' },
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
