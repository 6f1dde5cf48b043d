// `sluice cluster`: the commands for a state in Kafka.

import type { Command, CommandGroup } from './shared/command.ts';

type Loaded = Promise<Command | CommandGroup>;

const commands: Readonly<Record<string, () => Loaded>> = {
  drain: async () => (await import('./cluster/drain.ts')).drain,
  undrain: async () => (await import('./cluster/drain.ts')).undrain,
  import: async () => (await import('./cluster/carry.ts')).importCommand,
  export: async () => (await import('./cluster/carry.ts')).clusterExport,
  acls: async () => (await import('./cluster/acls.ts')).acls,
};

/** The commands below `cluster`: the one that is named, or all where there is none of that name. */
export async function clusterCommands(name?: string): Promise<CommandGroup> {
  const named = Object.entries(commands).filter(([known]) => known === name);
  const requested = named.length > 0 ? named : Object.entries(commands);
  return {
    name: 'cluster',
    about: 'show and manage the processes of a state in Kafka',
    commands: await Promise.all(requested.map(([, load]) => load())),
    alone: (await import('./cluster/list.ts')).clusterList,
  };
}
