// `sluice succession cutover` and `rollback`: which side of a pair delivers. The process that runs
// with the config does it; where none does, the pair's sources are read and it is done here.

import { z } from 'zod';
import { type Config, readConfig } from '../../config/config.ts';
import { planFrom } from '../../config/plan.ts';
import type { PairPhase } from '../../contracts/succession.ts';
import { openJourney } from '../../run/journey.ts';
import { turnPair } from '../../run/succession.ts';
import { openTools } from '../../run/tools.ts';
import { systemClock } from '../../tools/clock.ts';
import { logForm, openLog } from '../../watch/log.ts';
import { whereItRuns } from '../shared/at-work.ts';
import { configOption, defineCommand, type ExitCode, type Means } from '../shared/command.ts';
import { partWithSource } from '../shared/parts.ts';
import { askAtWork, isAtWork } from '../shared/process-requests.ts';
import { isRemote, isServed } from '../shared/remote.ts';
import { unknownText } from '../shared/typed.ts';

const turnedShape = z.object({ isDone: z.boolean(), reasons: z.array(z.string()) });
type Turned = z.output<typeof turnedShape>;

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

async function turn(name: string, { file, ...how }: Turning, deps: Means): Promise<ExitCode> {
  const whole = readConfig(file, { env: deps.env });
  const known = Object.entries(whole.sources).flatMap(([one, { succeeds }]) =>
    succeeds === undefined ? [] : [one],
  );
  if (!known.includes(name)) {
    deps.err(unknownText('source with succeeds', name, known));
    return 1;
  }
  const { config } = whereItRuns(partWithSource(whole, name));
  const wish = { what: 'cut_over', ...how } as const;
  const isAsked = isRemote(config) ? await isServed(config.state) : isAtWork(config);
  if (!isAsked) await refuseOthersState(whole);
  const { isDone, reasons } = isAsked
    ? await askAtWork(config, { name, wish, shape: turnedShape })
    : await turnHere(config, { name, ...how });
  const old = config.sources[name]?.succeeds?.source ?? '';
  const [delivers, other] = how.phase === 'cut_over' ? [name, old] : [old, name];
  if (!isDone) {
    deps.err(`${name}: not done: ${reasons.join('; ')}`);
    if (how.phase === 'cut_over') deps.err('`--force` has it deliver nevertheless.');
    return 1;
  }
  deps.out(`${name}: ${delivers} delivers from now on, ${other} does not`);
  for (const reason of reasons) deps.out(`${name}: by force, though ${reason}`);
  return 0;
}

/** With a state in Kafka this process works on the shard of the pair meanwhile, under the same conditions as `run`. */
async function refuseOthersState(config: Config): Promise<void> {
  const { kafka } = config.state;
  if (kafka === null) return;
  const [{ deploymentFinding }, { homesFault }] = await Promise.all([
    import('../../run/deployment.ts'),
    import('../../run/homes.ts'),
  ]);
  const clock = systemClock();
  const fault = (await deploymentFinding(kafka, clock))?.cause ?? (await homesFault(config, clock));
  if (fault !== null) throw fault;
}

/** Where no process runs: the sources are read, and what is stored is delivered, meanwhile. */
async function turnHere(
  config: Config,
  { name, ...how }: Omit<Turning, 'file'> & { readonly name: string },
): Promise<Turned> {
  const tools = openTools(await openLog({ level: 'warn', form: logForm(process.stderr) }));
  const plan = planFrom(config, tools);
  const journey = await openJourney(plan, config.state, tools);
  const over = new AbortController();
  try {
    const running = journey.pipeline.run(over.signal, config.shutdown.timeoutMs);
    try {
      const wish = { what: 'cut_over', ...how } as const;
      const made = () => ({ config, plan });
      return turnedShape.parse(await turnPair(name, wish, { ...journey, tools, made }));
    } finally {
      over.abort(new Error('the pair was turned'));
      await running;
    }
  } finally {
    await journey.close();
  }
}
