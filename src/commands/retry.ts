// `sluice retry STREAM|SINK`: has a waiting or halted stream or sink asked now, by the process that
// runs, or by the next one. What the far side has asked to wait is never cut short.

import { z } from 'zod';
import type { Config } from '../config/config.ts';
import { hasState } from '../hold/database.ts';
import { spanText } from '../tools/time-text.ts';
import { readState } from '../watch/state.ts';
import { configOption, defineCommand, type Means } from './shared/command.ts';
import { streamNames } from './shared/looking.ts';
import { partsAtWork } from './shared/parts.ts';
import { askAtWork, askLater, isAtWork } from './shared/process-requests.ts';
import { unknownText } from './shared/typed.ts';

const answerShape = z.object({
  asked: z.array(z.object({ part: z.enum(['stream', 'sink']), waitsUntil: z.number().nullable() })),
});

/** 0: asked; 1: no stream or sink of that name. */
export const retry = defineCommand({
  name: 'retry',
  about: 'retry a waiting or halted stream or sink now (Retry-After is still respected)',
  arguments: {
    name: { value: 'stream|sink', about: 'stream or sink name, as shown by sluice status' },
  },
  options: { config: configOption },
  async run({ name, config: file }, deps) {
    const parts = partsAtWork(file, deps);
    const known = await Promise.all(parts.map(({ config }) => namesOf(config)));
    const asked = parts.filter((_, at) => known[at]?.has(name));
    if (asked.length === 0) {
      deps.err(unknownText('stream or sink', name, new Set(known.flatMap((names) => [...names]))));
      return 1;
    }
    for (const { config } of asked) await ask(config, name, deps);
    return 0;
  },
});

async function namesOf(config: Config): Promise<ReadonlySet<string>> {
  const state = readState(config.state.dir);
  return new Set([
    ...(await streamNames(config)),
    ...Object.keys(config.sinks),
    ...state.streams.keys(),
    ...state.sinks.keys(),
  ]);
}

async function ask(config: Config, name: string, { out }: Means): Promise<void> {
  const { dir } = config.state;
  if (!isAtWork(config)) {
    if (hasState(dir)) askLater(config, name, { what: 'retry' });
    out(`${name}: nothing runs with this config; the next start retries at once`);
    return;
  }
  const wish = { what: 'retry' } as const;
  const { asked } = await askAtWork(config, { name, wish, shape: answerShape });
  for (const { part, waitsUntil } of asked) {
    const far = part === 'stream' ? 'upstream' : 'the receiver';
    out(
      waitsUntil === null
        ? `${name}: retrying now`
        : `${name}: ${far} requested this wait; retry in ${spanText(Math.max(0, waitsUntil - Date.now()))}`,
    );
  }
  if (asked.length === 0) {
    out(`${name}: not polled by the running process; the next start retries at once`);
  }
}
