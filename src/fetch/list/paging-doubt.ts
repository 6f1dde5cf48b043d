// A part is never taken for the whole: where the paging as configured has come to its end, and
// upstream shows that there is more, that is an error of the stream, told to the sinks as
// `source.paging_suspected` once until it changes. What was read goes on its way meanwhile. A sign
// on the last page is judged whenever a walk ends there; the list's length only where a walk has
// passed all of it, since rows come and go meanwhile.

import type { Failure } from '../../contracts/answer.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { ListEndpoint } from '../../contracts/source.ts';
import type { Finding } from '../own-pages.ts';
import type { ListCheckpoint } from './checkpoint.ts';
import { type MoreSign, nameOfPlace, type Page, withinWindow } from './page.ts';

/** What makes it doubtful that all was read. */
export type Doubt = NonNullable<ListCheckpoint['told']['suspected']>;

/** What the ends that one poll has met say: undefined: nothing; null: that all is well. */
export interface EndVerdicts {
  /** The last page. */
  readonly page?: Doubt | null;
  /** A walk through the whole list. */
  readonly whole?: Doubt | null;
}

/** The sign of a list that is longer than what was read. */
export const totalSign = 'total';

const thenAnew = 'the list is then read again from its start, without repeats';

/** What ends a walk that gets no further than a part. */
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

/** By what the last page shows. */
export function doubtOfPage(
  { pagination: { style } }: ListEndpoint,
  { sign, likely }: MoreSign,
): Doubt {
  return doubt(sign, `${sign} shows more, to which paging of style ${style} does not lead`, {
    likely,
    isWhole: false,
  });
}

/** By the list's length. */
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

/** By a first page that comes again behind itself. */
export function doubtOfPlace({ pagination }: ListEndpoint, likely: MoreSign['likely']): Doubt {
  const name = nameOfPlace(pagination);
  const said = `upstream answers with the same page whatever the ${name}`;
  const found = doubt(`${name} not heeded`, said, { likely, isWhole: true });
  if (likely !== null || name === 'address') return found;
  return {
    ...found,
    next: `Look whether pagination.${name}_param is its name at upstream; ${thenAnew}.`,
  };
}

function doubt(
  sign: string,
  said: string,
  { likely, isWhole }: { likely: MoreSign['likely']; isWhole: boolean },
): Doubt {
  const names = Object.entries(likely ?? {}).map(([name, value]) => `${name}: ${value}`);
  const setting = `pagination: { ${names.join(', ')} }`;
  const unknown = `Look in upstream's document how it is paged, and set pagination of the source; ${thenAnew}.`;
  const next = `Most likely it is ${setting}: ${thenAnew}.`;
  return {
    sign,
    said,
    likely: likely === null ? null : setting,
    isWhole,
    next: likely === null ? unknown : next,
  };
}

/** By the first page alone, which may hold fewer records than it could. */
export function doubtOfFirst(stream: ListEndpoint, { next, more, ...page }: Page): Doubt | null {
  const { style } = withinWindow(stream.pagination);
  if (style === 'offset' || style === 'page' || typeof next === 'string') return null;
  if (more !== null) return doubtOfPage(stream, more);
  const { length } = page.records;
  const total = page.total ?? 0;
  // Rows are counted then.
  if (style === 'shown') return null;
  return total > length ? doubtOfTotal(stream, total, length) : null;
}

/** What is doubted from now on. */
export function doubtAfter(before: Doubt | null, { page, whole }: EndVerdicts): Doubt | null {
  const found = page ?? whole ?? null;
  // The numbers may change with each poll, and are not told again for it.
  if (found !== null) return found.sign === before?.sign ? before : found;
  const isCleared = before?.isWhole === true ? whole === null : page === null;
  return isCleared ? null : before;
}

/** As the stream's error. */
export function doubtError(
  { name }: ListEndpoint,
  { sign, said, likely, next }: Doubt,
): ExportError {
  return new ExportError('paging_suspected', `reading ${name}: ${said}`, {
    next,
    details: { sign, ...(likely === null ? {} : { likely }) },
  });
}

/** As its sinks are told. */
export function doubtFinding({ name }: ListEndpoint, { sign, said, likely, next }: Doubt): Finding {
  return {
    condition: 'source.paging_suspected',
    message: `only a part of ${name} may be read: ${said}`,
    details: { sign, ...(likely === null ? {} : { likely }), next },
  };
}
