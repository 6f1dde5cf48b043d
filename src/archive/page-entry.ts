// Prepares a stored page for the archive: computes everything in its entry except its location when the page arrives,
// so its body need not be kept until a checkpoint is due. Hashes are computed here at once, the frame off the event
// loop.

import { createHmac, hash } from 'node:crypto';
import { type AnswerFacts, type HeldPage, isObject, type PageContext } from '../contracts/index.ts';
import { cutRecords, parseBody, timeText } from '../tools/index.ts';
import { type ArchiveComparison, comparisonIn } from './comparison.ts';
import type { PageEntry } from './entries.ts';
import { keptRecords, recordsRoot } from './records.ts';
import { compressBody, encodeKept, skippableFrame } from './segments.ts';
import { type SuccessionEntry, successionIn } from './succession.ts';

/** Limit of a path's characters in an entry. */
const pathMax = 4_096;

/** A page that waits for its location in a segment and in its stream's chain. */
export interface PreparedPage {
  readonly frames: readonly [body: Buffer, kept: Buffer];
  /** The entry, without its location in the log. */
  readonly entry: Omit<PageEntry, 'seq' | 'prev' | 'body'>;
  readonly body: { readonly sha256: string; readonly bytes: number };
  /** The page's comparison with upstream; null: none. */
  readonly comparison: ArchiveComparison | null;
  /** The page's change of the delivering source of a pair; null: none. */
  readonly succession: SuccessionEntry | null;
}

/** Prepares a page. `epoch`: the spool's present one; `salt`: the archive's. */
export async function preparePage(
  page: HeldPage,
  { epoch, salt }: { readonly epoch: number; readonly salt: Buffer },
): Promise<PreparedPage> {
  const { body, items, context } = page;
  const compressed = compressBody(body);
  // A response without records may have any content, and its one number belongs to no event.
  const isRecords = context.kind !== 'answer';
  const slices = isRecords ? (page.slices ?? cutRecords(body, items)) : null;
  const records = slices === null ? [] : keptRecords({ ...page, slices });
  const kept = encodeKept(isRecords ? page : { uids: new Uint8Array(0), kept: null });
  const entry = {
    t: 'page',
    stream: context.stream,
    place: [epoch, page.first + page.count],
    ...contextFacts(context),
    ...(context.answer !== undefined && { answer: answerFacts(context.answer, salt) }),
    ...(context.kind === 'condition' && { conditions: conditionsOf(body) }),
    records: slices?.length ?? context.answer?.records ?? 0,
    kept: records.length,
    items,
    uids: { sha256: hash('sha256', kept, 'hex'), bytes: kept.length },
    events: { root: recordsRoot(records).toString('hex'), count: records.length },
  } satisfies PreparedPage['entry'];
  const sha256 = hash('sha256', body, 'hex');
  return {
    frames: [await compressed, skippableFrame(kept)],
    entry,
    body: { sha256, bytes: body.length },
    comparison: context.kind === 'condition' ? comparisonIn(body) : null,
    succession: context.kind === 'condition' ? successionIn(body) : null,
  };
}

function contextFacts(context: PageContext) {
  const { source, kind, company, parent, isUpdate, delivery, fetchedAt } = context;
  return {
    source,
    kind,
    ...(company === undefined ? {} : { company }),
    ...(parent === undefined ? {} : { parent }),
    ...(isUpdate === true && { is_update: true as const }),
    ...(delivery === undefined ? {} : { delivery }),
    fetched_at: timeText(fetchedAt),
  };
}

function answerFacts(
  { status, path, asked, next, isRewind, requestId, date }: AnswerFacts,
  salt: Buffer,
) {
  const keyed = (cursor: string | null) =>
    cursor === null ? null : createHmac('sha256', salt).update(cursor).digest('hex');
  return {
    status,
    path: path.slice(0, pathMax),
    asked: keyed(asked),
    ...(next === undefined ? {} : { next: keyed(next) }),
    ...(isRewind === true && { rewind: true as const }),
    ...(requestId === undefined ? {} : { request_id: requestId }),
    ...(date === undefined ? {} : { date }),
  };
}

/** The conditions in a page of conditions. */
function conditionsOf(body: Uint8Array): string[] {
  const records = parseBody(body);
  return (Array.isArray(records) ? records : []).flatMap((record) =>
    isObject(record) && typeof record.condition === 'string' ? [record.condition] : [],
  );
}
