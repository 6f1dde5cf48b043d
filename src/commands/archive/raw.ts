// Writes records of an archive as upstream sent them, one a line on stdout. Needs neither a lake nor a config.
// Invariants: if stdout is not a terminal, a record's bytes are exactly those of upstream, except that line breaks
// between JSON tokens become blanks, as with `schema: original`; a page that is not shown is counted.

import { once } from 'node:events';
import { archivedPage, keptRecords } from '../../archive/audit.ts';
import { type ArchiveReader, loggedEntries, sizeOf, type Verifier } from '../../archive/index.ts';
import { ExportError, UsageError, visibleLines } from '../../contracts/index.ts';
import { counted } from '../../terminal/index.ts';
import type { CommandDeps, ExitCode } from '../shared/command.ts';
import { refuseUnknown, timeTyped } from '../shared/typed.ts';
import { archivesAt } from './given.ts';
import { trustedArchive } from './trusted.ts';

/** Times of reading, epoch milliseconds: from then on, and before then. */
export interface RawSpan {
  readonly from: number;
  readonly to: number;
}

/** The span that --from and --to name; all, where they are left out. Throws a UsageError. */
export function readSpanGiven(given: {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}): RawSpan {
  const from = given.from === undefined ? Number.NEGATIVE_INFINITY : timeTyped('from', given.from);
  const to = given.to === undefined ? Number.POSITIVE_INFINITY : timeTyped('to', given.to);
  if (to <= from) throw new UsageError('--to: expected a time after --from');
  return { from, to };
}

/** Waits for a slower reader of stdout. */
export async function drained(unread: AbortSignal): Promise<void> {
  if (!process.stdout.writableNeedDrain || unread.aborted) return;
  // `unread` aborts when the reader has closed stdout.
  await once(process.stdout, 'drain', { signal: unread }).catch(() => undefined);
}

/** The part of an archive to show. */
export interface RawWishes extends RawSpan {
  /** Undefined: all streams. */
  readonly stream?: string;
  /** Keys that may sign the archive; null: no key is known. */
  readonly trusted: readonly Verifier[] | null;
}

/** Shows the records of each archive at a location, in the order of its log. */
export async function showRaw(
  location: string,
  wishes: RawWishes,
  deps: CommandDeps,
): Promise<ExitCode> {
  const streams = new Set<string>();
  let pruned = 0;
  for (const one of await archivesAt(location, deps.env)) {
    const reader = await trustedArchive(one, wishes.trusted, deps.env);
    try {
      pruned += await showPages(reader, wishes, { deps, streams });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `reading ${one}: ${error.message}`, {
        next: '`npx sluice archive verify` lists the damage.',
        cause: error,
      });
    } finally {
      reader.store.close();
    }
    if (deps.unread.aborted) return 0;
  }
  refuseUnknown('stream', wishes.stream, streams);
  if (pruned > 0) deps.err(`skipped: ${counted(pruned, 'page')} whose bodies are pruned`);
  return 0;
}

/** Returns how many pages are pruned. */
async function showPages(
  reader: ArchiveReader,
  { from, to, stream }: RawWishes,
  { deps, streams }: { readonly deps: CommandDeps; readonly streams: Set<string> },
): Promise<number> {
  let pruned = 0;
  for await (const { entry } of loggedEntries(reader, await sizeOf(reader))) {
    if (entry.t !== 'page') continue;
    streams.add(entry.stream);
    const at = Date.parse(entry.fetched_at);
    const isShown = at >= from && at < to && (stream ?? entry.stream) === entry.stream;
    if (!isShown || entry.kept === 0) continue;
    const page = await archivedPage(reader, entry, 0);
    if (page === null) {
      pruned += 1;
      continue;
    }
    write(keptRecords(page).flatMap((record) => [oneLine(record), lineEnd]));
    await drained(deps.unread);
    if (deps.unread.aborted) break;
  }
  return pruned;
}

const lineEnd = Buffer.from('\n');
const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const blank = 0x20;

/** A JSON string has no raw line break, so a blank can replace one between tokens. */
function oneLine(record: Uint8Array): Uint8Array {
  if (!record.includes(lineFeed) && !record.includes(carriageReturn)) return record;
  return record.map((byte) => (byte === lineFeed || byte === carriageReturn ? blank : byte));
}

/** Bytes as they are; on a terminal no character of theirs may steer it. */
function write(lines: readonly Uint8Array[]): void {
  const bytes = Buffer.concat(lines);
  process.stdout.write(process.stdout.isTTY === true ? visibleLines(bytes) : bytes);
}
