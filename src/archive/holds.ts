// Legal holds: bodies of pages that were read in a time are kept, whatever retention says, until the
// hold is released. Whoever has the archive's place sets one, without key or config: it is an object
// that whoever writes the archive looks for, enters into the log and keeps to from then on. What
// must stay true: a hold that was entered holds until its release is entered, also where its object
// is gone.

import { z } from 'zod';
import type { ObjectStore } from '../objects/store.ts';

const prefix = 'holds/';
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const time = z.iso.datetime();

const holdShape = z.object({
  id: z.string().regex(idPattern),
  /** Pages read from then on and before; null: since ever, and from now on as well. */
  from: time.nullable(),
  to: time.nullable(),
  reason: z.string().max(1_000),
  placed_at: time,
  released_at: time.nullable(),
});

/** A hold. Times are RFC 3339. */
export type Hold = z.output<typeof holdShape>;

/** The name of a hold's object; null: no hold can be called that. */
export function holdPath(id: string): string | null {
  return idPattern.test(id) ? `${prefix}${id}.json` : null;
}

/** The bytes of a hold's object. */
export function encodeHold(hold: Hold): Buffer {
  return Buffer.from(`${JSON.stringify(hold, null, 2)}\n`);
}

function parseHold(bytes: Uint8Array): Hold {
  const hold = holdShape.safeParse(JSON.parse(Buffer.from(bytes).toString('utf8')));
  if (hold.success) return hold.data;
  throw new SyntaxError('it is not what a hold is written as');
}

/** All holds that were set, the released ones too. Throws a SyntaxError where one is damaged. */
export async function holdsIn(store: ObjectStore): Promise<readonly Hold[]> {
  const holds: Hold[] = [];
  for await (const { name } of store.list(prefix)) {
    const found = await store.read(name);
    if (found === null) continue;
    try {
      holds.push(parseHold(found.body));
    } catch (error) {
      throw new SyntaxError(`${name}: ${error instanceof Error ? error.message : 'damaged'}`);
    }
  }
  return holds;
}

/** True where pages read from one time to another are held, both included; epoch milliseconds. */
export function isHeld(
  hold: Pick<Hold, 'from' | 'to' | 'released_at'>,
  { first, last }: { readonly first: number; readonly last: number },
): boolean {
  if (hold.released_at !== null) return false;
  const from = hold.from === null ? Number.NEGATIVE_INFINITY : Date.parse(hold.from);
  const to = hold.to === null ? Number.POSITIVE_INFINITY : Date.parse(hold.to);
  return last >= from && first < to;
}

/** Throws a SyntaxError that names the hold of these, by their ids, that keeps what was read then. */
export function refuseHeld(
  holds: Readonly<Record<string, Parameters<typeof isHeld>[0]>>,
  read: Parameters<typeof isHeld>[1],
): void {
  for (const [id, hold] of Object.entries(holds)) {
    if (isHeld(hold, read)) throw new SyntaxError(`the hold ${id} keeps it`);
  }
}
