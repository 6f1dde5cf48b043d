// A verification as a file of metrics (OpenMetrics' text form, as node_exporter's textfile collector reads it), for one
// that runs by a schedule: an alert needs nothing else of sluice.

import { renameSync, writeFileSync } from 'node:fs';
import type { Report } from '../../archive/audit.ts';
import { reportVerdict } from './report-json.ts';

/** Writes the metrics in one step, so that no collector reads half of them. */
export function writeMetrics(file: string, report: Report, now: number): void {
  const beside = `${file}.${process.pid}.tmp`;
  writeFileSync(beside, metricsText(report, now));
  renameSync(beside, file);
}

function metricsText(report: Report, now: number): string {
  const { origin, size, breaks, breaksOmitted, gaps } = report;
  const label = origin.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n');
  const values = {
    sluice_archive_broken: [reportVerdict(report) === 'broken' ? 1 : 0, '1: something is broken'],
    sluice_archive_breaks: [breaks.length + breaksOmitted, 'breaks'],
    sluice_archive_open_gaps: [
      gaps.filter(({ isOpen }) => isOpen).length,
      'open gaps that were reported',
    ],
    sluice_archive_entries: [size, 'entries under the newest checkpoint'],
    sluice_archive_verified_timestamp_seconds: [now / 1_000, 'when the verification ended'],
  } as const;
  return Object.entries(values)
    .map(
      ([name, [value, about]]) =>
        `# HELP ${name} ${about}\n# TYPE ${name} gauge\n${name}{origin="${label}"} ${value}\n`,
    )
    .join('');
}
