// The claim of an archive's writer. A checkpoint can be replaced only by a process that has read the previous one, so
// two processes never sign two trees of one size. But two that alternate would mix their pages. So a writer claims the
// archive first, and renews the claim with each checkpoint. Invariants: while a process renews its claim, no other
// begins; a process that finds another's claim stops. A bucket distinguishes versions of an object by their bytes, so
// each version of the claim has different bytes.

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Clock, ExportError } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import { writerPath } from './layout.ts';
import { jsonIn, readSmall } from './small-objects.ts';

const claimShape = z.object({
  /** The archived spool: a later process of the same spool takes over at once. */
  spool: z.string(),
  /** The spool's present epoch; absent if no pages are archived. */
  epoch: z.int().optional(),
  /** The sink that writes, by its name in the config; absent before its first claim, and in older versions. */
  sink: z.string().optional(),
  /** RFC 3339; null: the process has ended. */
  renewed_at: z.iso.datetime().nullable(),
});

/** The claiming process. */
interface Claimant {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly spool: string;
  readonly epoch?: number;
  /** Another claim is valid for this long, milliseconds. */
  readonly staleMs: number;
}

/** Another claim is valid for this many checkpoints, and at least for this time. */
const staleCheckpoints = 3;
const staleMsMin = 30_000;

/** How long another claim is valid, for a process with this checkpoint interval; milliseconds. */
export function staleMsOf(checkpointEveryMs: number): number {
  return Math.max(staleMsMin, staleCheckpoints * checkpointEveryMs);
}

/** For a process that never wrote to the archive: throws `sink_unreachable` while another process holds it. */
export async function refuseClaimed(
  store: ObjectStore,
  at: { readonly now: number; readonly staleMs: number },
): Promise<void> {
  const found = await readSmall(store, writerPath);
  if (found !== null) refuseFresh(readClaim(found.body)?.renewed_at ?? null, store, at);
}

/** Whether this sink, in a process of this state and no later one, has claimed the archive; it may have ended. */
export async function isClaimedBy(
  store: Pick<ObjectStore, 'read'>,
  { sink, ...state }: { readonly spool: string; readonly epoch: number; readonly sink: string },
): Promise<boolean> {
  const found = await readSmall(store, writerPath);
  const claim = found && readClaim(found.body);
  return isBefore(claim, state) && (claim?.sink ?? sink) === sink;
}

/** A held claim. */
export class Claim {
  readonly #claimant: Claimant;
  /** As in the claim before, until another one is accepted. */
  #sink: string | undefined;
  #tag: string;

  private constructor(claimant: Claimant, sink: string | undefined, tag: string) {
    this.#claimant = claimant;
    this.#sink = sink;
    this.#tag = tag;
  }

  /** Claims the archive; throws `sink_unreachable` while another process holds it. */
  static async take(claimant: Claimant): Promise<Claim> {
    const { store, clock, staleMs } = claimant;
    const found = await readSmall(store, writerPath);
    const other = found === null ? null : readClaim(found.body);
    const renewed = isBefore(other, claimant) ? null : (other?.renewed_at ?? null);
    refuseFresh(renewed, store, { now: clock.now(), staleMs });
    const sink = other?.spool === claimant.spool ? other.sink : undefined;
    const tag = await store.replace(writerPath, claimBytes(claimant, sink), found?.tag ?? null);
    if (tag === null) throw inUse(store, 'was claimed at the same moment');
    return new Claim(claimant, sink, tag);
  }

  /** The archive is this sink's: its lake may be written. Throws as `renew`. */
  async accept(sink: string): Promise<void> {
    if (this.#sink === sink) return;
    this.#sink = sink;
    await this.renew();
  }

  /** Renews the claim. Throws `sink_refused` if another process has claimed the archive meanwhile. */
  async renew(isLast = false): Promise<void> {
    const { store } = this.#claimant;
    const bytes = claimBytes(this.#claimant, this.#sink, isLast);
    const tag = await store.replace(writerPath, bytes, this.#tag);
    if (tag === null) throw takenOver(store);
    this.#tag = tag;
  }
}

/**
 * True for a claim of an earlier process. Of two processes with copies of one state, the earlier one would otherwise
 * reclaim the archive again and again.
 */
function isBefore(
  claim: ReturnType<typeof readClaim>,
  { spool, epoch }: Pick<Claimant, 'spool' | 'epoch'>,
): boolean {
  return claim?.spool === spool && (claim.epoch ?? 0) <= (epoch ?? Number.POSITIVE_INFINITY);
}

/** The claim in an object; null: it is no claim. */
export function readClaim(bytes: Uint8Array): z.output<typeof claimShape> | null {
  try {
    return claimShape.parse(jsonIn(bytes));
  } catch {
    return null; // the object is no claim
  }
}

/** A clock ahead of the local one does not prolong the claim. */
function refuseFresh(
  renewedAt: string | null,
  store: ObjectStore,
  { now, staleMs }: { readonly now: number; readonly staleMs: number },
): void {
  const ageMs = renewedAt === null ? staleMs : Math.abs(now - Date.parse(renewedAt));
  if (ageMs < staleMs) throw inUse(store, `was written to ${Math.round(ageMs / 1_000)}s ago`);
}

function claimBytes(
  { clock, spool, epoch }: Claimant,
  sink: string | undefined,
  isLast = false,
): readonly Uint8Array[] {
  const renewed_at = isLast ? null : timeText(clock.now());
  const claim = { spool, epoch, sink, renewed_at, version: randomUUID() };
  return [Buffer.from(`${JSON.stringify(claim)}\n`)];
}

function inUse({ location }: ObjectStore, what: string): ExportError {
  return new ExportError(
    'sink_unreachable',
    `opening the archive ${location}: another process writes to it: it ${what}`,
    {
      next: 'Give each state its own location. If the other has ended for good, wait: its claim runs out by itself. Nothing is lost.',
    },
  );
}

/** Another process has written where only one may. */
export function takenOver({ location }: ObjectStore): ExportError {
  return new ExportError(
    'sink_refused',
    `writing to the archive ${location}: another process writes to it as well`,
    {
      next: 'Give each state its own location, then restart. Nothing is lost, and nothing was written twice.',
    },
  );
}
