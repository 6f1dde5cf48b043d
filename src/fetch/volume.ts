// Detects a stream whose volume falls below `expect_volume`. Records are counted in slots of a twelfth of the period, so
// the sum covers the last period. A stream below the volume is reported once, and once more when the volume is back.
// Invariants: each check stores its count; the reported state is durable, in one transaction with its event; nothing is
// judged before a whole period was observed, nor after a start until a poll has caught up, because records of the time
// between arrive late.

import { z } from 'zod';
import type { ExpectedVolume } from '../contracts/index.ts';
import { exactSpanText, timeText } from '../tools/index.ts';
import { StreamWatch, type WatchDeps, type WatchFinding } from './stream-watch.ts';

/** The stored facts on a stream's volume, beside its checkpoint under `volumeKey`. */
const volume = z.object({
  version: z.literal(1),
  /** When counting began, epoch milliseconds. */
  since: z.number(),
  /** Records by the start of their slot, epoch milliseconds; oldest first. */
  slots: z.array(z.tuple([z.number(), z.number()])).max(64),
  /** When the low volume was reported, epoch milliseconds; null: the volume is not low. */
  lowSince: z.number().nullable(),
});

type Volume = z.infer<typeof volume>;

/** Dependencies of the check. */
export type VolumeDeps = WatchDeps & { readonly expected: ExpectedVolume };

const slotsPerPeriod = 12;

/** Watches the volume of one stream. */
export class VolumeWatch extends StreamWatch<VolumeDeps, Volume> {
  protected readonly key = `${this.deps.stream.name}#volume`;
  protected readonly wishedMs = this.deps.expected.perMs / (2 * slotsPerPeriod);
  protected readonly what = 'volume';

  protected async check(): Promise<void> {
    const { clock, expected } = this.deps;
    const { perMs, atLeast } = expected;
    const now = clock.now();
    const held = await this.#load();
    // A clock that was ahead began the watch: the volume would not be judged until that time.
    const known = held.since > now ? { ...held, since: now } : held;
    const { records, caughtUpAt, isEnded } = this.runner();
    const slots = slotsWith(known.slots, records - this.records, { now, perMs });
    const isNewSlot = slots.at(-1)?.[0] !== known.slots.at(-1)?.[0];
    const count = slots.reduce((sum, [, n]) => sum + n, 0);
    // The setting may have been absent, or its period shorter: then there are no slots for a whole period.
    const countedFrom = Math.max(known.since, slots[0]?.[0] ?? now);
    const isJudged = isEnded !== true && now - countedFrom >= perMs && caughtUpAt !== null;
    let { lowSince } = known;
    let finding: VolumeCondition | null = null;
    if (lowSince === null && isJudged && count < atLeast) {
      lowSince = now;
      finding = this.#condition('source.volume_low', count, now);
    } else if (lowSince !== null && count >= atLeast) {
      finding = this.#condition('source.volume_back', count, lowSince);
      lowSince = null;
    }
    // Each count is stored at once: a kill that loses one would make the volume look low.
    if (isNewSlot || records !== this.records || finding !== null) {
      await this.save({ ...known, slots, lowSince }, finding);
    } else this.known = { ...known, slots };
    this.records = records;
  }

  async #load(): Promise<Volume> {
    if (this.known !== null) return this.known;
    const { spool, clock } = this.deps;
    const { checkpoint } = await spool.recall(this.key);
    const held = volume.safeParse(checkpoint).data;
    this.known = held ?? { version: 1, since: clock.now(), slots: [], lowSince: null };
    return this.known;
  }

  #condition(
    condition: VolumeCondition['condition'],
    count: number,
    since: number,
  ): VolumeCondition {
    const { stream, expected } = this.deps;
    const per = exactSpanText(expected.perMs);
    const seen = `${count} new records of ${stream.name} in ${per}`;
    const { error } = this.runner();
    const isLow = condition === 'source.volume_low';
    const polls = isLow && error !== null ? `; its polls fail: ${error.message}` : '';
    return {
      condition,
      message: isLow
        ? `${seen}, at least ${expected.atLeast} are expected${polls}`
        : `${seen}: the volume is back, it was low since ${timeText(since)}`,
      details: { since: timeText(since), per, at_least: expected.atLeast, records: count },
    };
  }
}

type VolumeCondition = WatchFinding & {
  readonly condition: 'source.volume_low' | 'source.volume_back';
};

/** The slots of the last period, with new records in the present one. */
function slotsWith(
  slots: Volume['slots'],
  records: number,
  { now, perMs }: { readonly now: number; readonly perMs: number },
): Volume['slots'] {
  const slotMs = perMs / slotsPerPeriod;
  const start = Math.floor(now / slotMs) * slotMs;
  // A clock that was set back leaves slots of the future, which would never go.
  const recent = slots.filter(([at]) => at + slotMs > now - perMs && at <= start);
  const last = recent.at(-1);
  if (last?.[0] === start) return [...recent.slice(0, -1), [start, last[1] + records]];
  return [...recent, [start, records]];
}
