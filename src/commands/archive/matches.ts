// The records of an archive whose events pass a filter, such as all records of one person. Commands that erase or copy
// them list them first. Invariant: a record that could not be judged is counted, never passed over in silence.

import { archivedPage } from '../../archive/audit.ts';
import { loggedEntries, type Verifier } from '../../archive/index.ts';
import type { Config } from '../../config/index.ts';
import { type Event, ExportError, errorText, UsageError } from '../../contracts/index.ts';
import { readingOf } from '../../run/index.ts';
import { DecodedPage, normalisersOf } from '../../send/index.ts';
import { counted } from '../../terminal/index.ts';
import { cleanText, compileFilter, timeText } from '../../tools/index.ts';
import type { CommandDeps } from '../shared/command.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { archivesAt } from './given.ts';
import { type RawSpan, readSpanGiven } from './raw.ts';
import { keysFor, notProvenText, trustedArchive } from './trusted.ts';

const textMax = 200;

/** `--where` and `--config` of these commands. */
export const whereOptions = {
  where: {
    value: 'filter',
    about: 'all records whose event matches, such as \'event.actor.user.name == "anna"\' (CEL)',
  },
  config: { short: '-c', value: 'file', about: 'with --where: the config that reads the records' },
} as const;

/** A record that matches. */
export interface RecordMatch {
  /** The archive, of several shards its own. */
  readonly location: string;
  /** Index of the entry of its page. */
  readonly entry: number;
  readonly uid: string;
  readonly stream: string;
  /** The event's time and the time of reading, RFC 3339. */
  readonly time: string | null;
  readonly read_at: string;
  /** The sentence of the event. */
  readonly message: string;
}

/** The records that match. */
export interface Matches {
  readonly found: readonly RecordMatch[];
  /** Events on which the filter failed. */
  readonly unjudged: number;
  /** Pages whose bodies were deleted. */
  readonly pruned: number;
  /** Keys, one of which signed the archive; null: no key is known. */
  readonly trusted: Keys;
}

type Keys = readonly Verifier[] | null;

/** Records to find. */
export interface MatchWishes {
  readonly where: string;
  readonly config: string | undefined;
  /** Span of the time of reading (RFC 3339), its end excluded. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** `--key`: one of these must have signed the archive. Default: the key of the config's sink that writes it. */
  readonly key: readonly string[] | undefined;
}

/**
 * Finds the records, in the order of reading. Reports that no key is known: another process that writes the store could
 * then show foreign uids. Throws a UsageError, and an ExportError if the archive is damaged.
 */
export async function matchesIn(
  location: string,
  wishes: MatchWishes,
  { env, err }: Pick<CommandDeps, 'env' | 'err'>,
): Promise<Matches> {
  const { where, config: file } = wishes;
  if (file === undefined) throw new UsageError('--where: give the config with -c FILE as well');
  const { config } = readConfigToLook(file, env);
  const span = readSpanGiven(wishes);
  const judge = judgeOf(where);
  const trusted = keysFor(location, wishes.key, config);
  if (trusted === null) err(notProvenText);
  const found: RecordMatch[] = [];
  let unjudged = 0;
  let pruned = 0;
  for (const one of await archivesAt(location, env)) {
    for await (const page of pagesOf(one, { config, span, trusted }, env)) {
      if (page === null) {
        pruned += 1;
        continue;
      }
      for (const event of page.events) {
        const verdict = judge(event);
        if (verdict === 'unjudged') unjudged += 1;
        if (verdict === 'matches') found.push(matchOf(one, event, page));
      }
    }
  }
  return { found, unjudged, pruned, trusted };
}

/** Lists them, and reports the records that were not judged. */
export function listMatches(
  { found, unjudged, pruned }: Matches,
  { out, err }: Pick<CommandDeps, 'out' | 'err'>,
): void {
  for (const { uid, time, stream, message } of found) {
    out(cleanText([uid, time ?? 'no time', stream, message].join('  '), textMax + 200));
  }
  if (unjudged > 0) {
    err(
      `not matched: ${counted(unjudged, 'event')} on which the filter failed; test for a field with has(…)`,
    );
  }
  if (pruned > 0) err(`not searched: ${counted(pruned, 'page')} whose bodies were deleted`);
  if (found.length === 0) err('no record of the archive matches');
}

function judgeOf(where: string): (event: Event) => 'matches' | 'differs' | 'unjudged' {
  let hasFailed = false;
  try {
    const passes = compileFilter(where, () => {
      hasFailed = true;
    });
    return (event) => {
      hasFailed = false;
      const isPassed = passes(event);
      if (hasFailed) return 'unjudged';
      return isPassed ? 'matches' : 'differs';
    };
  } catch (error) {
    throw new UsageError(`--where: ${cleanText(errorText(error), textMax)}`);
  }
}

interface MatchedPage {
  readonly entry: number;
  readonly readAt: string;
  readonly events: readonly Event[];
}

/** The events of each page; null: its body was deleted. */
async function* pagesOf(
  location: string,
  given: { readonly config: Config; readonly span: RawSpan; readonly trusted: Keys },
  env: CommandDeps['env'],
): AsyncGenerator<MatchedPage | null> {
  const { config, span, trusted } = given;
  const normaliserOf = normalisersOf(
    Object.entries(config.sources).map(([name, source]) => ({
      name,
      reading: readingOf(source, config),
    })),
  );
  const reader = await trustedArchive(location, trusted, env);
  try {
    for await (const { index, entry } of loggedEntries(reader, reader.head.size)) {
      if (entry.t !== 'page' || entry.kept === 0 || entry.kind === 'answer') continue;
      const at = Date.parse(entry.fetched_at);
      if (at < span.from || at >= span.to) continue;
      const held = await archivedPage(reader, entry, 0);
      yield held === null
        ? null
        : {
            entry: index,
            readAt: entry.fetched_at,
            events: new DecodedPage(held, normaliserOf(held.context)).events,
          };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ExportError('sink_refused', `searching ${location}: ${error.message}`, {
      next: 'The archive is damaged: `npx sluice archive verify` lists every break.',
      cause: error,
    });
  } finally {
    reader.store.close();
  }
}

function matchOf(
  location: string,
  { uid, stream, ocsf }: Event,
  { entry, readAt }: MatchedPage,
): RecordMatch {
  const message = cleanText(ocsf.message ?? ocsf.class_name ?? '', textMax);
  return { location, entry, uid, stream, time: timeText(ocsf.time), read_at: readAt, message };
}

/** The locations of matches, each with its uids. */
export function uidsByLocation(
  found: readonly RecordMatch[],
): ReadonlyMap<string, readonly string[]> {
  const groups = Map.groupBy(found, ({ location }) => location);
  return new Map(
    Array.from(groups, ([location, matches]) => [
      location,
      [...new Set(matches.map(({ uid }) => uid))],
    ]),
  );
}
