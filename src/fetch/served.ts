// The records that upstream serves for a list now, collected in memory only, for comparison with the archive. The list
// is walked like a backfill, in a spool of its own: the live stream's checkpoint and memory are neither read nor
// changed, and a record has the uid that the live stream gives it.

import {
  type ExportError,
  type FetchSpool,
  type NewPage,
  type ParsedRecord,
  uidBytes,
} from '../contracts/index.ts';
import { Backfill, type BackfillDeps, recordTime } from '../list/index.ts';

import { cutRecords, sourceTextAt, valueAt } from '../tools/index.ts';

/** One record, reduced to the compared fields. */
export interface KnownRecord {
  /** In hex; differs for other content. */
  readonly uid: string;
  /** Upstream's own id, as JSON; null: it has none. */
  readonly id: string | null;
  /** Event time, epoch milliseconds; null: unknown. */
  readonly at: number | null;
}

/** Limit of consecutive attempts without progress. */
const attemptsMax = 8;
const waitMsMin = 1_000;
const waitMsMax = 60_000;

/** The records of a page that were kept. */
export function knownRecords(
  page: Pick<NewPage, 'body' | 'items' | 'kept' | 'uids' | 'slices'>,
  { id, time }: { readonly id: string | null; readonly time: readonly string[] },
): readonly KnownRecord[] {
  const { starts, ends, length } = page.slices ?? cutRecords(page.body, page.items);
  const body = Buffer.from(page.body.buffer, page.body.byteOffset, page.body.byteLength);
  const uids = Buffer.from(page.uids);
  return Array.from(page.kept ?? Array(length).keys(), (index, i): KnownRecord => {
    const bytes = body.subarray(starts[index], ends[index]);
    const record: ParsedRecord = JSON.parse(bytes.toString('utf8'));
    return {
      uid: uids.toString('hex', i * uidBytes, (i + 1) * uidBytes),
      id: id === null ? null : idOf(record, bytes, id),
      at: recordTime(record, time),
    };
  });
}

/** A number as upstream wrote it: ids of 64 bits have digits that a double drops. */
function idOf(record: ParsedRecord, bytes: Uint8Array, path: string): string | null {
  const named = valueAt(record, path);
  if (typeof named === 'number') return sourceTextAt(bytes, path);
  return named === undefined || named === null ? null : JSON.stringify(named);
}

/** Statuses by which upstream reports that a list does not exist. */
const goneStatuses: readonly (number | undefined)[] = [404, 410];

/**
 * The records of a time span that upstream serves now; an error if upstream reports that the list does not exist.
 * Rejects with the reason why they cannot be read, or with the signal's reason.
 */
export async function servedRecords(
  deps: Omit<BackfillDeps, 'key' | 'found'>,
  signal: AbortSignal,
): Promise<readonly KnownRecord[] | ExportError> {
  const { clock, stream } = deps;
  const records: KnownRecord[] = [];
  const spool = ownSpool(deps.spool, (page) => {
    if (page.context.kind === stream.records) records.push(...knownRecords(page, stream));
  });
  const walk = new Backfill({ ...deps, spool, key: ownKey, found: () => undefined });
  let failures = 0;
  for (;;) {
    const result = await walk.poll(signal);
    if (result.outcome === 'done') {
      if (!result.more) return records;
      failures = 0;
      continue;
    }
    failures += 1;
    if (goneStatuses.includes(result.status)) return result.cause;
    if (result.outcome !== 'retry' || failures >= attemptsMax) throw result.cause;
    const waitMs = Math.min(waitMsMax, waitMsMin * 2 ** failures);
    await clock.sleep(result.wait?.ms ?? waitMs, signal);
  }
}

const ownKey = '#compared';

/** A spool in memory for one walk; other streams are read from the real spool. */
function ownSpool(real: FetchSpool, took: (page: NewPage) => void): FetchSpool {
  const blocks: { readonly block: number; readonly bytes: Uint8Array }[] = [];
  const entities = new Map<string, string>();
  let checkpoint: Awaited<ReturnType<FetchSpool['recall']>>['checkpoint'] = null;
  return {
    parents: real.parents,
    room: async () => undefined,
    trail: async () => [],
    entities: async (_, which) =>
      new Map([...entities].filter(([key]) => Array.isArray(which) && which.includes(key))),
    recall: async (name) =>
      name === ownKey ? { checkpoint, identities: blocks } : await real.recall(name),
    async append(entry) {
      for (const page of entry.pages) took(page);
      if (entry.checkpoint !== undefined) checkpoint = entry.checkpoint;
      for (const [key, body] of entry.entities?.put ?? []) entities.set(key, body);
      if (entry.identities !== undefined) {
        blocks.push({ block: blocks.length + 1, bytes: entry.identities });
      }
      return blocks.length;
    },
  };
}
