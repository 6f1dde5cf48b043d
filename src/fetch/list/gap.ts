// Rows that upstream does not show (HTTP 451). Where rows are counted, reading goes on behind one,
// and the sinks are told of the gap once: the row is known again by the last record before it,
// whose key the checkpoint keeps.

import type { ExportError } from '../../contracts/errors.ts';
import type { Finding } from '../own-pages.ts';
import { keyBytes } from './repeats.ts';
import type { Stage } from './stage.ts';

/** Gaps remembered; one that is forgotten is told again if it is met again. */
const gapsMax = 64;

/** What is known besides the page that stands before the row. */
interface Hidden {
  /** Why it is not shown, in upstream's words. */
  readonly hidden: ExportError;
  /** The stream's name. */
  readonly name: string;
  /** Gaps that were told. */
  readonly told: readonly string[];
}

/** The gap behind a page, and what the checkpoint keeps of it; null where it was told. */
export function gapAt(
  { place, next, pager }: Pick<Stage, 'place' | 'next' | 'pager'>,
  { hidden, name, told: reported }: Hidden,
): { readonly finding: Finding; readonly gaps: string[] } | null {
  const { resume, overlap } = pager.resume(place, next);
  const before = Buffer.from(overlap ?? '', 'base64')
    .subarray(-keyBytes)
    .toString('base64');
  const rows = next?.by === 'offset' && resume.by === 'offset' ? next.offset - resume.offset : 0;
  const gap = `${before}+${rows}`;
  if (reported.includes(gap)) return null;
  const { trace_id: traceId, request_id: requestId } = hidden.details;
  const finding: Finding = {
    condition: 'source.gap',
    message: `upstream does not show one record of ${name} (HTTP 451); sluice skips it and continues after it`,
    details: {
      ...(traceId === undefined ? {} : { trace_id: traceId }),
      ...(requestId === undefined ? {} : { request_id: requestId }),
    },
  };
  return { finding, gaps: [...reported, gap].slice(-gapsMax) };
}
