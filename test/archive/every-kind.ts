// An archive that has every kind of file, and faulty replacements, for tests that try each fault with each file. The
// real writer writes it, with a lake, manifests, a hold, an erased record, a time stamp and a cosignature; requests
// that are not carried out yet are beside them.

import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { lakeSink } from '../../connectors/sinks/lake.ts';
import { Anchors } from '../../src/archive/anchors/anchors.ts';
import { encodeHold } from '../../src/archive/holds.ts';
import { encodeWish } from '../../src/archive/retention.ts';
import type { Event } from '../../src/contracts/event.ts';
import type { HeldPage } from '../../src/contracts/spool.ts';
import { openDirectory } from '../../src/objects/directory.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anEvent } from '../support/an-event.ts';
import { silent } from '../support/silent-log.ts';
import { openSink, testTools } from '../support/sink-opening.ts';
import { archived, aSigningKey, aWriter, heldPages, type State } from './a-writer.ts';

const hour = 3_600_000;
const day = 24 * hour;
/** When the archive is written. */
export const writtenAt: number = Date.UTC(2026, 2, 3, 12);

function eventsOf(pages: readonly HeldPage[]): readonly Event[] {
  return pages.flatMap(({ first, count, uids, context }) =>
    Array.from({ length: count }, (_, i) => {
      const uid = Buffer.from(uids).toString('hex', i * 32, (i + 1) * 32);
      const ocsf = { class_uid: 3002, time: writtenAt + first + i };
      return { ...anEvent({ offset: first + i, uid, ocsf }), context };
    }),
  );
}

function readAt(pages: readonly HeldPage[], fetchedAt: number): readonly HeldPage[] {
  return pages.map((page) => ({ ...page, context: { ...page.context, fetchedAt } }));
}

/** The uids of the erased record, and of one with a pending request. */
const uidOf = (page: HeldPage | undefined, i: number) =>
  Buffer.from(page?.uids ?? []).toString('hex', i * 32, (i + 1) * 32);

function request(location: string, uid: string): void {
  const wish = { uid, reason: 'a test', asked_at: new Date(writtenAt).toISOString() };
  put(location, `erase/${uid}.json`, `${JSON.stringify(wish)}\n`);
}

function put(location: string, name: string, bytes: string | Uint8Array): void {
  mkdirSync(dirname(join(location, name)), { recursive: true });
  writeFileSync(join(location, name), bytes);
}

/** What is written, for a process that continues it. */
export interface EveryKind {
  readonly state: State;
  /** Number of the next event. */
  readonly next: number;
}

/** Writes one below `location`. With 256 entries there is a full tile and a full bundle; with fewer a check costs less. */
export async function writeEveryKind(location: string, pages = 260): Promise<EveryKind> {
  const state: State = { mark: null };
  const store = openDirectory(location);
  let now = writtenAt;
  const clock = { ...systemClock(), now: () => now };
  const ask = async ({ note }: { readonly note: Uint8Array }) => ({ proof: note, failures: [] });
  const anchors = new Anchors(
    (['tsr', 'cosig'] as const).map((kind) => ({ kind, everyMs: 0, ask, check: () => undefined })),
    { store, clock, log: silent },
  );
  const writer = await aWriter({ store, state, now: () => now, anchors });
  let next = 0;
  const read = (count: number, fetchedAt: number) => {
    const held = readAt(heldPages(count, next), fetchedAt);
    next += count * 3;
    return held;
  };
  const [first, second] = [read(pages, now), read(3, now + day)];
  await archived(writer, first);
  await cut(location, eventsOf(first.slice(0, 3)), () => now);
  const hold = { id: 'case-1', from: null, to: new Date(writtenAt - day).toISOString() };
  const placed = { reason: 'a test', placed_at: new Date(now).toISOString(), released_at: null };
  put(location, 'holds/case-1.json', encodeHold({ ...hold, ...placed }));
  now += day;
  await archived(writer, second);
  request(location, uidOf(first[0], 0));
  await archived(writer, read(1, now));
  await archived(writer, read(1, now));
  await writer.close();
  await anchors.finish();
  request(location, uidOf(first[1], 1));
  put(location, 'prune.json', encodeWish(writtenAt - 30 * day, now));
  return { state, next };
}

