// `sluice succession cutover` and `rollback`: which side of a pair delivers. The process that runs
// with the config does it; where none does, this command reads the sources of the pair and does it.

import { loadConfig } from '../../config/index.ts';
import type { PairPhase } from '../../contracts/index.ts';
import { operatorOf } from '../../operator/index.ts';
import { whereItRuns } from '../shared/at-work.ts';
import { type CommandDeps, configOption, defineCommand, type ExitCode } from '../shared/command.ts';
import { partWithSource } from '../shared/parts.ts';
import { unknownText } from '../shared/typed.ts';

const source = { about: 'name of the successor in the config' } as const;

/** 0: done; 1: not ready or not possible, with the reason. */
export const cutover = defineCommand({
  name: 'cutover',
  about: 'make a successor deliver instead of its predecessor',
  arguments: { source },
  options: {
    config: configOption,
    force: { about: 'cut over even if the pair is not ready or the predecessor cannot be read' },
  },
  async run({ source: name, config: file, force = false }, deps) {
    return await turn(name, { file, phase: 'cut_over', isForced: force }, deps);
  },
});

/** 0: done; 1: not possible, with the reason. */
export const rollback = defineCommand({
  name: 'rollback',
  about: 'make the predecessor deliver again, as long as its API can be read',
  arguments: { source },
  options: { config: configOption },
  async run({ source: name, config: file }, deps) {
    return await turn(name, { file, phase: 'shadow', isForced: false }, deps);
  },
});

interface Turning {
  readonly file: string;
  readonly phase: PairPhase;
  readonly isForced: boolean;
}

async function turn(name: string, { file, ...how }: Turning, deps: CommandDeps): Promise<ExitCode> {
  const whole = await loadConfig(file, { env: deps.env });
  const known = Object.entries(whole.sources).flatMap(([one, { succeeds }]) =>
    succeeds === undefined ? [] : [one],
  );
  if (!known.includes(name)) {
    deps.err(unknownText('source with succeeds', name, known));
    return 1;
  }
  const { config } = whereItRuns(partWithSource(whole, name));
  const { isDone, reasons, report } = await operatorOf(config, whole).succession.turn(name, how);
  const old = config.sources[name]?.succeeds?.source ?? '';
  const [delivers, other] = how.phase === 'cut_over' ? [name, old] : [old, name];
  if (!isDone) {
    deps.err(`${name}: not done: ${reasons.join('; ')}`);
    const helps = !how.isForced && (report?.phase ?? 'cut_over') !== 'cut_over';
    if (how.phase === 'cut_over' && helps) deps.err('`--force` has it deliver nevertheless.');
    return 1;
  }
  deps.out(`${name}: ${delivers} delivers from now on, ${other} does not`);
  for (const reason of reasons) deps.out(`${name}: by force, though ${reason}`);
  return 0;
}
