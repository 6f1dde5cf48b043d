// `sluice succession`: moves a source from an API that ends to its successor. As in
// commands/index.ts a command's file is loaded only when it is named.

import type { Command, CommandGroup } from './shared/command.ts';

type Loaded = Promise<Command | CommandGroup>;

const commands: Readonly<Record<string, () => Loaded>> = {
  cutover: async () => (await import('./succession/turn.ts')).cutover,
  rollback: async () => (await import('./succession/turn.ts')).rollback,
  plan: async () => (await import('./succession/plan.ts')).plan,
};

/** The commands below `succession`: the one that is named, or all if none has that name. */
export async function successionCommands(name?: string): Promise<CommandGroup> {
  const named = Object.entries(commands).filter(([known]) => known === name);
  const loaded = named.length > 0 ? named : Object.entries(commands);
  return {
    name: 'succession',
    about: 'move sources from an API that ends to its successor',
    commands: await Promise.all(loaded.map(([, load]) => load())),
    alone: (await import('./succession/list.ts')).successionList,
  };
}
