// A verification as JSON. Scripts rely on its keys.

import type { Report, WitnessedSize } from '../../archive/audit.ts';
import { timeText } from '../../tools/index.ts';

/** The result as one word. */
export function reportVerdict({ breaks, gaps }: Report): 'whole' | 'broken' | 'open_gaps' {
  if (breaks.length > 0) return 'broken';
  return gaps.some(({ isOpen }) => isOpen) ? 'open_gaps' : 'whole';
}

/** The report as JSON. */
export function reportJson(report: Report): object {
  const { place, origin, size, root, checkpoints, pages, records, remarks } = report;
  return {
    verdict: reportVerdict(report),
    ...{ location: place, origin, size, root },
    signed_by: report.signedBy.map(({ vkey }) => vkey),
    ...{ checkpoints, stamps: report.stamps, stamp: seenJson(report.stamp) },
    ...{ cosigned: report.cosigned, cosignature: seenJson(report.cosignature), pages, records },
    body_bytes: report.bodyBytes,
    breaks: report.breaks,
    breaks_omitted: report.breaksOmitted,
    gaps: report.gaps.map(({ isOpen, ...gap }) => ({ ...gap, open: isOpen })),
    erasures: report.erasures,
    removed: report.removed,
    strays: report.strays,
    configs: report.configs,
    successions: report.successions,
    compared: report.compared,
    streams: report.streams.map(({ days, ...stream }) => ({
      ...stream,
      days: [...days].map(([day, counts]) => ({ day, ...counts })),
    })),
    remarks,
  };
}

function seenJson(seen: WitnessedSize | null): object | null {
  if (seen === null) return null;
  const { size, at, by, until } = seen;
  return { size, at: timeText(at), by, ...(until && { valid_until: timeText(until) }) };
}
