// `sluice tap`: writes events to stdout as a sink would receive them, and changes nothing: after the routes' filters
// and redaction. If a process runs with the config, its spool is followed, read-only. Else the pipeline runs here, from
// copies of the checkpoints, in a directory that is removed at the end: the next run reads the same events again and
// delivers them.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, formatsOf, loadConfig, sinks } from '../config/index.ts';
import type { FormatChoice, SinkDefinition } from '../contracts/config.ts';
import { type Offset, type Route, shownLines, UsageError } from '../contracts/index.ts';
import { changeState, databaseName, hasState, holderOf, openForLooking } from '../hold/index.ts';
import { makeScratch } from '../operator/index.ts';
import {
  type BootTools,
  formatKeyOf,
  listenForShutdown,
  openTools,
  planFrom,
  type WholePlan,
} from '../run/index.ts';
import { openJourney, textFormat, usualChoice } from '../run/process.ts';
import { encodeLines, type PlannedSink, selectionOf } from '../send/delivery.ts';
import { normalisersOf, PageDecoder, selectionFor, withAllMasks } from '../send/index.ts';
import { cleanText, hint } from '../tools/index.ts';
import { logForm, openLog } from '../watch/log.ts';
import type { ConfigAtWork } from './shared/at-work.ts';
import { type CommandDeps, configOption, defineCommand, logLevelOption } from './shared/command.ts';
import { partsAtWork, partWithSource } from './shared/parts.ts';
import { refuseUnknown } from './shared/typed.ts';

/** A page is deleted some 50 ms after the last sink has it; pages missed so are reported. */
const lookEveryMs = 10;
const readBytesMax = 4 * 1024 * 1024;
const drainMs = 1_000;

const [stdoutSink] = sinks.filter(({ type }) => type === 'stdout') as [SinkDefinition];
const formatTypes = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(
  formatsOf(stdoutSink),
);

/** Shows events until a signal, or until the reader of stdout has closed it. */
export const tap = defineCommand({
  name: 'tap',
  about: 'show events as a sink would see them; changes nothing',
  options: {
    config: configOption,
    source: { value: 'name', about: 'only events of this source' },
    sink: { value: 'name', about: 'as this sink gets them; default: events for any sink' },
    format: { value: 'type', about: `${formatTypes}; default: that sink's, else json` },
    logLevel: logLevelOption,
  },
  more: `Routes apply: filtered events are not shown, redacted fields are removed, masked values are masked. If several routes
lead to several sinks, an event is shown once, as the first matching route leaves it.
If a process runs with this config, tap shows the events that it reads from now on. Otherwise tap reads from the
checkpoint of each stream (from its start without one) into a temporary directory that is removed at the end:
the next run reads the same events again. Ends with Ctrl-C.`,
  async run(given, deps) {
    const looked = partIn(partsAtWork(given.config, deps), given.source).config;
    const holder = holderOf(looked.state.dir);
    // Following a spool needs no secrets; requests to upstream do.
    const whole = holder === null ? await loadConfig(given.config, { env: deps.env }) : null;
    const config = whole === null ? looked : partWithSource(whole, given.source ?? '');
    const { source, sink } = given;
    refuseUnknown('source', source, Object.keys(config.sources));
    refuseUnknown('sink', sink, Object.keys(config.sinks));
    const screen = screenFor(config, given);
    const shutdown = listenForShutdown(() => deps.exit(1));
    const stop = AbortSignal.any([shutdown.stop, deps.unread]);
    const form = logForm(process.stderr);
    const tools = openTools(await openLog({ level: given.logLevel ?? 'warn', form }));
    try {
      const plan = planFrom(config, tools);
      const requested = plan.sources.filter(({ name }) => source === undefined || name === source);
      const routes = sink === undefined ? routesTo(screen.name, plan.routes) : plan.routes;
      const tapped = { ...plan, sources: requested, sinks: [screen], routes };
      for (const line of unroutedLines(tapped)) deps.err(line);
      if (holder === null) {
        deps.err('nothing runs with this config: fetching here; Ctrl-C ends it');
        await fetchHere(tapped, { config, tools, stop });
      } else {
        deps.err(`following ${holder}; Ctrl-C ends it`);
        await follow(tapped, { config, tools, stop, deps, source });
      }
      return 0;
    } finally {
      await tools.http.close();
      shutdown.release();
    }
  },
});

/** The part whose events are shown. */
function partIn(parts: readonly ConfigAtWork[], source: string | undefined): ConfigAtWork {
  const found = parts.find(({ config }) => parts.length === 1 || config.sources[source ?? '']);
  if (found !== undefined) return found;
  const names = parts.flatMap(({ config }) => Object.keys(config.sources));
  refuseUnknown('source', source, names);
  throw new UsageError(
    `the work is in several shards: say which with --source ${names.join(', --source ')}`,
  );
}

