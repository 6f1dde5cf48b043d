// Who writes to an archive. Its checkpoint can be replaced only by who has read the one before, so
// that no two processes ever sign two trees of one size; but two that take turns would mingle what
// they archive. So a writer claims the archive first, and renews that with each checkpoint. What
// must stay true: while one renews it, no other begins; and who finds another's claim stops. A bucket
// tells versions of an object apart by their bytes, so each version here has bytes of its own.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ExportError } from '../contracts/errors.ts';
import type { Clock } from '../contracts/tools.ts';
import type { ObjectStore } from '../objects/store.ts';
import { timeText } from '../tools/time-text.ts';
import { writerPath } from './layout.ts';
import { jsonIn, readSmall } from './small-objects.ts';

const claimShape = z.object({
  /** The spool whose pages are archived: a process that began later with it takes over at once. */
  spool: z.string(),
  /** Its present epoch; left out where no pages are archived. */
  epoch: z.int().optional(),
  /** RFC 3339; null: it has ended. */
  renewed_at: z.iso.datetime().nullable(),
});

/** Whose claim it is. */
interface Claimant {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly spool: string;
  readonly epoch?: number;
  /** Another's claim counts for so long. */
  readonly staleMs: number;
}

/** Another's claim counts for so many checkpoints, and for so long at least. */
const staleCheckpoints = 3;
const staleMsMin = 30_000;

/** How long another's claim counts for who signs a checkpoint every so many milliseconds. */
export function staleMsOf(checkpointEveryMs: number): number {
  return Math.max(staleMsMin, staleCheckpoints * checkpointEveryMs);
}

/** Throws `sink_unreachable` while a process holds the archive; for who has never written there. */
export async function refuseClaimed(
  store: ObjectStore,
  at: { readonly now: number; readonly staleMs: number },
): Promise<void> {
  const found = await readSmall(store, writerPath);
  if (found !== null) refuseFresh(readClaim(found.body)?.renewed_at ?? null, store, at);
}

/** Whether a process of this state, and none that began later, has claimed the archive; it may have ended. */
export async function isClaimedBy(
  store: Pick<ObjectStore, 'read'>,
  state: { readonly spool: string; readonly epoch: number },
): Promise<boolean> {
  const found = await readSmall(store, writerPath);
  return found !== null && isBefore(readClaim(found.body), state);
}

/** A claim that is held. */
export class Claim {
  readonly #claimant: Claimant;
  #tag: string;

  private constructor(claimant: Claimant, tag: string) {
    this.#claimant = claimant;
    this.#tag = tag;
  }

  /** Claims the archive; throws `sink_unreachable` while another process holds it. */
  static async take(claimant: Claimant): Promise<Claim> {
    const { store, clock, staleMs } = claimant;
    const found = await readSmall(store, writerPath);
    const other = found === null ? null : readClaim(found.body);
    const renewed = isBefore(other, claimant) ? null : (other?.renewed_at ?? null);
    refuseFresh(renewed, store, { now: clock.now(), staleMs });
    const tag = await store.replace(writerPath, claimBytes(claimant, true), found?.tag ?? null);
    if (tag === null) throw inUse(store, 'was claimed at the same moment');
    return new Claim(claimant, tag);
  }

  /** Throws `sink_refused` where another process has claimed it meanwhile. */
  async renew(isLast = false): Promise<void> {
    const { store } = this.#claimant;
    const tag = await store.replace(writerPath, claimBytes(this.#claimant, !isLast), this.#tag);
    if (tag === null) throw takenOver(store);
    this.#tag = tag;
  }
}

/**
 * True for a claim of a process that this one comes after. Of two that go on from copies of one
 * state the one that began first would else take the archive back again and again.
 */
function isBefore(
  claim: ReturnType<typeof readClaim>,
  { spool, epoch }: Pick<Claimant, 'spool' | 'epoch'>,
): boolean {
  return claim?.spool === spool && (claim.epoch ?? 0) <= (epoch ?? Number.POSITIVE_INFINITY);
}

/** What an object says of who writes; null: it is no claim. */
export function readClaim(bytes: Uint8Array): z.output<typeof claimShape> | null {
  try {
    return claimShape.parse(jsonIn(bytes));
  } catch {
    return null; // nobody's: what was there is no claim
  }
}

/** A clock that is ahead of ours holds nobody off for longer. */
function refuseFresh(
  renewedAt: string | null,
  store: ObjectStore,
  { now, staleMs }: { readonly now: number; readonly staleMs: number },
): void {
  const ageMs = renewedAt === null ? staleMs : Math.abs(now - Date.parse(renewedAt));
  if (ageMs < staleMs) throw inUse(store, `was written to ${Math.round(ageMs / 1_000)}s ago`);
}

function claimBytes({ clock, spool, epoch }: Claimant, isHeld: boolean): readonly Uint8Array[] {
  const renewed_at = isHeld ? timeText(clock.now()) : null;
  const claim = { spool, epoch, renewed_at, version: randomUUID() };
  return [Buffer.from(`${JSON.stringify(claim)}\n`)];
}

function inUse({ place }: ObjectStore, what: string): ExportError {
  return new ExportError(
    'sink_unreachable',
    `opening the archive ${place}: another process writes to it: it ${what}`,
    {
      next: 'Give each state its own location. If the other has ended for good, wait: its claim runs out by itself. Nothing is lost.',
    },
  );
}

/** Another process has written where only one may. */
export function takenOver({ place }: ObjectStore): ExportError {
  return new ExportError(
    'sink_refused',
    `writing to the archive ${place}: another process writes to it as well`,
    {
      next: 'Give each state its own location, then restart. Nothing is lost, and nothing was written twice.',
    },
  );
}
