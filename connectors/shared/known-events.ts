// Events that stand at a far side already although the state does not know it: it is older than
// what was delivered, or was lost. Upstream's records come again under other numbers, and each is
// told by its uid, of which half is kept: 128 bits, which nobody meets by chance.

import type { Event, Offset } from '../../src/contracts/event.ts';
import type { Batch } from '../../src/contracts/sink.ts';

/** What is kept of a uid: hexadecimal digits. */
export const keptDigits = 32;

/** What is kept of an event's uid. */
export function keptUid({ uid }: Pick<Event, 'uid'>): string {
  return uid.slice(0, keptDigits);
}

/** The batch without the events that are known. */
export function withoutKnown(batch: Batch, known: ReadonlySet<string>): Batch {
  return known.size === 0 ? batch : onlyEvents(batch, (event) => !known.has(keptUid(event)));
}

/** The batch with the events that are wanted only. */
export function onlyEvents(batch: Batch, isRequested: (event: Event) => boolean): Batch {
  if (batch.events.every(isRequested)) return batch;
  const left = batch.events.flatMap((event, i) => (isRequested(event) ? [i] : []));
  const { bytes, starts, ends } = batch.lines;
  return {
    ...batch,
    events: left.flatMap((i) => batch.events[i] ?? []),
    lines: {
      bytes,
      starts: Uint32Array.from(left, (i) => starts[i] ?? 0),
      ends: Uint32Array.from(left, (i) => ends[i] ?? 0),
      length: left.length,
    },
  };
}

/**
 * Once what was known has come again it is known no longer: whoever asks for it once more, by a
 * backfill, gets it. Not so an event that the state held before `heldBefore`, when this epoch
 * began: a state that was mended reads again what it still holds.
 */
export function forget(batch: Batch, known: Set<string>, heldBefore: Offset = 0): void {
  if (known.size === 0) return;
  for (const event of batch.events) {
    if (event.offset < heldBefore) known.add(keptUid(event));
    else known.delete(keptUid(event));
  }
}