/**
 * The routes as if all led to one sink: it receives the events that any sink receives, each once. A
 * value that one route masks is shown by none.
 */
function routesTo(sink: string, routes: readonly Route[]): readonly Route[] {
  return withAllMasks(routes).map((route) => ({ ...route, to: [sink] }));
}

function unroutedLines({ sources, sinks, routes }: WholePlan): readonly string[] {
  const [{ name: sink }] = sinks as readonly [PlannedSink];
  return sources
    .filter(({ name }) => selectionFor(routes, { source: name, sink }, () => {}) === null)
    .map(({ name }) => `no route leads from ${name} here: its events are not shown`);
}

/** Standard output as a sink: under the name of the sink whose events it shows, if one is named. */
function screenFor(
  config: Config,
  { sink, format }: { readonly sink?: string; readonly format?: string },
): PlannedSink {
  const own = sink === undefined ? undefined : config.sinks[sink]?.format;
  const choice = format === undefined && own !== undefined ? own : usual(format ?? 'json');
  return {
    name: sink ?? 'tap',
    definition: stdoutSink,
    settings: { type: stdoutSink.type },
    format: textFormat(choice),
    formatKey: formatKeyOf(choice),
    bounds: { eventsMax: 500, bytesMax: 256 * 1024 },
    waitMs: 0,
    retry: { minMs: 1_000, maxMs: 60_000 },
  };
}

/** A format of lines, with its defaults. */
function usual(type: string): FormatChoice {
  const known = formatsOf(stdoutSink);
  if (known.includes(type)) return usualChoice(type);
  const near = hint(type, known);
  throw new UsageError(`--format: there is no format ${cleanText(type, 80)} of lines${near}`);
}

interface Tapping {
  readonly config: Config;
  readonly tools: BootTools;
  readonly stop: AbortSignal;
}

async function fetchHere(plan: WholePlan, { config, tools, stop }: Tapping): Promise<void> {
  const dir = makeScratch('tap');
  try {
    copyCheckpoints(config.state.dir, dir);
    const state = { ...config.state, dir, sync: 'normal', keepMs: 0, kafka: null } as const;
    const journey = await openJourney(plan, state, tools);
    try {
      await journey.pipeline.run(stop, drainMs);
    } finally {
      await journey.close();
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The checkpoints and identities of streams, without stored pages. */
function copyCheckpoints(from: string, to: string): void {
  if (!hasState(from)) return;
  changeState({ dir: to, sync: 'normal', keepMs: 0 }, ({ streams }) =>
    streams.copyFrom(join(from, databaseName)),
  );
}

interface Following extends Tapping {
  readonly deps: CommandDeps;
  /** Only this source; undefined: all sources, and the conditions that sinks report. */
  readonly source: string | undefined;
}

async function follow(plan: WholePlan, following: Following): Promise<void> {
  const { config, tools, stop, deps, source } = following;
  const { clock } = tools;
  const wait = () => clock.sleep(lookEveryMs, stop).catch(() => undefined);
  while (!hasState(config.state.dir) && !stop.aborted) await wait();
  if (stop.aborted) return;
  const store = openForLooking(config.state.dir);
  const decoder = new PageDecoder(normalisersOf(plan.sources));
  const [{ format, name: sink }] = plan.sinks as readonly [PlannedSink];
  const selections = new Map(
    plan.sources.map(({ name }) => [
      name,
      selectionFor(plan.routes, { source: name, sink }, () => {}),
    ]),
  );
  const reader = {
    sink,
    takesPages: false,
    selectionFor: (name: string) => selections.get(name) ?? null,
  };
  try {
    let at: Offset = store.gauge().end;
    while (!stop.aborted) {
      const pages = store.read(at, readBytesMax);
      for (const page of pages) {
        if (page.first > at) deps.err(`${page.first - at} events went by too quickly to be shown`);
        at = page.first + page.count;
        // A dead letter that is sent again is no new event.
        const selection = page.onlySink === undefined ? selectionOf(page, reader) : null;
        const isLeftOut = page.context.isOfSink && source !== undefined;
        if (selection === null || isLeftOut) continue;
        const events = decoder.decode(page).events.flatMap((one) => selection.select(one) ?? []);
        await written(shownLines(encodeLines(events, format).bytes, format, process.stdout.isTTY));
      }
      if (pages.length === 0) await wait();
    }
  } finally {
    store.close();
  }
}

function written(bytes: Uint8Array): Promise<void> {
  // The stream's error event reports a failure and ends the tap.
  return new Promise((resolve) => process.stdout.write(bytes, () => resolve()));
}
