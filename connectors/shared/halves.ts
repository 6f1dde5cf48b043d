// Sending a batch in parts where the receiver says that it is too large. The engine's batches are
// bounded in bytes, yet only the receiver knows what it takes, so a sink that meets 413 halves the
// batch itself and sums up what became of the parts in one Delivery. What must stay true: an event
// ends up delivered, refused, or among those sent again, exactly one of these; and the parts are
// cut at the same places on each attempt, so that a part can carry an id.

import { ExportError } from '../../src/contracts/errors.ts';
import type { Uid } from '../../src/contracts/event.ts';
import type { Batch, Delivery, Refusal } from '../../src/contracts/sink.ts';

/** Events `from` up to, not including, `to` of a batch. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** What became of one part: a Delivery, or that it was more than the receiver takes. */
export type PartAnswer = Delivery | TooLarge | Spoiled;

/** The receiver takes less at a time. */
export interface TooLarge {
  readonly outcome: 'too_large';
  readonly cause: ExportError;
}

/** The receiver takes none of it for the sake of one event, and says which. */
export interface Spoiled {
  readonly outcome: 'spoiled';
  /** Its place in the part, from 0. */
  readonly by: number;
  readonly cause: ExportError;
}

/**
 * Sends the whole batch, then halves of what is too large, oldest first and one after the other; what
 * is before and behind an event that spoils a part, and that event by itself. A single event that
 * is too large, or spoils itself, is refused. The first part that has to wait or is refused ends it:
 * if nothing was answered before, its answer stands for the batch; otherwise it and all parts
 * behind it are to be sent again, and the engine, sending them, hears the answer again.
 */
export async function sendInHalves(
  batch: Batch,
  sendPart: (range: Range) => Promise<PartAnswer>,
): Promise<Delivery> {
  const refused: Refusal[] = [];
  const again: Uid[] = [];
  const waiting: Range[] = [{ from: 0, to: batch.events.length }];
  let settled = 0;
  for (let range = waiting.pop(); range !== undefined; range = waiting.pop()) {
    const size = range.to - range.from;
    const answer = await sendPart(range);
    switch (answer.outcome) {
      case 'delivered':
        if (size === batch.events.length) return answer;
        settled += size;
        break;
      case 'partly':
        refused.push(...answer.refused);
        again.push(...answer.again);
        settled += size - answer.again.length;
        break;
      case 'too_large':
      case 'spoiled':
        if (size > 1) {
          waiting.push(...partsOf(range, answer));
        } else {
          refused.push(...refusalsOf(batch, range, answer.cause.message));
          settled += 1;
        }
        break;
      case 'retry':
      case 'refused':
        if (settled === 0) return answer;
        again.push(...uidsOf(batch, range));
        for (const rest of waiting.reverse()) again.push(...uidsOf(batch, rest));
        return { outcome: 'partly', refused, again };
    }
  }
  return refused.length + again.length === 0
    ? { outcome: 'delivered' }
    : { outcome: 'partly', refused, again };
}

/** What is sent in place of a part, the oldest last. */
function partsOf({ from, to }: Range, answer: TooLarge | Spoiled): readonly Range[] {
  const at = answer.outcome === 'spoiled' ? from + answer.by : to;
  const middle = from + Math.floor((to - from) / 2);
  const borders = at < to ? [from, at, at + 1, to] : [from, middle, to];
  const parts = borders.slice(1).map((end, i) => ({ from: borders[i] ?? from, to: end }));
  return parts.filter((part) => part.to > part.from).reverse();
}

/** The same refusal for each event of a part. */
export function refusalsOf(batch: Batch, range: Range, reason: string): readonly Refusal[] {
  return uidsOf(batch, range).map((uid) => ({ uid, reason }));
}

function uidsOf(batch: Batch, range: Range): readonly Uid[] {
  return batch.events.slice(range.from, range.to).map((event) => event.uid);
}

/**
 * What an answer means where nothing was ever taken, of a batch of so many events: where each of them
 * is refused it is the target that is wrong, and the engine is to come to them one by one.
 */
export function ofTarget(answer: Delivery, count: number): Delivery {
  const [first] = answer.outcome === 'partly' ? answer.refused : [];
  if (first === undefined || answer.outcome !== 'partly' || answer.refused.length < count) {
    return answer;
  }
  const next = 'See in the dead letters why; mend what is wrong, then retry them.';
  const cause = new ExportError('record_refused', first.reason, { next });
  return { outcome: 'refused', scope: 'batch', cause };
}
