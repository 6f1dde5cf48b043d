// `sluice run` with a state of several shards in Kafka: one status page of all shards of this process, and the shard
// supervisor (shard-supervisor.ts).

import { availableParallelism } from 'node:os';
import { type Config, shardsOf } from '../config/index.ts';
import { type EventTap, joinedTap, type TailWish } from '../watch/running-status.ts';
import { MemberFile } from './member-note.ts';
import type { OwnLog } from './own-log.ts';
import { openPage } from './own-page.ts';
import { planFrom } from './plan.ts';
import { acceptedChanges } from './reload.ts';
import { ShardSupervisor, type SupervisorDeps } from './shard-supervisor.ts';
import { formsOf, judgeOf, openForm } from './tap-forms.ts';
import { type BootTools, openTools } from './tools.ts';

/** Runs shards until stopped, or each once; resolves with the worst exit code. */
export async function keepShards(
  deps: Omit<SupervisorDeps, 'clock' | 'log' | 'workers'>,
  own: OwnLog,
  {
    stop,
    deploymentChanged,
  }: { readonly stop: AbortSignal; readonly deploymentChanged: string | null },
): Promise<number> {
  const tools = openTools(own.log);
  const member = deps.once ? null : new MemberFile(deps.config.state.dir, own.log);
  const made = (config: Config) => ({ config, plan: planFrom(config, tools) });
  const supervisor = new ShardSupervisor({
    refuse: (before, next) => void acceptedChanges(made(before), made(next), deps),
    ...{ ...deps, ...tools, workers: availableParallelism() },
    ...(member !== null && { member }),
  });
  const look = () => ({ ...supervisor.look(), deployment_changed: deploymentChanged });
  const retry = (name: string) => supervisor.retryNow(name);
  const config = () => supervisor.config;
  const tap = () => tapOf(supervisor, tools);
  const page = await openPage({ look, tap, retry, config }, tools, own);
  try {
    return await supervisor.run(stop);
  } finally {
    await page?.close();
    member?.close();
    await tools.http.close();
  }
}

/** One tap per config: after a reload readers get another one. */
const taps = new WeakMap<Config, EventTap>();

/** The newest events of all shards of this process; null: they are not shown. */
function tapOf(supervisor: ShardSupervisor, { clock }: BootTools): EventTap | null {
  const { config } = supervisor;
  if (config.status?.tail !== true) return null;
  const forms = formsOf(config, { routes: [] });
  const check = ({ form, where }: TailWish) => {
    openForm(forms, form);
    judgeOf(where);
  };
  const shards = () => shardsOf(supervisor.config);
  const deps = { forms: [...forms.keys()], check, parts: () => supervisor.shown, shards, clock };
  return taps.getOrInsertComputed(config, () => joinedTap(deps));
}
