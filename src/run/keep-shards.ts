// `sluice run` where the state in Kafka has several shards: one status page of all that this process
// has of them, and what keeps them (shard-supervisor.ts).

import { availableParallelism } from 'node:os';
import { type Config, shardsOf } from '../config/index.ts';
import { type EventTap, joinedTap, type TailWish } from '../watch/running-status.ts';
import { MemberFile } from './member-note.ts';
import type { OwnLog } from './own-log.ts';
import { openPage } from './own-page.ts';
import { type KeeperMeans, ShardKeeper } from './shard-supervisor.ts';
import { formsOf, judgeOf, openForm } from './tap-forms.ts';
import { type BootTools, openTools } from './tools.ts';

/** Keeps them until stopped, or works on each once; resolves with the worst exit code of theirs. */
export async function keepShards(
  deps: Omit<KeeperMeans, 'clock' | 'log' | 'workers'>,
  own: OwnLog,
  {
    stop,
    deploymentChanged,
  }: { readonly stop: AbortSignal; readonly deploymentChanged: string | null },
): Promise<number> {
  const tools = openTools(own.log);
  const member = deps.once ? null : new MemberFile(deps.config.state.dir, own.log);
  const keeper = new ShardKeeper({
    ...{ ...deps, ...tools, workers: availableParallelism() },
    ...(member !== null && { member }),
  });
  const look = () => ({ ...keeper.look(), deployment_changed: deploymentChanged });
  const retry = (name: string) => keeper.askNow(name);
  const config = () => keeper.config;
  const tap = () => tapOf(keeper, tools);
  const page = await openPage({ look, tap, retry, config }, tools, own);
  try {
    return await keeper.run(stop);
  } finally {
    await page?.close();
    member?.close();
    await tools.http.close();
  }
}

/** Of each config one: whoever looks comes back for another one where that is no longer the same. */
const taps = new WeakMap<Config, EventTap>();

/** The newest events of all shards here; null: they are not shown. */
function tapOf(keeper: ShardKeeper, { clock }: BootTools): EventTap | null {
  const { config } = keeper;
  if (config.status?.tail !== true) return null;
  const forms = formsOf(config, { routes: [] });
  const check = ({ form, where }: TailWish) => {
    openForm(forms, form);
    judgeOf(where);
  };
  const shards = () => shardsOf(keeper.config);
  const deps = { forms: [...forms.keys()], check, parts: () => keeper.shown, shards, clock };
  const tap = taps.get(config) ?? joinedTap(deps);
  taps.set(config, tap);
  return tap;
}
