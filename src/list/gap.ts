// Rows that upstream hides (HTTP 451). In an offset list, reading continues after the hidden row, and the sinks receive one
// gap condition. The gap is identified by the key of the last record before it, which the checkpoint stores.

import type { ExportError } from '../contracts/index.ts';
import type { Finding } from '../poll/index.ts';
import { keyBytes } from './repeats.ts';
import type { Stage } from './stage.ts';

/** Limit of remembered gaps. A forgotten gap is reported again when it is seen again. */
const gapsMax = 64;

/** Facts about the row, apart from the page before it. */
interface Hidden {
  /** Why the row is hidden, from upstream's response. */
  readonly hidden: ExportError;
  /** The stream's name. */
  readonly name: string;
  /** Gaps that were reported. */
  readonly reported: readonly string[];
}

/** The gap after a page, and the checkpoint's new list of gaps; null: it was reported before. */
export function gapAt(
  { position, next, pager }: Pick<Stage, 'position' | 'next' | 'pager'>,
  { hidden, name, reported }: Hidden,
): { readonly finding: Finding; readonly gaps: string[] } | null {
  const { resume, overlap } = pager.resume(position, next);
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
