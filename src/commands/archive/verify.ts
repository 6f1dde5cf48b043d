// `sluice archive verify`: proves an archive offline, with nothing but its objects and a key. Its
// exit code is the verdict, so that a script can rely on it: 0 whole, 1 broken, 2 no verdict since
// it cannot be read, 3 whole with open gaps.

import { writeFileSync } from 'node:fs';
import { parseCheckpoint } from '../../archive/checkpoint.ts';
import { manifestPath } from '../../archive/layout.ts';
import { parseNote } from '../../archive/note.ts';
import { readSmall } from '../../archive/small-objects.ts';
import type { Report } from '../../archive/verify/findings.ts';
import { type VerifyOptions, verifyArchive } from '../../archive/verify/verify.ts';
import { ExportError, errorText, UsageError } from '../../contracts/errors.ts';
import { defineCommand, failureText, type Means } from '../shared/command.ts';
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

/** Proves an archive. */
export const verify = defineCommand({
  name: 'verify',
  about: 'prove that an archive is whole, offline, with nothing but a key',
  arguments: { location: locationArgument },
  options: {
    key: keyOption,
    since: {
      value: 'file',
      about: 'an older checkpoint from elsewhere: a signed note, or an event that tells of one',
    },
    tsa: {
      value: 'file',
      about: 'certificates of authorities (PEM) by which time stamps are judged; one has to stand',
    },
    witness: {
      value: 'vkey',
      about: 'a witness that you trust, or a file of them, by which cosignatures are judged',
      several: true,
    },
    quorum: { value: 'number', about: 'so many of them have to have cosigned; left out: all' },
    seenWithin: {
      value: 'duration',
      about:
        'a time stamp or cosignature has to be so new, such as 26h: else an older state may be there',
    },
    from: { value: 'time', about: 'bodies of pages read from this time on only (RFC 3339)' },
    to: { value: 'time', about: 'bodies of pages read before this time only' },
    nothingGone: { about: 'report each removed body (pruned, erased) as a break' },
    json: { about: 'the report as JSON' },
    html: { value: 'file', about: 'the report as a page as well, with a timeline of each stream' },
    metrics: { value: 'file', about: 'the verdict as metrics as well, for a schedule (*.prom)' },
  },
  more: `Where the archives of several shards lie below the location, each is verified.
Exit code: 0 whole, 1 broken, 2 it cannot be read, 3 whole with gaps that sluice itself has told of.
The tree and the chain of every stream are proven as a whole also where --from or --to is given.`,
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
    for (const place of missingShards(location, locations)) {
      err(`${place} is not there: its shard has archived nothing, or its archive is gone`);
    }
    const reports: Report[] = [];
    let isUnread = false;
    const twins = await twinsAmong(locations, env);
    for (const one of locations) {
      const report = await verified(one, options, { env, err });
      if (report === null) isUnread = true;
      else reports.push(withTwin(report, twins.get(one)));
    }
    const [only] = reports;
    if (locations.length === 1 && only !== undefined) {
      if (html !== undefined)
        written('html', () => writeFileSync(html, reportHtml(only), { mode: 0o640 }));
      if (metrics !== undefined) written('metrics', () => writeMetrics(metrics, only, Date.now()));
    }
    if (json) {
      const told = reports.map((report) => reportJson(report));
      out(JSON.stringify(locations.length === 1 ? told[0] : told, null, 2));
    } else for (const line of reports.flatMap((report) => reportLines(report))) out(line);
    if (reports.some(({ breaks }) => breaks.length > 0)) return 1;
    if (isUnread) return 2;
    return reports.some(({ gaps }) => gaps.some(({ isOpen }) => isOpen)) ? 3 : 0;
  },
});

/** What one archive turns out to be; null: it cannot be read, which `err` is told. */
async function verified(
  location: string,
  options: Omit<VerifyOptions, 'progress'>,
  { env, err }: Pick<Means, 'env' | 'err'>,
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

/**
 * Places whose archive.json is that of a place before them, which the map names. Each log has its own salt there, so one
 * of the two is a copy and has come in the place of another log; names of logs do not show it where they are alike.
 */
async function twinsAmong(
  locations: readonly string[],
  env: Means['env'],
): Promise<ReadonlyMap<string, string>> {
  const twins = new Map<string, string>();
  if (locations.length === 1) return twins;
  const known = new Map<string, string>();
  for (const one of locations) {
    const { store } = await openArchive(one, env);
    try {
      const found = await readSmall(store, manifestPath);
      const text = Buffer.from(found?.body ?? []).toString('base64');
      const other = known.get(text);
      if (other === undefined) known.set(text, one);
      else twins.set(one, other);
    } catch (error) {
      // The verdict on this place says why it cannot be read.
      if (!(error instanceof ExportError)) throw error;
    } finally {
      store.close();
    }
  }
  return twins;
}

function withTwin(report: Report, other: string | undefined): Report {
  if (other === undefined) return report;
  const what = `the log of ${other} is here once more, in the place of another`;
  const twin = { index: null, stream: null, seq: null, object: manifestPath, what };
  return { ...report, breaks: [twin, ...report.breaks] };
}

/** Places of shards below the highest one that have no archive. */
function missingShards(location: string, locations: readonly string[]): readonly string[] {
  const last = locations.at(-1) ?? location;
  const highest = last === location ? 0 : (shardAt(last) ?? 0);
  const base = last.replace(/\d+$/, '');
  return Array.from({ length: highest }, (_, i) => `${base}${i}`).filter(
    (place) => !locations.includes(place),
  );
}

/** Throws a UsageError for what is of one archive only. */
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

/** A note as it is, or as it stands in an event that some sink was sent. Throws a UsageError. */
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
