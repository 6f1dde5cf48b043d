// The parts of a config that a command is about. With a state in Kafka of several shards each part is a config of its
// own (config/shards.ts), with its own state, processes and archive. Else the only part is the config itself.

import { type Config, inShards, shardsOf } from '../../config/index.ts';
import { holderOf } from '../../hold/index.ts';
import { type Operator, operatorOf } from '../../operator/index.ts';
import { type MemberNote, memberIn } from '../../run/index.ts';
import { type ConfigAtWork, readConfigAtWork, whereItRuns } from './at-work.ts';
import type { CommandDeps } from './command.ts';
import { streamNames } from './looking.ts';

/** A part, and whether this machine has it. */
export interface PartAtWork extends ConfigAtWork {
  /** Of the state of this part. */
  readonly operator: Operator;
  /** A process of this machine is a member of the state, and another process has this part. */
  readonly isElsewhere: boolean;
}

/** A config with its parts. */
export interface WholeAtWork {
  readonly whole: ConfigAtWork;
  readonly parts: readonly PartAtWork[];
  /** The process of this machine that is a member of a state in Kafka; null: none is. */
  readonly member: MemberNote | null;
}

/** The same with the process that runs with it on this machine. */
export function wholeAtWork(file: string, deps: CommandDeps): WholeAtWork {
  const whole = readConfigAtWork(file, deps);
  const { dir, kafka } = whole.config.state;
  const member = kafka === null ? null : memberIn(dir);
  const isElsewhere = ({ state }: Config) => {
    if (member === null || holderOf(state.dir) !== null) return false;
    const { shard } = state.kafka ?? {};
    if (shard === undefined) return member.standing_by !== null;
    return member.shards?.owned.includes(shard) !== true;
  };
  const parts = inShards(whole.config).map((part) => {
    if (part === whole.config) {
      return { ...whole, isElsewhere: isElsewhere(part), operator: operatorOf(part) };
    }
    const { config, running } = whereItRuns(part);
    return {
      ...whole,
      config,
      refused: running?.refused ?? null,
      isElsewhere: isElsewhere(config),
      operator: operatorOf(config, whole.config),
    };
  });
  return { whole, parts, member };
}

/** All of them, as the processes have them that run with them (`readConfigAtWork`). */
export function partsAtWork(file: string, deps: CommandDeps): readonly PartAtWork[] {
  return wholeAtWork(file, deps).parts;
}

/** The shards with work that other processes have, according to the process of this machine. */
export function shardsElsewhere({ whole, member }: WholeAtWork): readonly number[] {
  if (member?.shards === undefined) return [];
  const { owned } = member.shards;
  return shardsOf(whole.config).filter((shard) => !owned.includes(shard));
}

/** The one with a stream, in the config or left over in its state; where none has it, the first. */
export async function partWithStream(
  parts: readonly PartAtWork[],
  stream: string,
): Promise<PartAtWork> {
  const [first] = parts as readonly [PartAtWork];
  if (parts.length === 1) return first;
  for (const part of parts) {
    if ((await streamNames(part.config)).includes(stream)) return part;
  }
  for (const part of parts) {
    const isLeft = await part.operator.status(({ facts }) => facts().streams.has(stream));
    if (isLeft) return part;
  }
  return first;
}

/** The part with a source; if none has it, the whole config, whose check reports the unknown name. */
export function partWithSource(config: Config, source: string): Config {
  return inShards(config).find(({ sources }) => Object.hasOwn(sources, source)) ?? config;
}
