// `sluice archive verify`: proves an archive offline, with nothing but its objects and a key. Its
// exit code is the verdict, so that a script can rely on it: 0 whole, 1 broken, 2 no verdict since
// it cannot be read, 3 whole with open gaps.

import { writeFileSync } from 'node:fs';
import { type Report, type VerifyOptions, verifyArchive } from '../../archive/audit.ts';
import { parseCheckpoint, parseNote } from '../../archive/index.ts';
import { ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { type CommandDeps, defineCommand, failureText } from '../shared/command.ts';
import { durationTyped, timeTyped } from '../shared/typed.ts';
import {
  archivesAt,
  authoritiesGiven,
  bytesGiven,
  keyOption,
  keysGiven,
  locationArgument,
  openArchive,
  shardAt,
  witnessesGiven,
} from './given.ts';
import { reportHtml } from './report-html.ts';
import { reportJson } from './report-json.ts';
import { reportLines } from './report-lines.ts';
import { writeMetrics } from './report-metrics.ts';
import { missingShards, twinsAmong, withShards, withTwin } from './verify-shards.ts';

/** Proves an archive. */
export const verify = defineCommand({
  name: 'verify',
  about: 'prove that an archive is whole, offline, with a key only',
  arguments: { location: locationArgument },
  options: {
    key: keyOption,
    since: {
      value: 'file',
      about:
        'an older checkpoint that was stored elsewhere: a signed note, or an event that reports one',
    },
    tsa: {
      value: 'file',
      about: 'certificates of time-stamp authorities (PEM); at least one valid stamp is required',
    },
    witness: {
      value: 'vkey',
      about: 'a trusted witness, or a file of witnesses, to check cosignatures',
      several: true,
    },
    quorum: { value: 'number', about: 'number of witnesses that must have cosigned; default: all' },
    seenWithin: {
      value: 'duration',
      about:
        'maximum age of the newest time stamp or cosignature, such as 26h; an older one can mean a restored older state',
    },
    from: { value: 'time', about: 'bodies of pages read from this time on only (RFC 3339)' },
    to: { value: 'time', about: 'bodies of pages read before this time only' },
    nothingGone: { about: 'report each removed body (pruned, erased) as a break' },
    json: { about: 'the report as JSON' },
    html: { value: 'file', about: 'the report as a page as well, with a timeline of each stream' },
    metrics: { value: 'file', about: 'the verdict as metrics as well, for a schedule (*.prom)' },
  },
  more: `If the location has the archives of several shards, each is verified.
Exit code: 0 whole, 1 broken, 2 unreadable, 3 whole with gaps that sluice reported itself.
With --from or --to, the tree and the chain of every stream are still proven as a whole.`,
  async run({ location, key, json, html, metrics, ...asked }, { out, err, env }) {
    const { from, to, since, seenWithin, tsa, witness, quorum, nothingGone } = asked;
    const options = {
      trusted: keysGiven(key),
      ...(nothingGone === true ? { nothingGone } : {}),
      ...(since === undefined ? {} : { since: noteIn(bytesGiven('since', since)) }),
      ...(tsa === undefined ? {} : { authorities: authoritiesGiven(tsa) }),
      ...(witness === undefined ? {} : { witnesses: witnessesGiven(witness, quorum) }),
      ...(seenWithin === undefined
        ? {}
        : { seenSince: Date.now() - durationTyped('seen-within', seenWithin) }),
      ...(from === undefined ? {} : { from: timeTyped('from', from) }),
      ...(to === undefined ? {} : { to: timeTyped('to', to) }),
    };
    const locations = await archivesAt(location, env);
    if (locations.length > 1) refuseOfSeveral(locations, { since, html, metrics });
    const judged = new Map<string, Report | null>();
    const judge = (one: string) => verified(one, options, { env, err });
    for (const one of locations) judged.set(one, await judge(one));
    const twins = await twinsAmong(locations, env);
    const all = await withShards(location, judged, { env, judge, trusted: options.trusted });
    for (const place of missingShards(location, all)) {
      err(`${place} is not there: its shard has archived nothing, or its archive is gone`);
    }
    const isUnread = [...all.values()].includes(null);
    const reports = [...all].flatMap(([one, report]) =>
      report === null ? [] : [withTwin(report, twins.get(one))],
    );
    const [only] = reports;
    if (locations.length === 1 && only !== undefined) {
      if (html !== undefined)
        written('html', () => writeFileSync(html, reportHtml(only), { mode: 0o640 }));
      if (metrics !== undefined) written('metrics', () => writeMetrics(metrics, only, Date.now()));
    }
    if (json) {
      const reported = reports.map((report) => reportJson(report));
      out(JSON.stringify(locations.length === 1 ? (reported[0] ?? null) : reported, null, 2));
    } else for (const line of reports.flatMap((report) => reportLines(report))) out(line);
    if (reports.some(({ breaks }) => breaks.length > 0)) return 1;
    if (isUnread) return 2;
    return reports.some(({ gaps }) => gaps.some(({ isOpen }) => isOpen)) ? 3 : 0;
  },
});

/** The result for one archive; null: it cannot be read, and the reason is on `err`. */
async function verified(
  location: string,
  options: Omit<VerifyOptions, 'progress'>,
  { env, err }: Pick<CommandDeps, 'env' | 'err'>,
): Promise<Report | null> {
  const bar = progressBar(process.stderr);
  try {
    const reader = await openArchive(location, env);
    const shard = shardAt(location);
    return await verifyArchive(reader, { ...options, shard, progress: bar.show });
  } catch (error) {
    bar.clear();
    if (!(error instanceof ExportError)) throw error;
    err(failureText(error));
    return null;
  } finally {
    bar.clear();
  }
}

/** Throws a UsageError for options that fit one archive only. */
function refuseOfSeveral(
  locations: readonly string[],
  given: Readonly<Record<string, string | undefined>>,
): void {
  const [option] = Object.entries(given).find(([, value]) => value !== undefined) ?? [];
  if (option === undefined) return;
  throw new UsageError(
    `--${option} is of one archive, and there are ${locations.length}: give the location of each, such as ${locations[0]}`,
  );
}

function written(option: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw new UsageError(`--${option}: ${errorText(error)}`);
  }
}

/** A note as it is, or as a sink received it within an event. Throws a UsageError. */
function noteIn(bytes: Buffer): Uint8Array {
  try {
    const note = bytes[0] === brace ? Buffer.from(textWithin(JSON.parse(bytes.toString()))) : bytes;
    parseCheckpoint(parseNote(note).text);
    return note;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new UsageError(`--since: neither a signed checkpoint nor an event with one`);
  }
}

/** The text of the note within a value, however deep; empty where there is none. */
function textWithin(value: unknown): string {
  const left = [value];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one === 'string' && one.includes('\n\n— ')) return one;
    if (typeof one !== 'object' || one === null) continue;
    for (const within of Object.values(one)) left.push(within);
  }
  return '';
}

const brace = 0x7b;
const redrawMs = 100;
/** ECMA-48: to the line's start, and nothing on it. */
const eraseLine = '\r\u001b[K';

/** A progress bar, redrawn in place on a terminal. */
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
