// Changes of a configuration as records for the sinks. Before and after are written with every digit that upstream
// sent; a parsed number would lose some.

import type { ChangeRecord, Json, NewPage, PageContext } from '../contracts/index.ts';
import { type ComparisonRules, changedPaths, ownPage, parseExact } from '../poll/index.ts';

import { losslessBytes, timeText, unescapedBytes } from '../tools/index.ts';
import type { EntityState } from './state.ts';

/** One change, without the generation's stamp. */
export interface FoundChange {
  readonly change: ChangeRecord['change'];
  readonly key: string;
  readonly state: Pick<
    EntityState,
    'kind' | 'id' | 'name' | 'parentId' | 'list' | 'version' | 'hash'
  >;
  /** The entity's position in this reading. */
  readonly place?: number | undefined;
  /** JSON text of the entity. */
  readonly before?: string;
  readonly after?: string;
  readonly count?: number;
}

/** The fields common to every change of one generation. */
export interface GenerationStamp {
  readonly company: string | undefined;
  readonly generation: number;
  readonly epoch: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Limit of records per page: a sink reads a page at a time. */
const pageRecordsMax = 500;

/** A change as the record for sinks; undefined fields are omitted. */
export function changeRecord(
  { change, state, place, before, after, count }: FoundChange,
  stamp: GenerationStamp,
  comparison: ComparisonRules,
): { readonly [Key in keyof ChangeRecord]: ChangeRecord[Key] | undefined } {
  const isBoth = before !== undefined && after !== undefined;
  return {
    change,
    entity_kind: state.kind,
    entity_id: state.id,
    entity_name: state.name,
    parent_id: state.parentId,
    list: state.list,
    place,
    company_id: stamp.company,
    generation: stamp.generation,
    epoch: stamp.epoch,
    entity_version: state.version,
    observed_at: timeText(stamp.now),
    changed: isBoth ? changedPaths(before, after, comparison) : undefined,
    before: exactly(before),
    after: exactly(after),
    count,
  };
}

/** True if the change has bytes that are not UTF-8. */
export function hasRawBytes({ before = '', after = '' }: FoundChange): boolean {
  return !before.isWellFormed() || !after.isWellFormed();
}

/** Records as pages, with a uid each. `isRaw`: whether the record at an index has bytes that are not UTF-8. */
export function recordPages(
  context: PageContext,
  records: readonly object[],
  uids: readonly Buffer[],
  isRaw: (index: number) => boolean = () => false,
): readonly NewPage[] {
  const pages: NewPage[] = [];
  for (let from = 0; from < records.length; from += pageRecordsMax) {
    const to = from + pageRecordsMax;
    // Exact numbers are only for writing: senders parse the body, as after a restart.
    const texts = records.slice(from, to).map((record, index) => {
      const text = JSON.stringify(record);
      return isRaw(from + index) ? unescapedBytes(text) : text;
    });
    const body = losslessBytes(`[${texts.join(',')}]`);
    pages.push(ownPage(context, body, uids.slice(from, to)));
  }
  return pages;
}

/** For writing only: its numbers are their source text. */
function exactly(text: string | undefined): Json | undefined {
  return text === undefined ? undefined : (parseExact(text) as unknown as Json);
}
