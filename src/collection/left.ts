// Collections that the config no longer has: their learned volatile paths are forgotten when a process runs without
// them, so a source that returns learns them again. Invariant: nothing else of their state changes; they resume at the
// last reported state.

import { z } from 'zod';
import type { FetchSpool, Stream } from '../contracts/index.ts';
import { parseCollectionCheckpoint } from './state.ts';

/** The name under which the collections of the last config are stored; no stream has this name. */
const collectionsKey = '#collections';

const stored = z.object({ version: z.literal(1), names: z.array(z.string()) });

/** Stores the collections of a config, and resets the learned paths of those that it no longer has. */
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
