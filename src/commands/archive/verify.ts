// `sluice archive verify`: proves an archive offline, with nothing but its objects and a key. Its
// exit code is the verdict, so that a script can rely on it: 0 whole, 1 broken, 2 no verdict since
// it cannot be read, 3 whole with open gaps.

import { writeFileSync } from 'node:fs';
import type { Report } from '../../archive/verify/findings.ts';
import { verifyArchive } from '../../archive/verify/verify.ts';
import { ExportError, errorText, UsageError } from '../../contracts/errors.ts';
import { defineCommand, failureText } from '../shared/command.ts';
import { timeTyped } from '../shared/typed.ts';
import { bytesGiven, keyOption, keysGiven, locationArgument, openArchive } from './given.ts';
import { reportHtml } from './report-html.ts';
import { reportJson } from './report-json.ts';
import { reportLines } from './report-lines.ts';

/** Proves an archive. */
export const verify = defineCommand({
  name: 'verify',
  about: 'prove that an archive is whole, offline, with nothing but a key',
  arguments: { location: locationArgument },
  options: {
    key: keyOption,
    since: {
      value: 'file',
      about: 'an older checkpoint from elsewhere, of which this has to be the continuation',
    },
    from: { value: 'time', about: 'bodies of pages read from this time on only (RFC 3339)' },
    to: { value: 'time', about: 'bodies of pages read before this time only' },
    json: { about: 'the report as JSON' },
    html: { value: 'file', about: 'the report as a page as well, with a timeline of each stream' },
  },
  more: `Exit code: 0 whole, 1 broken, 2 it cannot be read, 3 whole with gaps that sluice itself has told of.
The tree and the chain of every stream are proven as a whole also where --from or --to is given.`,
  async run({ location, key, since, from, to, json, html }, { out, err }) {
    const options = {
      trusted: keysGiven(key),
      ...(since === undefined ? {} : { since: bytesGiven('since', since) }),
      ...(from === undefined ? {} : { from: timeTyped('from', from) }),
      ...(to === undefined ? {} : { to: timeTyped('to', to) }),
    };
    const bar = progressBar(process.stderr);
    let report: Report;
    try {
      report = await verifyArchive(await openArchive(location), { ...options, progress: bar.show });
    } catch (error) {
      bar.clear();
      if (!(error instanceof ExportError)) throw error;
      err(failureText(error));
      return 2;
    }
    bar.clear();
    if (html !== undefined) writePage(html, report);
    if (json) out(JSON.stringify(reportJson(report), null, 2));
    else for (const line of reportLines(report)) out(line);
    if (report.breaks.length > 0) return 1;
    return report.gaps.some(({ isOpen }) => isOpen) ? 3 : 0;
  },
});

function writePage(file: string, report: Report): void {
  try {
    writeFileSync(file, reportHtml(report));
  } catch (error) {
    throw new UsageError(`--html: ${errorText(error)}`);
  }
}

const redrawMs = 100;
/** ECMA-48: to the line's start, and nothing on it. */
const eraseLine = '\r\u001b[K';

/** How far it has come, in place, where somebody looks on. */
function progressBar(stderr: NodeJS.WriteStream) {
  let drawnAt = 0;
  return {
    show(done: number, of: number): void {
      if (stderr.isTTY !== true || performance.now() - drawnAt < redrawMs) return;
      drawnAt = performance.now();
      stderr.write(`${eraseLine}${Math.floor((done * 100) / of)}%  ${done} of ${of} entries`);
    },
    clear(): void {
      if (drawnAt > 0) stderr.write(eraseLine);
    },
  };
}
