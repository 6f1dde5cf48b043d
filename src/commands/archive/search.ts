// `sluice archive search`: writes events of an archive to stdout, without a database. Events come from the archive's
// lake; only files that may match are read. Events newer than the lake come from the pages, if a config describes their
// records. Invariants: every part that was not searched is reported; every event that is shown belongs to a page or
// object that the checkpoint proves.

import {
  archivedPage,
  enteredBytes,
  enteredLake,
  indexBehind,
  lakeEvents,
  type PlaceInSpool,
} from '../../archive/audit.ts';
import { loggedEntries, type PageEntry, type ProvenReader } from '../../archive/index.ts';
import { type Config, formats } from '../../config/index.ts';
import {
  type Event,
  ExportError,
  type OcsfEvent,
  UsageError,
  visibleLines,
} from '../../contracts/index.ts';
import { readingOf } from '../../run/index.ts';
import { textFormat, usualChoice } from '../../run/process.ts';
import { DecodedPage, normalisersOf } from '../../send/index.ts';
import { counted } from '../../terminal/index.ts';
import { type Filter, valuesNeeded } from '../../tools/index.ts';
import { type CommandDeps, defineCommand, type ExitCode } from '../shared/command.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { type AskedEvents, askedOptions, eventsAsked } from './asked-events.ts';
import { locationArgument } from './given.ts';
import { drained, readSpanGiven, showRaw } from './raw.ts';
import { keysFor, notProvenText, trustedArchive, trustedKeyOption } from './trusted.ts';

const lineFormats = formats.filter(({ shape }) => shape === 'lines' || shape === 'json');

/** Finds events. */
export const search = defineCommand({
  name: 'search',
  about: 'show events of an archive that pass a filter, without a database',
  arguments: { location: locationArgument },
  options: {
    ...askedOptions,
    format: {
      value: 'type',
      about: 'output format of events; default: json',
      choices: lineFormats.map(({ type }) => type),
    },
    config: {
      short: '-c',
      value: 'file',
      about: 'config to read pages that are not in the lake yet',
    },
    key: trustedKeyOption,
    raw: { about: 'records as upstream sent them, one a line, from the pages; needs no lake' },
    stream: { value: 'name', about: 'with --raw: records of this stream only' },
  },
  more: `Reads events from the lake of the archive. Class and times skip objects that cannot match; without a known key statistics and
bloom filters skip more. Events newer than the lake, and all events if there is no lake, are read from the pages with the sources of --config.
Events on which the filter fails are not shown. The order is by object, and by time within an object.
With --raw, records come in the order in which they were read, and --from and --to are the time of reading.
Each event or record is proven by the newest checkpoint of the archive, which --key or the key in --config must have signed.
If neither key is known, a warning says that the signature was not checked.
Exit code: 0 also if nothing matches; 1 if something is not proven, or if there is no lake and neither --raw nor --config is
given.`,
  async run({ location, raw, stream, key, ...asking }, deps) {
    if (raw === true) return await searchRaw(location, key, { stream, ...asking }, deps);
    const { format = 'json', config, ...given } = asking;
    if (stream !== undefined)
      throw new UsageError('--stream: it is for --raw; use --where instead');
    const asked = eventsAsked(given);
    const { where, passes } = asked;
    const known = config === undefined ? null : readConfigToLook(config, deps.env).config;
    const trusted = keysFor(location, key, known);
    if (trusted === null) deps.err(notProvenText);
    const reader = await trustedArchive(location, trusted, deps.env);
    const show = shower(format, deps);
    try {
      const values = where === undefined ? {} : valuesNeeded(where);
      const lake = await enteredLake(reader);
      const reading = {
        ...{ store: reader.store, objects: lake.objects, skipsNothing: trusted !== null },
        whole: (name: string) => enteredBytes(reader, lake, name),
      };
      for await (const event of lakeEvents(reading, { ...asked, values })) {
        await show(eventOf(event), passes);
        if (deps.unread.aborted) return 0;
      }
      const pages = pagesBehind(reader, lake.place, asked);
      if (known === null) return await reportUnread(pages, lake.place !== null, deps);
      await showPages(pages, reader, { known, deps, shown: (event) => show(event, passes) });
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `searching ${location}: ${error.message}`, {
        next: '`npx sluice archive verify` lists the damage. What was shown before it is proven.',
        cause: error,
      });
    } finally {
      reader.store.close();
    }
  },
});

