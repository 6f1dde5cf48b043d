// The two ways to move a stream's checkpoint by hand, within the caller's transaction, while none of the stream's work
// is under way: a poller's memory would overrule the change. Invariants: stored pages are not touched, and identities
// are forgotten only at the operator's request.

import type { Config } from '../config/index.ts';
import { ExportError, isObject, type TrailEntry } from '../contracts/index.ts';
import {
  joinedChange,
  type ListCheckpoint,
  noHorizon,
  parseListCheckpoint,
  parseParentsCheckpoint,
  rewound,
} from '../fetch/index.ts';
import type { OperatorRequest, Store } from '../hold/index.ts';
import { commandText } from '../terminal/index.ts';
import { cursorDigest } from '../watch/index.ts';

/** The time to which a stream is rewound, and whether identities are forgotten. */
export type Rewind = Extract<OperatorRequest, { what: 'rewind' }>;

/** The result. */
export interface Rewound {
  /** When it was there (epoch ms), and the cursor's digest; null: it is read from its start. */
  readonly place: { readonly at: number; readonly digest: string } | null;
  /** Records that are forgotten; null where none were to be. */
  readonly forgotten: number | null;
}

/**
 * Makes a stream read its list again: from the newest position before a time if the list is known to grow after that
 * position, else from the start. Throws `checkpoint_mismatch` if neither is possible; then nothing was changed.
 */
export function rewindStream(
  store: Store,
  of: { readonly config: Config; readonly stream: string; readonly rewind: Rewind },
): Rewound {
  const { config, stream, rewind } = of;
  const { to, forget: isForgotten } = rewind;
  const reset = `${commandText('checkpoint reset', config.file, '--stream', stream)}; nothing was changed`;
  if (parseParentsCheckpoint(store.streams.recall(stream).checkpoint) !== null) {
    // Small lists and objects are read whole again, without their known records.
    store.parents.reset(stream);
    return { place: null, forgotten: isForgotten ? store.parents.forgetSince(stream, to) : null };
  }
  const checkpoint = listCheckpointOf(store, { stream, reset });
  const forgotten = isForgotten ? store.streams.forgetSince(stream, to) : null;
  // Records may have been read long after they happened: forgotten ones can be anywhere in the list.
  const place = forgotten === null ? placeBefore(store, to, { stream, checkpoint }) : null;
  const moved = rewound(checkpoint, place === null ? null : place.cursor);
  const start = forgotten === null ? {} : { openWalk: openWalkAfter(store, checkpoint) };
  store.streams.saveCheckpoint(stream, joinedChange(moved, { start }), Date.now());
  return { place: place && { at: place.at, digest: cursorDigest(place.cursor) }, forgotten };
}

/** Deletes the checkpoint: the stream is read from its start. Returns the number of forgotten records, null where none were to be. */
export function resetStream(
  { streams, parents }: Store,
  stream: string,
  isForgotten: boolean,
): number | null {
  streams.reset(stream);
  parents.reset(stream);
  return isForgotten ? streams.forgetSince(stream, 0) + parents.forgetSince(stream, 0) : null;
}

/** Numbers of forgotten blocks are used again: an open walk must not treat the new blocks as old. */
function openWalkAfter(store: Store, { start: { openWalk } }: ListCheckpoint) {
  if (openWalk === null) return null;
  return { ...openWalk, block: Math.min(openWalk.block, store.streams.nextBlock) };
}

/** A stream to rewind, and how to restart it from nothing if it cannot be rewound. */
interface Rewinding {
  readonly stream: string;
  readonly reset: string;
}

function listCheckpointOf(store: Store, { stream, reset }: Rewinding): ListCheckpoint {
  const held = store.streams.recall(stream).checkpoint;
  const checkpoint = parseListCheckpoint(held);
  // More records without a time were read than are remembered, so repeats could not be recognised.
  if (checkpoint !== null && checkpoint.memory.horizon !== noHorizon) return checkpoint;
  const kind = isObject(held) ? held.kind : null;
  if (kind === 'snapshot') {
    throw new ExportError(
      'checkpoint_mismatch',
      `rewinding ${stream}: a collection has no positions; each poll reads it whole`,
      { next: `No rewind is needed for its changes. For a new baseline: ${reset}.` },
    );
  }
  if (kind === 'push') {
    throw new ExportError(
      'checkpoint_mismatch',
      `rewinding ${stream}: a webhooks source has no positions; it stores what upstream sends`,
      { next: 'To receive events again, have upstream send them again; nothing was changed.' },
    );
  }
  const why =
    held === null
      ? 'it was never read'
      : checkpoint !== null
        ? 'too many identities of read records were already deleted'
        : 'its checkpoint cannot be read';
  throw new ExportError('checkpoint_mismatch', `rewinding ${stream}: ${why}`, {
    next: `To start again: ${reset}.`,
  });
}

/** The newest position before a time, if the list grows after it and has ids; else null. */
function placeBefore(
  store: Store,
  to: number,
  { stream, checkpoint }: { readonly stream: string; readonly checkpoint: ListCheckpoint },
): TrailEntry | null {
  const { growth, whole, memory } = checkpoint;
  if (growth.order !== 'oldest_first' || !whole.swept || memory.nameless) return null;
  return store.streams.trail(stream).findLast(({ at }) => at <= to) ?? null;
}
