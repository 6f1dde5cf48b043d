// Legal holds: bodies of pages read in a time span are kept regardless of retention, until the hold is released. Any
// user with access to the archive's store can set one, without key or config: it is an object that the archive's writer
// finds, enters into the log and obeys from then on. Invariant: an entered hold is in force until its release is
// entered, even if its object is deleted.

import { z } from 'zod';
import type { Log as Lines } from '../contracts/index.ts';
import type { ObjectStore } from '../objects/index.ts';
import { timeText } from '../tools/index.ts';
import type { Authority, ReadRequest } from './authority.ts';
import type { ArchiveLog } from './log.ts';
import { jsonIn, readSmall } from './small-objects.ts';

/** Prefix of the names of holds' objects. */
export const holdsPrefix = 'holds/';
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const time = z.iso.datetime();

const holdShape = z.object({
  id: z.string().regex(idPattern),
  /** Pages read in this span, its end excluded; null: without a bound. */
  from: time.nullable(),
  to: time.nullable(),
  reason: z.string().max(1_000),
  placed_at: time,
  released_at: time.nullable(),
  /** The signature of the release; absent: unsigned (authority.ts). */
  signed: z.string().optional(),
});

/** A hold. Times are RFC 3339. */
export type Hold = z.output<typeof holdShape>;

/** The name of a hold's object; null: the id is invalid. */
export function holdPath(id: string): string | null {
  return idPattern.test(id) ? `${holdsPrefix}${id}.json` : null;
}

/** The bytes of a hold's object. */
export function encodeHold(hold: Hold): Buffer {
  return Buffer.from(`${JSON.stringify(hold, null, 2)}\n`);
}

/** Throws a SyntaxError if it is no hold. */
export function parseHold(bytes: Uint8Array): Hold {
  const hold = holdShape.safeParse(jsonIn(bytes));
  if (hold.success) return hold.data;
  throw new SyntaxError('it does not have the form of a hold');
}

/** All holds, including released ones. Throws a SyntaxError if one is damaged. */
export async function holdsIn(store: ObjectStore): Promise<readonly Hold[]> {
  const holds: Hold[] = [];
  for await (const { name } of store.list(holdsPrefix)) {
    const found = await readSmall(store, name);
    if (found === null) continue;
    try {
      holds.push(parseHold(found.body));
    } catch (error) {
      throw new SyntaxError(`${name}: ${error instanceof Error ? error.message : 'damaged'}`);
    }
  }
  return holds;
}

/** The release of a hold as a request. */
export function releaseOf({ id, released_at, signed }: Hold): ReadRequest {
  return { kind: 'release', wish: { id, released_at }, at: released_at ?? '', signed };
}

/** Enters holds into one archive's log. */
export class Holds {
  readonly #store: ObjectStore;
  readonly #lines: Lines;
  /** Files with a rejected change, already reported. */
  readonly #refused = new Set<string>();

  constructor({ store, log }: { readonly store: ObjectStore; readonly log: Lines }) {
    this.#store = store;
    this.#lines = log;
  }

  /** Throws a SyntaxError if a hold cannot be read. */
  async enter(log: ArchiveLog, now: number): Promise<void> {
    for (const hold of await holdsIn(this.#store)) {
      const { id, reason, released_at } = hold;
      const known = log.heads.holds[id];
      const isActive = known !== undefined && known.released_at === null;
      // An entered hold keeps its entered span: its file can only release it.
      const { from, to } = isActive ? known : hold;
      if (isActive && (hold.from !== from || hold.to !== to)) this.#refuse(hold);
      if (known?.released_at === released_at && known.from === from && known.to === to) continue;
      const isRelease = isActive && released_at !== null;
      const authority = isRelease ? this.#authorityOf(hold, log, now) : {};
      if (authority === null) continue;
      log.append({ t: 'hold', at: timeText(now), id, from, to, reason, released_at, ...authority });
      log.done(authority);
    }
  }

  /** Null: the release is not authorised. */
  #authorityOf(hold: Hold, log: ArchiveLog, now: number): Authority | null {
    try {
      return log.authorityOf(releaseOf(hold), now);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const request = `release ${hold.id} ${hold.released_at}`;
      if (!this.#refused.has(request)) {
        this.#refused.add(request);
        this.#lines.warn('hold_not_released', 'a legal hold of the archive is not released', {
          ...{ hold: hold.id, error: error.message },
          next: 'Release it with a signature: archive hold release --sign-with.',
        });
      }
      return null;
    }
  }

  #refuse({ id }: Hold): void {
    if (this.#refused.has(id)) return;
    this.#refused.add(id);
    this.#lines.warn(
      'hold_file_changed',
      'the file of a legal hold was changed; the entered hold stays in effect',
      {
        ...{
          hold: id,
          next: 'Find the writer. Another span needs a hold of its own.',
        },
      },
    );
  }
}

/** True if pages read between two times, both included, are held; epoch milliseconds. */
export function isHeld(
  hold: Pick<Hold, 'from' | 'to' | 'released_at'>,
  { first, last }: { readonly first: number; readonly last: number },
): boolean {
  if (hold.released_at !== null) return false;
  const from = hold.from === null ? Number.NEGATIVE_INFINITY : Date.parse(hold.from);
  const to = hold.to === null ? Number.POSITIVE_INFINITY : Date.parse(hold.to);
  return last >= from && first < to;
}

/** Throws a SyntaxError that names a hold in force, of those by id, for data read in this span. */
export function refuseHeld(
  holds: Readonly<Record<string, Parameters<typeof isHeld>[0]>>,
  read: Parameters<typeof isHeld>[1],
): void {
  for (const [id, hold] of Object.entries(holds)) {
    if (isHeld(hold, read)) throw new SyntaxError(`the hold ${id} keeps it`);
  }
}