/** Has the lake write a cut of these events. */
async function cut(location: string, events: readonly Event[], now: () => number): Promise<void> {
  const tools = testTools({ ...systemClock(), now });
  const { sink, batch } = await openSink(
    lakeSink,
    { location, every: hour, signing_key: aSigningKey() },
    { tools },
  );
  const signal = new AbortController().signal;
  await sink.committed?.(signal);
  const sending = sink.send(batch(events), signal);
  sink.flush?.();
  await sending;
  await sink.close();
}

/** Writes a fault at the path of a file that was removed: `bytes` are its original content. */
export type Fault = (path: string, bytes: Buffer) => unknown;

const sparseBytes = 4 * 2 ** 30;

/** The possible faults at the path of a file. */
export const faults: Readonly<Record<string, Fault>> = {
  nothing: () => undefined,
  'a directory': (path) => mkdirSync(path),
  'a directory with a file': (path) => {
    mkdirSync(path);
    writeFileSync(join(path, 'x'), 'x');
  },
  'a pipe': (path) => spawnSync('mkfifo', [path]),
  'a link to nothing': (path) => symlinkSync('/nowhere/at/all', path),
  'a link to itself': (path) => symlinkSync(path, path),
  'a link to a device': (path) => symlinkSync('/dev/zero', path),
  'a link to a file outside': (path) => symlinkSync('/etc/passwd', path),
  '4 GiB of nothing': (path) => {
    writeFileSync(path, '');
    truncateSync(path, sparseBytes);
  },
  'itself, and 4 GiB of nothing behind it': (path, bytes) => {
    writeFileSync(path, bytes);
    truncateSync(path, sparseBytes);
  },
};

/** What a file may have instead of its bytes. */
export const contents: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  'no bytes': () => Buffer.alloc(0),
  'half of it': (bytes) => bytes.subarray(0, bytes.length >> 1),
  'all but its last byte': (bytes) => bytes.subarray(0, -1),
  'it twice': (bytes) => Buffer.concat([bytes, bytes]),
  'bytes that are no UTF-8': (bytes) =>
    Buffer.concat([bytes.subarray(0, 20), Buffer.of(0xff, 0xfe), bytes.subarray(20)]),
  'an object': () => Buffer.from('{}\n'),
  null: () => Buffer.from('null\n'),
  'lists in lists': () => Buffer.from('['.repeat(1_000_000)),
  lines: () => Buffer.from('\n'.repeat(1_000)),
};

const values: readonly string[] = [...['null', '-1', '1e999', '"x"', '[]', '{"__proto__":1}']];

/** Of a file that is JSON: each of its keys with each other value, and each key twice. */
export function* jsonFaults(text: string): Generator<readonly [what: string, text: string]> {
  const lines = text.split('\n');
  for (const [i, line] of lines.entries()) {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      if (i > 0) return;
      value = JSON.parse(text);
      lines.splice(0, lines.length, '');
    }
    for (const path of pathsIn(value)) {
      const of = (made: string) => [...lines.slice(0, i), made, ...lines.slice(i + 1)].join('\n');
      for (const other of values)
        yield [`${path.join('.')} is ${other}`, of(withValue(value, path, other))];
      const twice = withTwice(value, path);
      if (twice !== null) yield [`${path.join('.')} twice`, of(twice)];
      yield [`${path.join('.')} left out`, of(withValue(value, path, undefined))];
    }
  }
}

function pathsIn(value: unknown, above: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => [
    [...above, key],
    ...pathsIn(one, [...above, key]),
  ]);
}

const mark = '\u0001mark\u0001';

function marked(value: unknown, [key = '', ...below]: readonly string[], put: unknown): unknown {
  const made = structuredClone(value) as Record<string, unknown>;
  made[key] = below.length === 0 ? put : marked(made[key], below, put);
  return made;
}

function withValue(value: unknown, path: readonly string[], other: string | undefined): string {
  const text = JSON.stringify(marked(value, path, other === undefined ? undefined : mark));
  return text.replace(JSON.stringify(mark), () => other ?? '');
}

/** Null for an element of a list. */
function withTwice(value: unknown, path: readonly string[]): string | null {
  const key = path.at(-1) ?? '';
  const holder = path
    .slice(0, -1)
    .reduce((one, name) => (one as Record<string, unknown>)[name], value);
  if (Array.isArray(holder)) return null;
  const own = JSON.stringify(holder);
  const twice = `${own.slice(0, -1)},${JSON.stringify(key)}:"twice"}`;
  if (path.length === 1) return twice;
  return JSON.stringify(marked(value, path.slice(0, -1), mark)).replace(
    JSON.stringify(mark),
    () => twice,
  );
}
