// The parts of a config's work that a command is about: with a state in Kafka of several shards each
// is a config of its own (config/shards.ts), with a state, processes and an archive of its own. Where
// there is but one, it is the config itself.

import type { Config } from '../../config/config.ts';
import { inShards } from '../../config/shards.ts';
import { readState } from '../../watch/state.ts';
import { type ConfigAtWork, readConfigAtWork, whereItRuns } from './at-work.ts';
import type { Means } from './command.ts';
import { streamNames } from './looking.ts';

/** All of them, as the processes have them that run with them (`readConfigAtWork`). */
export function partsAtWork(file: string, means: Means): readonly ConfigAtWork[] {
  const whole = readConfigAtWork(file, means);
  const parts = inShards(whole.config);
  if (parts.length === 1 && parts[0] === whole.config) return [whole];
  return parts.map((part) => {
    const { config, running } = whereItRuns(part);
    return { ...whole, config, refused: running?.refused ?? null };
  });
}

/** The one with a stream, in the config or left over in its state; where none has it, the first. */
export async function partWithStream<T extends { readonly config: Config }>(
  parts: readonly T[],
  stream: string,
): Promise<T> {
  const [first] = parts as readonly [T];
  if (parts.length === 1) return first;
  for (const part of parts) {
    if ((await streamNames(part.config)).includes(stream)) return part;
  }
  const isLeft = ({ config }: T) => readState(config.state.dir).streams.has(stream);
  return parts.find(isLeft) ?? first;
}

/** The one with a source; where none has it, the config, which says so. */
export function partWithSource(config: Config, source: string): Config {
  return inShards(config).find(({ sources }) => Object.hasOwn(sources, source)) ?? config;
}