/** Reports the parts that were not searched, and how to search them; returns the exit code. */
async function reportUnread(
  unread: AsyncIterable<PageEntry>,
  hasLake: boolean,
  { err }: CommandDeps,
): Promise<ExitCode> {
  let pages = 0;
  for await (const _ of unread) pages += 1;
  if (pages === 0) return 0;
  if (hasLake) {
    err(
      `not looked at: ${counted(pages, 'page')} that are not in the lake yet; give --config to read them`,
    );
    return 0;
  }
  err(`nothing was searched: the archive has no lake, and ${counted(pages, 'page')} with events
  Give --raw to see the records as upstream sent them, or -c CONFIG to see the events.`);
  return 1;
}

/** Shows the events of pages, as the sources of a config read them. */
async function showPages(
  pages: AsyncIterable<PageEntry>,
  reader: ProvenReader,
  by: {
    readonly known: Config;
    readonly deps: CommandDeps;
    readonly shown: (event: Event) => Promise<void>;
  },
): Promise<void> {
  const { known, deps, shown } = by;
  const normaliserOf = normalisersOf(
    Object.entries(known.sources).map(([name, source]) => ({
      name,
      reading: readingOf(source, known),
    })),
  );
  let pruned = 0;
  for await (const entry of pages) {
    const held = await archivedPage(reader, entry, 0);
    if (held === null) {
      pruned += 1;
      continue;
    }
    const { events } = new DecodedPage(held, normaliserOf(held.context));
    for (const event of events) await shown(event);
    if (deps.unread.aborted) return;
  }
  if (pruned > 0) deps.err(`skipped: ${counted(pruned, 'page')} whose bodies were deleted`);
}

/** With --raw no event is made, so a filter and a format have nothing to work on. */
async function searchRaw(
  location: string,
  key: readonly string[] | undefined,
  given: Readonly<Record<string, string | undefined>>,
  deps: CommandDeps,
): Promise<ExitCode> {
  const { stream, from, to, ...others } = given;
  const [wrong] = Object.entries(others).find(([, value]) => value !== undefined) ?? [];
  if (wrong !== undefined) {
    throw new UsageError(`--${wrong}: it is for events, and --raw shows records; give one of both`);
  }
  const span = readSpanGiven({ from, to });
  const trusted = keysFor(location, key, null);
  if (trusted === null) deps.err(notProvenText);
  const wishes = { ...span, trusted, ...(stream === undefined ? {} : { stream }) };
  return await showRaw(location, wishes, deps);
}

/** Entries of pages with events that the lake does not have yet. */
async function* pagesBehind(
  reader: ProvenReader,
  place: PlaceInSpool | null,
  asked: AskedEvents,
): AsyncGenerator<PageEntry> {
  const { size } = reader.head;
  const first = place === null ? 0 : await indexBehind(reader, size, place);
  const [epoch, next] = place ?? [0, 0];
  for await (const { entry } of loggedEntries(reader, size, first)) {
    if (entry.t !== 'page' || entry.kept === 0) continue;
    const [at, until] = entry.place;
    const isBehind = at > epoch || (at === epoch && until > next);
    if (isBehind && asked.mayBeIn(entry)) yield entry;
  }
}

/** Events of a lake have no record and no stream any more; no format that is shown needs them. */
function eventOf(ocsf: OcsfEvent): Event {
  const {
    uid,
    log_name: source = '',
    tenant_uid: company,
    logged_time: fetchedAt = 0,
  } = ocsf.metadata;
  const stream = company === undefined ? source : `${source}/${company}`;
  const context = { source, stream, kind: 'log', fetchedAt } as const;
  return { uid, source, stream, kind: 'log', context, offset: 0, raw: Buffer.alloc(0), ocsf };
}

/** Shows an event that passes, and waits for a slower reader. */
function shower(format: string, { out, unread }: CommandDeps) {
  const { encode } = textFormat(usualChoice(format));
  return async (event: Event, passes: Filter): Promise<void> => {
    if (!passes(event)) return;
    out(Buffer.from(visibleLines(Buffer.from(encode(event)))).toString());
    await drained(unread);
  };
}
