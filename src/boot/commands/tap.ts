// `sluice tap`: events as a sink would see them, on stdout, without touching anything. While a process runs with the
// config its spool is followed, read-only. Else the journey is run here, from copies of the checkpoints, into a
// directory that is removed at the end: what tap shows, the next run fetches again and delivers.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { stdoutSink } from '../../../connectors/sinks/stdout.ts';
import { formats } from '../../../formats/index.ts';
import type { FormatChoice } from '../../contracts/definition.ts';
import type { Offset } from '../../contracts/event.ts';
import type { HeldPage } from '../../contracts/spool.ts';
import { holderOf } from '../../hold/lock.ts';
import { Store } from '../../hold/store.ts';
import { normalisersOf, type PlannedSink } from '../../pipeline.ts';
import { encodeLines } from '../../send/encode.ts';
import { PageDecoder } from '../../send/held-event.ts';
import { cleanText } from '../../tools/clean-text.ts';
import { type LogLevel, logForm, openLog } from '../../watch/log.ts';
import { type ConfigOptions, type ExitCode, type Means, UsageError } from '../command.ts';
import { type Config, readConfig } from '../config/config.ts';
import { hint } from '../config/nearest.ts';
import { formatKeyOf, planFrom, type WholePlan } from '../config/plan.ts';
import { openJourney } from '../journey.ts';
import { listenForShutdown } from '../shutdown.ts';
import { hasState, openForLooking } from '../state.ts';
import { type BootTools, openTools } from '../tools.ts';

/** Options of `tap`. */
export interface TapOptions extends ConfigOptions {
  readonly source?: string;
  readonly format: string;
  readonly logLevel?: LogLevel;
}

/** Delivered pages are deleted within about a second. */
const lookEveryMs = 100;
const readBytesMax = 4 * 1024 * 1024;
const drainMs = 1_000;

/** Shows events until a signal, or until nobody reads them any more. */
export async function tap(options: TapOptions, means: Means): Promise<ExitCode> {
  const config = readConfig(options.config, { env: means.env });
  const { source } = options;
  if (source !== undefined && !Object.hasOwn(config.sources, source)) {
    const near = hint(source, Object.keys(config.sources));
    throw new UsageError(`--source: there is no source ${cleanText(source, 80)}${near}`);
  }
  const screen = screenFor(options.format);
  const shutdown = listenForShutdown(() => means.exit(1));
  const stop = AbortSignal.any([shutdown.stop, means.unread]);
  const form = logForm(process.stderr);
  const tools = openTools(await openLog({ level: options.logLevel ?? 'warn', form }));
  try {
    const plan = planFrom(config, { tools, throttles: tools.throttles, tokens: tools.tokens });
    const wanted = plan.sources.filter(({ name }) => source === undefined || name === source);
    const tapped = { ...plan, sources: wanted, sinks: [screen], routes: [] };
    const holder = holderOf(config.state.dir);
    if (holder === null) {
      means.err('nothing runs with this config: fetching here; Ctrl-C ends it');
      await fetchHere(tapped, { config, tools, stop });
    } else {
      means.err(`following ${holder}; Ctrl-C ends it`);
      await follow(tapped, { config, tools, stop, means });
    }
    return 0;
  } finally {
    await tools.http.close();
    shutdown.release();
  }
}

/** Standard output as a sink, with this format and that format's defaults. */
function screenFor(type: string): PlannedSink {
  const definition = formats.find((format) => format.type === type);
  if (definition === undefined || !stdoutSink.formats.includes(type)) {
    const near = hint(type, stdoutSink.formats);
    throw new UsageError(`--format: there is no format ${cleanText(type, 80)} of lines${near}`);
  }
  const defaults = z.strictObject(definition.fields).parse({});
  const choice: FormatChoice = { ...defaults, type };
  return {
    name: 'tap',
    definition: stdoutSink,
    settings: { type: stdoutSink.type },
    format: definition.make(choice),
    formatKey: formatKeyOf(choice),
    bounds: { eventsMax: 500, bytesMax: 256 * 1024 },
    waitMs: 0,
    retry: { minMs: 1_000, maxMs: 60_000 },
  };
}

interface Tapping {
  readonly config: Config;
  readonly tools: BootTools;
  readonly stop: AbortSignal;
}

async function fetchHere(plan: WholePlan, { config, tools, stop }: Tapping): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-tap-'));
  try {
    copyCheckpoints(config.state.dir, dir);
    const state = { ...config.state, dir, sync: 'normal', keepMs: 0 } as const;
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

/** Where streams have been and what they have read, without the pages that are held. */
function copyCheckpoints(from: string, to: string): void {
  if (!hasState(from)) return;
  const store = new Store({ dir: to, sync: 'normal', keepMs: 0 });
  try {
    const held = pathToFileURL(join(from, 'sluice.db'));
    held.searchParams.set('mode', 'ro');
    store.change('ATTACH DATABASE ? AS held', held.href);
    store.transaction(() => {
      for (const table of ['checkpoint', 'identities', 'trail', 'entity']) {
        store.change(`INSERT INTO main.${table} SELECT * FROM held.${table}`);
      }
    });
  } finally {
    store.close();
  }
}

async function follow(plan: WholePlan, tapping: Tapping & { means: Means }): Promise<void> {
  const { config, tools, stop, means } = tapping;
  const { clock } = tools;
  const wait = () => clock.sleep(lookEveryMs, stop).catch(() => undefined);
  while (!hasState(config.state.dir) && !stop.aborted) await wait();
  if (stop.aborted) return;
  const store = openForLooking(config.state.dir);
  const decoder = new PageDecoder(normalisersOf(plan.sources));
  const sources = new Set(plan.sources.map(({ name }) => name));
  const [{ format }] = plan.sinks as readonly [PlannedSink];
  try {
    let at: Offset = store.gauge().end;
    while (!stop.aborted) {
      const pages = store.read(at, readBytesMax);
      for (const page of pages) {
        if (page.first > at) means.err(`${page.first - at} events went by too quickly to be shown`);
        at = page.first + page.count;
        if (isShown(page, sources)) {
          await written(encodeLines(decoder.decode(page).events, format).bytes);
        }
      }
      if (pages.length === 0) await wait();
    }
  } finally {
    store.close();
  }
}

/** A dead letter that is sent again is no new event. */
function isShown({ context, onlySink }: HeldPage, sources: ReadonlySet<string>): boolean {
  return onlySink === undefined && sources.has(context.source);
}

function written(bytes: Uint8Array): Promise<void> {
  // Its failure is told by the stream's error event, which ends the tap.
  return new Promise((resolve) => process.stdout.write(bytes, () => resolve()));
}
