// `sluice cluster`: the active and standby processes of a state in Kafka, and the status of its streams and sinks, from
// any machine that reaches the brokers. It reads committed records, so that it also answers while no process is active.
// Facts that only the active process has are on that process's own page.

import { kafkaOf, makeScratch } from '../../operator/index.ts';
import { painted, tableLines } from '../../terminal/index.ts';
import { systemClock } from '../../tools/index.ts';
import type { ClusterStatus } from '../../watch/running-status.ts';
import { configOption, defineCommand } from '../shared/command.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { sinkTable, streamTable } from '../status.ts';

/** Prints it. */
export const clusterList = defineCommand({
  name: 'list',
  about: 'show every process of a state in Kafka, and the status of streams and sinks',
  options: { config: configOption, json: { about: 'as JSON' } },
  async run({ config: file, json }, { env, out }) {
    const { config } = readConfigToLook(file, env);
    kafkaOf(config);
    // Its Kafka client is slow to load.
    const { ClusterLook } = await import('../../run/shards.ts');
    const scratch = makeScratch('cluster');
    const sight = new ClusterLook({ config: () => config, scratch, clock: systemClock() });
    try {
      const reported = await sight.look();
      if (json) out(JSON.stringify(reported, null, 2));
      else for (const line of clusterLines(reported)) out(line);
    } finally {
      sight.close();
    }
    return 0;
  },
});

function clusterLines(reported: ClusterStatus): readonly string[] {
  const { prefix, processes, takeovers, streams, sinks, shards } = reported;
  const count = (of: string) => processes.filter(({ state }) => state === of).length;
  const working = count('working');
  const some = (of: string) => (count(of) === 0 ? '' : `${count(of)} ${of}, `);
  const head = `state ${prefix} in Kafka: ${working} working, ${some('starting')}${count('standing by')} standing by, ${some('drained')}taken over ${takeovers} times`;
  return [
    painted(head, working === 0 ? 'bad' : 'good'),
    ...warnings(reported).map((line) => painted(line, 'warn')),
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
        'SINKS',
      ],
      processes.map(({ instance, host, address, pid, ...one }) => [
        instance ?? '-',
        host ?? address,
        String(pid ?? '-'),
        { text: one.state, mood: one.state === 'working' ? 'good' : 'dim' } as const,
        ...(one.shards ? [one.shards.join(' ') || '-'] : []),
        one.started_at ?? '-',
        one.works_since ?? '-',
        one.sinks.map(({ name, backlog }) => `${name} ${backlog} behind`).join(', ') || '-',
      ]),
    ),
    '',
    ...streamTable({ streams }),
    '',
    ...sinkTable({ sinks }),
  ];
}

function warnings({
  fenced,
  unowned,
  shards,
  processes,
  config_differences: differences,
}: ClusterStatus): readonly string[] {
  const of = (which: readonly number[] = []) =>
    shards === undefined ? 'the state' : `shard ${which.join(', ')}`;
  return [
    ...processes.flatMap(({ not_running: which, instance, host, address, pid }) => {
      if (which === undefined) return [];
      const owner = instance ?? `process ${pid ?? 'unknown'} on ${host ?? address}`;
      return [`${owner} owns ${of(which)} and has not started to work on it; its log says why`];
    }),
    ...(unowned === null ? [] : [`no process works on ${of(unowned.shards)}`]),
    ...differences.map((text) => `config of ${text}`),
    ...fenced.map(
      ({ instance, host, pid, at, shards: had }) =>
        `fenced since ${at}: ${instance === null ? '' : `${instance}, `}process ${pid} on ${host}, which had ${of(had)} and did not shut down cleanly`,
    ),
  ];
}
