// Collections that the config no longer has: the paths that were learned as volatile are forgotten when a process runs
// without them, so that a source that returns learns them again. What must stay true: nothing else of them changes; they resume
// at what was last reported.

import { z } from 'zod';
import type { Stream } from '../../contracts/source.ts';
import type { FetchSpool } from '../../contracts/spool.ts';
import { parseCollectionCheckpoint } from './state.ts';

/** The name that the collections of the last config are stored by; no stream has it. */
const collectionsKey = '#collections';

const stored = z.object({ version: z.literal(1), names: z.array(z.string()) });

/** Notes the collections of a config, and resets what was learned of those that it no longer has. */
export async function forgetLeft(
  spool: Pick<FetchSpool, 'append' | 'recall'>,
  sources: readonly { readonly streams: readonly Stream[] }[],
): Promise<void> {
  const { checkpoint: held } = await spool.recall(collectionsKey);
  const before = stored.safeParse(held).data?.names ?? [];
  const names = sources
    .flatMap(({ streams }) => streams)
    .flatMap(({ kind, name }) => (kind === 'collection' ? [name] : []))
    .toSorted();
  if (JSON.stringify(names) === JSON.stringify(before)) return;
  const now = new Set(names);
  for (const stream of before.filter((name) => !now.has(name))) {
    const { checkpoint } = await spool.recall(stream);
    const parsed = checkpoint === null ? null : parseCollectionCheckpoint(checkpoint);
    if (parsed?.volatile === undefined) continue;
    const { volatile: _, unstable: __, ...rest } = parsed;
    await spool.append({ stream, pages: [], checkpoint: rest });
  }
  await spool.append({ stream: collectionsKey, pages: [], checkpoint: { version: 1, names } });
}
