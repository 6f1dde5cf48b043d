// `sluice archive search`: events of an archive on stdout, without a database. They come from the
// archive's lake, of which only what may match is read; what has come since the lake was written
// last comes from the pages, where a config says how their records are read. What must stay true:
// what is not looked at is told.

import { once } from 'node:events';
import { formats } from '../../../formats/index.ts';
import type { PageEntry } from '../../archive/entries.ts';
import { lakePlace } from '../../archive/lake-cuts.ts';
import { loggedEntries, newestCheckpoint } from '../../archive/logged.ts';
import { archivedPage, indexBehind } from '../../archive/pages.ts';
import type { ArchiveReader } from '../../archive/reader.ts';
import { readingOf } from '../../config/plan.ts';
import { ExportError } from '../../contracts/errors.ts';
import type { Event, OcsfEvent } from '../../contracts/event.ts';
import { visibleLines } from '../../contracts/text.ts';
import { lakeEvents } from '../../parquet/lake.ts';
import { textFormat, usualChoice } from '../../run/tap-forms.ts';
import { type Filter, valuesNeeded } from '../../send/filter.ts';
import { DecodedPage } from '../../send/held-event.ts';
import { normalisersOf } from '../../send/normalisers.ts';
import { counted } from '../../terminal/table.ts';
import { defineCommand, type Means } from '../shared/command.ts';
import { readConfigToLook } from '../shared/looking.ts';
import { type AskedEvents, askedOptions, eventsAsked } from './asked-events.ts';
import { locationArgument, openArchive } from './given.ts';

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
      about: 'how events are shown',
      choices: lineFormats.map(({ type }) => type),
      usual: 'json',
    },
    config: {
      short: '-c',
      value: 'file',
      about: 'a config by which pages are read that are not in the lake yet',
    },
  },
  more: `Events come from the archive's lake, of which times, statistics and bloom filters leave out what cannot match.
What came since it was written last, and all where there is none, is read from the pages, as the sources of --config say.
Events on which the filter fails are not shown. They come object by object, and within each in the order of time.`,
  async run({ location, format, config, ...given }, means) {
    const asked = eventsAsked(given);
    const { where, passes } = asked;
    const reader = await openArchive(location, means.env);
    const show = shower(format, means);
    try {
      const values = where === undefined ? {} : valuesNeeded(where);
      for await (const event of lakeEvents(reader.store, { ...asked, values })) {
        await show(eventOf(event), passes);
        if (means.unread.aborted) return 0;
      }
      const pages = await pagesBehind(reader, asked);
      if (pages.length === 0) return 0;
      if (config === undefined) {
        const what = counted(pages.length, 'page');
        means.err(
          `not looked at: ${what} that are not in the lake yet; give --config to read them`,
        );
        return 0;
      }
      const known = readConfigToLook(config, means.env).config;
      const normaliserOf = normalisersOf(
        Object.entries(known.sources).map(([name, source]) => ({
          name,
          reading: readingOf(source, known),
        })),
      );
      let pruned = 0;
      for (const entry of pages) {
        const held = await archivedPage(reader, entry, 0);
        if (held === null) {
          pruned += 1;
          continue;
        }
        const { events } = new DecodedPage(held, normaliserOf(held.context));
        for (const event of events) await show(event, passes);
        if (means.unread.aborted) return 0;
      }
      if (pruned > 0) means.err(`left out: ${counted(pruned, 'page')} whose bodies were let go`);
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `searching ${location}: ${error.message}`, {
        next: '`npx sluice archive verify` tells what is damaged; a lake may be deleted, and the pages searched with --config.',
        cause: error,
      });
    } finally {
      reader.store.close();
    }
  },
});

/** Entries of pages with events that the lake does not have yet. */
async function pagesBehind(reader: ArchiveReader, asked: AskedEvents) {
  const { size } = await newestCheckpoint(reader);
  const place = await lakePlace(reader.store);
  const first = place === null ? 0 : await indexBehind(reader, size, place);
  const [epoch, next] = place ?? [0, 0];
  const pages: PageEntry[] = [];
  for await (const { entry } of loggedEntries(reader, size, first)) {
    if (entry.t !== 'page' || entry.kept === 0) continue;
    const [at, until] = entry.place;
    const isBehind = at > epoch || (at === epoch && until > next);
    if (isBehind && asked.mayBeIn(entry)) pages.push(entry);
  }
  return pages;
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

/** Shows an event that passes, and waits for a reader who is slower. */
function shower(format: string, { out, unread }: Means) {
  const { encode } = textFormat(usualChoice(format));
  return async (event: Event, passes: Filter): Promise<void> => {
    if (!passes(event)) return;
    out(Buffer.from(visibleLines(Buffer.from(encode(event)))).toString());
    if (!process.stdout.writableNeedDrain) return;
    // One who has gone is told by `unread`.
    await once(process.stdout, 'drain', { signal: unread }).catch(() => undefined);
  };
}
