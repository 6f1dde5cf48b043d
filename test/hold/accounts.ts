// The accounts of a spool whose database gets damaged: its appended pages and the positions of its sinks, and whether
// after a repair everything is still stored as appended, or will be read again.

import { createHash } from 'node:crypto';
import { cpSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Acknowledgement, Append, HeldPage, NewPage } from '../../src/contracts/spool.ts';
import { identityBytes, uidBytes } from '../../src/contracts/spool.ts';
import { type Repaired, repairDatabase, type StreamReset } from '../../src/hold/repair.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { Store } from '../../src/hold/store.ts';
import { aPage } from '../support/a-page.ts';
import { tempDir } from '../support/temp.ts';

export const streams = ['audit', 'logs'] as const;
type StreamName = (typeof streams)[number];
export const sinks = ['a', 'b'] as const;

/** Record n of a stream, from 1. */
interface Appended {
  readonly stream: StreamName;
  readonly n: number;
  readonly offset: number;
}

/** A state directory and what it should hold. */
export interface Accounts {
  readonly dir: string;
  readonly records: readonly Appended[];
  /** Bodies, by the uid of their first record. */
  readonly pages: ReadonlyMap<string, Uint8Array>;
  readonly positions: Readonly<Record<(typeof sinks)[number], number>>;
  readonly end: number;
}

function keyOf(stream: string, n: number): string {
  return createHash('sha256').update(`${stream}/${n}`).digest('hex').slice(0, 32);
}

/** An append of so many records from n on. */
function someRecords(stream: StreamName, n: number, count: number, pad: number): Append {
  const numbers = Array.from({ length: count }, (_, i) => n + i);
  const identities = Buffer.alloc(count * identityBytes);
  for (const [i, each] of numbers.entries())
    identities.write(keyOf(stream, each), i * identityBytes, 'hex');
  const page = aPage({ stream, source: stream, ids: numbers.map(String), pad });
  return {
    stream,
    pages: [page],
    checkpoint: { last: n + count - 1 },
    identities: new Uint8Array(identities),
    trail: [{ cursor: `${stream}-${n}`, at: n }],
  };
}

/**
 * A state directory after two runs: all of the first was delivered to both sinks; of the second `a` has got more than `b`.
 * `killed` is the directory as a SIGKILL in the second run leaves it, its log full; `closed` as it is after the end.
 */
export async function twoRuns(): Promise<{ readonly killed: Accounts; readonly closed: Accounts }> {
  const dir = tempDir();
  const settings = { dir, sync: 'normal', keepMs: 0, sinks, bytesMax: 1e9, eager: true } as const;
  const records: Appended[] = [];
  const pages = new Map<string, Uint8Array>();
  const lasts = { audit: 0, logs: 0 };
  const append = async (
    spool: Awaited<ReturnType<typeof openSpool>>,
    stream: StreamName,
    size: { count: number; pad: number },
  ) => {
    const entry = someRecords(stream, lasts[stream] + 1, size.count, size.pad);
    for (const page of entry.pages) pages.set(nameOf(page), new Uint8Array(page.body));
    for (let i = 0; i < size.count; i += 1) {
      lasts[stream] += 1;
      records.push({ stream, n: lasts[stream], offset: spool.gauge.end + i });
    }
    await spool.append(entry);
  };

  const first = await openSpool(settings);
  for (let i = 0; i < 4; i += 1) {
    await append(first, 'audit', { count: 10, pad: 500 });
    await append(first, 'logs', { count: 3, pad: 10 });
  }
  for (const sink of sinks) await first.acknowledge(sink, { position: first.gauge.end });
  await first.close();

  const second = await openSpool(settings);
  for (let i = 0; i < 5; i += 1) {
    await append(second, 'audit', { count: 20, pad: 3_000 });
    await append(second, 'logs', { count: 5, pad: 200 });
  }
  const positions = { a: 120, b: 80 };
  const deadLetter: Acknowledgement = {
    position: positions.b,
    deadLetters: [
      {
        uid: 'f'.repeat(64),
        offset: 60,
        reason: 'too long',
        context: aPage({ ids: ['x'] }).context,
        record: Buffer.from('{"id":"x"}'),
      },
    ],
  };
  second.reached('a', positions.a);
  await second.acknowledge('a', { position: positions.a });
  await second.acknowledge('b', deadLetter);
  second.note('stream', 'audit', { state: 'waiting' });
  const facts = { records, pages, positions, end: second.gauge.end };
  const killed = { ...facts, dir: copied(dir) };
  await second.close();
  return { killed, closed: { ...facts, dir } };
}

/** The state directory as it would be found by the next start: what is only in memory is not in it. */
export function copied(dir: string): string {
  const to = tempDir();
  for (const name of readdirSync(dir)) {
    if (name !== 'reserve' && !name.endsWith('-shm')) cpSync(join(dir, name), join(to, name));
  }
  return to;
}

/** Repairs a directory as a start of sluice would; returns the resets reported to sinks as well. */
export function repair(dir: string): { repaired: Repaired | null; told: readonly StreamReset[] } {
  const reported: StreamReset[] = [];
  const report = (reset: StreamReset) => {
    reported.push(reset);
    return resetPage(reset.stream);
  };
  const repaired = repairDatabase({ dir, sync: 'normal', sinks, streams, report });
  return { repaired, told: reported };
}

function resetPage(stream: string): NewPage {
  return aPage({ stream, source: stream, ids: [`reset of ${stream}`] });
}

function nameOf({ uids }: NewPage): string {
  return Buffer.from(uids.subarray(0, uidBytes)).toString('hex');
}

/** The losses and changes if sluice resumed with this directory; empty: none. */
export function lossesIn(dir: string, { records, pages, positions }: Accounts): readonly string[] {
  const store = new Store({ dir, sync: 'normal', keepMs: 0 });
  try {
    const resets = new Set(streams.map((stream) => nameOf(resetPage(stream))));
    const held = store.read(0, 1e9).filter((page) => !resets.has(nameOf(page)));
    const isAsAppended = (page: HeldPage) =>
      Buffer.from(page.body).equals(pages.get(nameOf(page)) ?? Buffer.of());
    const changed = held.filter((page) => !isAsAppended(page));
    const offsets = new Set(
      held.flatMap(({ first, count }) => Array.from({ length: count }, (_, i) => first + i)),
    );
    const again = new Map(streams.map((stream) => [stream, readAgain(store, stream)]));
    const lost = records.flatMap(({ stream, n, offset }) =>
      sinks.flatMap((sink) => {
        const isHeld = offsets.has(offset) && offset >= store.progress(sink).position;
        const fine = offset < positions[sink] || isHeld || again.get(stream)?.(n);
        return fine ? [] : [`record ${n} of ${stream}, at ${offset}, never comes to ${sink}`];
      }),
    );
    return [...changed.map(({ first }) => `the page at ${first} has changed`), ...lost];
  } finally {
    store.close();
  }
}

/** Whether a record would be read again: its stream's checkpoint lies before it, and it is not taken for known. */
function readAgain(store: Store, stream: string): (n: number) => boolean {
  const { checkpoint, identities } = store.streams.recall(stream);
  const last =
    typeof checkpoint === 'object' && checkpoint !== null && 'last' in checkpoint
      ? Number(checkpoint.last)
      : 0;
  const known = new Set(
    identities.flatMap(({ bytes }) =>
      Array.from({ length: bytes.length / identityBytes }, (_, i) =>
        Buffer.from(bytes.subarray(i * identityBytes, i * identityBytes + 16)).toString('hex'),
      ),
    ),
  );
  return (n) => n > last && !known.has(keyOf(stream, n));
}
