// A journey that a command opens for one change, where no process runs: under the conditions of `run`,
// and released at once. Invariant: no stream is polled, but the two sources of a pair that is turned.

import type { Config } from '../config/index.ts';
import type { JsonObject } from '../contracts/index.ts';
import type { OperatorRequest } from '../hold/index.ts';
import {
  type BootTools,
  deploymentFinding,
  homesFault,
  openTools,
  planFrom,
  turnPair,
  type WholePlan,
} from '../run/index.ts';
import { type Journey, openJourney } from '../run/process.ts';
import { systemClock } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';

interface Made {
  readonly plan: WholePlan;
  readonly tools: BootTools;
}

/** Does work with the state of a config, a part of `whole`. Throws as `openJourney`, and `config_invalid` if the state is another deployment's. */
export async function ownJourney<T>(
  config: Config,
  whole: Config,
  work: (journey: Journey, made: Made) => Promise<T>,
  { polls = false } = {},
): Promise<T> {
  await refuseOthersState(whole);
  const tools = openTools(await openLog({ level: 'warn', form: logForm(process.stderr) }));
  const plan = planFrom(config, tools);
  const journey = await openJourney(plan, config.state, tools, { polls, isBrief: true });
  try {
    return await work(journey, { plan, tools });
  } finally {
    await journey.close();
  }
}

/** Carries out a cutover or rollback of a pair: its sources are read, and what is stored is delivered, meanwhile. */
export async function turnAlone(
  config: Config,
  whole: Config,
  {
    name,
    wish,
  }: { readonly name: string; readonly wish: Extract<OperatorRequest, { what: 'cut_over' }> },
): Promise<JsonObject> {
  const turn = async (journey: Journey, { plan, tools }: Made) => {
    const over = new AbortController();
    const running = journey.pipeline.run(over.signal, config.shutdown.timeoutMs);
    try {
      const made = () => ({ config, plan });
      return (await turnPair(name, wish, { ...journey, tools, made })) as JsonObject;
    } finally {
      over.abort(new Error('the pair was turned'));
      await running;
    }
  };
  return await ownJourney(config, whole, turn, { polls: true });
}

async function refuseOthersState(config: Config): Promise<void> {
  const { kafka } = config.state;
  if (kafka === null) return;
  const clock = systemClock();
  const fault = (await deploymentFinding(kafka, clock))?.cause ?? (await homesFault(config, clock));
  if (fault !== null) throw fault;
}
