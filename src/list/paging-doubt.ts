// The check that a part of a list is never taken for the whole. If the configured paging ends and upstream shows more
// rows, the stream has an error, and the sinks receive `source.paging_suspected` once until it changes. Records that
// were read are delivered as usual. A sign on the last page is judged each time a walk ends there. The length of the
// list is judged only after a walk through the whole list, because rows come and go.

import { ExportError, type Failure, type ListEndpoint } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { type MoreSign, nameOfPosition, type Page, withinWindow } from './page.ts';

/** The reason to doubt that everything was read. */
export type Doubt = NonNullable<ListCheckpoint['told']['suspected']>;

/** The verdicts of one poll. undefined: no verdict; null: no doubt. */
export interface EndVerdicts {
  /** From the last page. */
  readonly page?: Doubt | null;
  /** From a walk through the whole list. */
  readonly whole?: Doubt | null;
}

/** The sign of a list that is longer than the rows read. */
export const totalSign = 'total';

const thenReread = 'the list is then read again from its start, without repeats';

/** The failure that ends a walk after only a part of the list. */
export interface PartRead extends Failure {
  readonly doubt: Doubt;
}

export function partRead(stream: ListEndpoint, doubt: Doubt): PartRead {
  return { outcome: 'retry', isDefinite: true, cause: doubtError(stream, doubt), doubt };
}

/** True for that failure. */
export function isPartRead(failure: Failure): failure is PartRead {
  return 'doubt' in failure;
}

/** The doubt raised by the last page. */
export function doubtOfPage(
  { pagination: { style } }: ListEndpoint,
  { sign, likely }: MoreSign,
): Doubt {
  return doubt(sign, `${sign} shows more, to which paging of style ${style} does not lead`, {
    likely,
    isWhole: false,
  });
}

/** The doubt raised by the length of the list. */
export function doubtOfTotal({ pagination }: ListEndpoint, total: number, read: number): Doubt {
  const { style } = pagination;
  const reported = `the list's length is ${total}, and it ends after ${read}`;
  if (style !== 'offset' && style !== 'page' && style !== 'window') {
    return doubt(totalSign, reported, { likely: { style: 'offset' }, isWhole: true });
  }
  return {
    ...doubt(totalSign, reported, { likely: null, isWhole: true }),
    next: `${style === 'window' ? 'Choose a shorter pagination.step' : 'Narrow the list with params, or read it newest first with order_by and order'}. If its length counts something else, set pagination.total to null.`,
  };
}

/** The doubt raised by a first page that repeats as the next page. */
export function doubtOfPosition({ pagination }: ListEndpoint, likely: MoreSign['likely']): Doubt {
  const name = nameOfPosition(pagination);
  const said = `upstream answers with the same page whatever the ${name}`;
  const found = doubt(`${name} not heeded`, said, { likely, isWhole: true });
  if (likely !== null || name === 'address') return found;
  return {
    ...found,
    next: `Look whether pagination.${name}_param is its name at upstream; ${thenReread}.`,
  };
}

function doubt(
  sign: string,
  said: string,
  { likely, isWhole }: { likely: MoreSign['likely']; isWhole: boolean },
): Doubt {
  const names = Object.entries(likely ?? {}).map(([name, value]) => `${name}: ${value}`);
  const setting = `pagination: { ${names.join(', ')} }`;
  const unknown = `Look in upstream's document how it is paged, and set pagination of the source; ${thenReread}.`;
  const next = `Most likely it is ${setting}: ${thenReread}.`;
  return {
    sign,
    said,
    likely: likely === null ? null : setting,
    isWhole,
    next: likely === null ? unknown : next,
  };
}

/** The doubt raised by the first page alone, which may hold fewer records than it could. */
export function doubtOfFirst(stream: ListEndpoint, { next, more, ...page }: Page): Doubt | null {
  const { style } = withinWindow(stream.pagination);
  if (style === 'offset' || style === 'page' || typeof next === 'string') return null;
  if (more !== null) return doubtOfPage(stream, more);
  const { length } = page.records;
  const total = page.total ?? 0;
  // With this style, rows are counted then.
  if (style === 'shown') return null;
  return total > length ? doubtOfTotal(stream, total, length) : null;
}

/** The doubt from now on. */
export function doubtAfter(before: Doubt | null, { page, whole }: EndVerdicts): Doubt | null {
  const found = page ?? whole ?? null;
  // The numbers may change with each poll and are not reported again.
  if (found !== null) return found.sign === before?.sign ? before : found;
  const isCleared = before?.isWhole === true ? whole === null : page === null;
  return isCleared ? null : before;
}

/** The doubt as the stream's error. */
export function doubtError(
  { name }: ListEndpoint,
  { sign, said, likely, next }: Doubt,
): ExportError {
  return new ExportError('paging_suspected', `reading ${name}: ${said}`, {
    next,
    details: { sign, ...(likely === null ? {} : { likely }) },
  });
}

/** The doubt as the condition for the sinks. */
export function doubtFinding({ name }: ListEndpoint, { sign, said, likely, next }: Doubt): Finding {
  return {
    condition: 'source.paging_suspected',
    message: `only a part of ${name} may be read: ${said}`,
    details: { sign, ...(likely === null ? {} : { likely }), next },
  };
}
