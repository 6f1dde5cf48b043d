// `sluice retry STREAM|SINK`: retries a waiting or halted stream or sink now, in the process that
// runs, or at the next start. A wait that upstream or a receiver requested is never cut short.

import type { Operator, Stored } from '../operator/index.ts';
import { spanText } from '../tools/index.ts';
import { type CommandDeps, configOption, defineCommand } from './shared/command.ts';
import { streamNames } from './shared/looking.ts';
import { partsAtWork } from './shared/parts.ts';
import { unknownText } from './shared/typed.ts';

/** 0: requested; 1: no stream or sink of that name. */
export const retry = defineCommand({
  name: 'retry',
  about: 'retry a waiting or halted stream or sink now (Retry-After is still respected)',
  arguments: {
    name: { value: 'stream|sink', about: 'stream or sink name, as shown by sluice status' },
  },
  options: { config: configOption },
  async run({ name, config: file }, deps) {
    const parts = partsAtWork(file, deps);
    const known = await Promise.all(parts.map(({ operator }) => operator.status(namesOf)));
    const asked = parts.filter((_, at) => known[at]?.has(name));
    if (asked.length === 0) {
      deps.err(unknownText('stream or sink', name, new Set(known.flatMap((names) => [...names]))));
      return 1;
    }
    for (const { operator } of asked) await ask(operator, name, deps);
    return 0;
  },
});

async function namesOf({ config, facts }: Stored): Promise<ReadonlySet<string>> {
  const state = facts();
  return new Set([
    ...(await streamNames(config)),
    ...Object.keys(config.sinks),
    ...state.streams.keys(),
    ...state.sinks.keys(),
  ]);
}

async function ask(operator: Operator, name: string, { out }: CommandDeps): Promise<void> {
  const asked = await operator.retry(name);
  for (const { part, waitsUntil } of asked ?? []) {
    const far = part === 'stream' ? 'upstream' : 'the receiver';
    out(
      waitsUntil === null
        ? `${name}: retrying now`
        : `${name}: ${far} requested this wait; retry in ${spanText(Math.max(0, waitsUntil - Date.now()))}`,
    );
  }
  const why = asked === null ? 'no process runs with this config' : 'the process does not poll it';
  if ((asked?.length ?? 0) === 0) out(`${name}: ${why}; the next start retries at once`);
}
