// Events that are at a destination already although the state does not know it: the state is older
// than the deliveries, or was lost. Upstream's records come again under other offsets and are
// recognised by their uid, of which half is kept: 128 bits, where a collision is practically
// impossible.

import type { Batch, Event, Offset } from '../../src/contracts/index.ts';

/** Kept hexadecimal digits of a uid. */
export const keptDigits = 32;

/** The kept part of an event's uid. */
export function keptUid({ uid }: Pick<Event, 'uid'>): string {
  return uid.slice(0, keptDigits);
}

/** The batch without the known events. */
export function withoutKnown(batch: Batch, known: ReadonlySet<string>): Batch {
  return known.size === 0 ? batch : onlyEvents(batch, (event) => !known.has(keptUid(event)));
}

/** The batch with only the requested events. */
export function onlyEvents(batch: Batch, isRequested: (event: Event) => boolean): Batch {
  if (batch.events.every(isRequested)) return batch;
  return eventsAt(
    batch,
    batch.events.flatMap((event, i) => (isRequested(event) ? [i] : [])),
  );
}

/** The batch with only the events at these indexes, in their order. */
export function eventsAt(batch: Batch, indexes: readonly number[]): Batch {
  const { bytes, starts, ends } = batch.lines;
  return {
    ...batch,
    events: indexes.flatMap((i) => batch.events[i] ?? []),
    lines: {
      bytes,
      starts: Uint32Array.from(indexes, (i) => starts[i] ?? 0),
      ends: Uint32Array.from(indexes, (i) => ends[i] ?? 0),
      length: indexes.length,
    },
  };
}

/**
 * Removes known events that have come again, so that a later request for them, by a backfill,
 * delivers them. Events stored before `heldBefore`, the start of this epoch, stay known: a repaired
 * state reads again records that it still has.
 */
export function forget(batch: Batch, known: Set<string>, heldBefore: Offset = 0): void {
  if (known.size === 0) return;
  for (const event of batch.events) {
    if (event.offset < heldBefore) known.add(keptUid(event));
    else known.delete(keptUid(event));
  }
}
