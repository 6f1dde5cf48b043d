// `sluice run` where the state in Kafka has several shards: one status page of all that this process
// has of them, and what keeps them (shard-keeper.ts).

import type { OwnLog } from './own-log.ts';
import { openPage } from './own-page.ts';
import { type KeeperMeans, ShardKeeper } from './shard-keeper.ts';
import { openTools } from './tools.ts';

/** Keeps them until stopped, or works on each once; resolves with the worst exit code of theirs. */
export async function keepShards(
  means: Omit<KeeperMeans, 'clock' | 'log' | 'random'>,
  own: OwnLog,
  stop: AbortSignal,
): Promise<number> {
  const tools = openTools(own.log);
  const keeper = new ShardKeeper({ ...means, ...tools });
  const look = () => keeper.look();
  const retry = (name: string) => keeper.askNow(name);
  const config = () => keeper.config;
  const page = await openPage({ look, tap: () => null, retry, config }, tools, own);
  try {
    return await keeper.run(stop);
  } finally {
    await page?.close();
    await tools.http.close();
  }
}
