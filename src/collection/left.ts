// Collections of sources that the config no longer has: their learned volatile paths are forgotten when a process runs
// without them, so a source that returns learns them again. A company that leaves while its source stays keeps them.
// Invariant: nothing else of their state changes; they resume at the last reported state.

import { z } from 'zod';
import type { FetchSpool, Stream } from '../contracts/index.ts';
import { parseCollectionCheckpoint } from './state.ts';

/** The name under which the collections of the last config are stored; no stream has this name. */
const collectionsKey = '#collections';

const stored = z.object({ version: z.literal(1), names: z.array(z.string()) });

/** Stores the collections of a config, and resets the learned paths of those that it no longer has. */
export async function forgetLeft(
  spool: Pick<FetchSpool, 'append' | 'recall'>,
  sources: readonly { readonly name: string; readonly streams: readonly Stream[] }[],
): Promise<void> {
  const { checkpoint: held } = await spool.recall(collectionsKey);
  const before = stored.safeParse(held).data?.names ?? [];
  const present = new Set(
    sources.flatMap(({ streams }) =>
      streams.flatMap(({ kind, name }) => (kind === 'collection' ? [name] : [])),
    ),
  );
  const stay = new Set(
    sources.flatMap(({ name, streams }) =>
      streams.some(({ kind }) => kind === 'collection') ? [name] : [],
    ),
  );
  const away = before.filter((name) => !present.has(name) && stay.has(sourceOf(name)));
  const names = [...present, ...away].toSorted();
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

/** The source in the name of a stream, such as `hosts` of `hosts/c-1`. */
function sourceOf(stream: string): string {
  return /^[^/]*/.exec(stream)?.[0] ?? stream;
}
