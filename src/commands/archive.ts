// `sluice archive`: the commands for archives. Most need neither config nor state. As in commands/index.ts, the file of
// a command is loaded only when that command is named: a verification needs its memory for the archive, not for the
// config reader.

import type { Command, CommandGroup } from './shared/command.ts';

type Loaded = Promise<Command | CommandGroup>;

const commands: Readonly<Record<string, () => Loaded>> = {
  verify: async () => (await import('./archive/verify.ts')).verify,
  prove: async () => (await import('./archive/prove.ts')).prove,
  'check-proof': async () => (await import('./archive/prove.ts')).checkProofFile,
  search: async () => (await import('./archive/search.ts')).search,
  replay: async () => (await import('./archive/replay.ts')).replay,
  reconcile: async () => (await import('./archive/reconcile.ts')).reconcile,
  export: async () => (await import('./archive/export.ts')).archiveExport,
  stats: async () => (await import('./archive/stats.ts')).stats,
  hold: async () => (await import('./archive/hold.ts')).hold,
  prune: async () => (await import('./archive/prune.ts')).prune,
  erase: async () => (await import('./archive/erase.ts')).erase,
  keys: async () => (await import('./archive/keys.ts')).keys,
};

/** The commands below `archive`: the one that is named, or all where there is none of that name. */
export async function archiveCommands(name?: string): Promise<CommandGroup> {
  const named = Object.entries(commands).filter(([known]) => known === name);
  const requested = named.length > 0 ? named : Object.entries(commands);
  return {
    name: 'archive',
    about: 'prove, check and read an archive, without config or state',
    commands: await Promise.all(requested.map(([, load]) => load())),
  };
}
