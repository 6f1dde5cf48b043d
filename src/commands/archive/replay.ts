// `sluice archive replay`: sends events of an archive to a sink again. The pages are stored in the state's spool for
// that sink alone, each with the progress of the replay. The sink delivers them like all other pages: by the same
// routes, from the same position. So an interrupted replay loses and repeats nothing, and the same command line resumes
// it. Invariant: a replayed event has its original uid.

import { hash } from 'node:crypto';
import { archivedPage } from '../../archive/audit.ts';
import { loggedEntries, type ProvenReader } from '../../archive/index.ts';
import { type Config, inShards, loadConfig } from '../../config/index.ts';
import { backlog, ExportError, type NewPage, UsageError, uidBytes } from '../../contracts/index.ts';
import { changeState, holderOf } from '../../hold/index.ts';
import { ownJourney } from '../../operator/index.ts';
import {
  type BootTools,
  listenForShutdown,
  openTools,
  planFrom,
  timeToGiveUp,
  type WholePlan,
} from '../../run/index.ts';
import { type Journey, openJourney } from '../../run/process.ts';
import { DecodedPage, leadsTo, normalisersOf } from '../../send/index.ts';
import { counted } from '../../terminal/index.ts';
import { cleanText } from '../../tools/index.ts';
import { logForm, openLog } from '../../watch/log.ts';
import {
  type CommandDeps,
  configOption,
  defineCommand,
  logLevelOption,
} from '../shared/command.ts';
import { refuseUnknown } from '../shared/typed.ts';
import { type AskedEvents, askedOptions, eventsAsked } from './asked-events.ts';
import { locationArgument } from './given.ts';
import { keysFor, trustedArchive, trustedKeyOption } from './trusted.ts';

const lookEveryMs = 50;
const reportEveryMs = 2_000;

/** Sends archived events to a sink. */
export const replay = defineCommand({
  name: 'replay',
  about: 'send events of an archive to a sink once more, with their uids',
  arguments: { location: locationArgument },
  options: {
    config: configOption,
    sink: { value: 'name', about: 'sink that receives the events', needed: true },
    key: trustedKeyOption,
    ...askedOptions,
    logLevel: logLevelOption,
  },
  more: `The sink gets the events by its routes, with the current format and mappings. No other sink gets them.
Each page is proven before it is sent, by the newest checkpoint of the archive. The key is that of the sink which writes the
archive by --config; give --key for another archive.
No process may run with this config meanwhile. Ctrl-C stops the replay; the same command line resumes it.
Sinks that write each event once (file, Kafka with exactly_once) write these once more.`,
  async run({ location, sink, key: keys, logLevel, config: file, ...given }, deps) {
    const asked = eventsAsked(given);
    const whole = await loadConfig(file, { env: deps.env });
    refuseUnknown('sink', sink, Object.keys(whole.sinks));
    if (whole.sinks[sink]?.definition.takes === 'pages') {
      throw new UsageError(`--sink: ${sink} stores pages as upstream sent them, and no events`);
    }
    for (const part of inShards(whole)) refuseBesideAnother(part);
    const reader = await trustedArchive(location, keysToReplay(location, keys, whole), deps.env);
    const shutdown = listenForShutdown(() => deps.exit(1));
    const log = await openLog({ level: logLevel ?? 'warn', form: logForm(process.stderr) });
    try {
      const { where = '', from = '', to = '' } = given;
      const key = `#replay-${hash('sha256', [location, sink, where, from, to].join('\0')).slice(0, 16)}`;
      const parts = await partsWithPages(whole, reader);
      for (const part of parts) {
        const tools = openTools(log);
        const plan = planFrom(part.config, tools);
        const doing = { ...part, asked, key, deps, plan, reader, sink, stop: shutdown.stop, tools };
        if ((await replayed(doing)) !== 0) return 1;
      }
      // Before the last part is complete, the same command line must not replay the first one again.
      for (const { config } of parts) await forgetProgress(config, whole, key);
      return 0;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new ExportError('sink_refused', `replaying ${location}: ${error.message}`, {
        next: '`npx sluice archive verify` lists the damage. Events replayed before it are proven and delivered.',
        cause: error,
      });
    } finally {
      reader.store.close();
      shutdown.release();
    }
  },
});

/** Throws an ExportError if no key is known: only proven events are sent to a receiver. */
function keysToReplay(location: string, given: readonly string[] | undefined, config: Config) {
  const keys = keysFor(location, given, config);
  if (keys !== null) return keys;
  throw new ExportError(
    'sink_refused',
    `replaying ${location}: no sink of the config writes this archive, so its key is not known`,
    { next: 'Give --key VKEY, the public key of the archive. Nothing was sent.' },
  );
}

/** A shard's part of the config, by which the pages of its sources are replayed. */
interface Part {
  readonly config: Config;
  readonly has: (source: string) => boolean;
}

/** The parts with sources of the archive, or the first; sources that the config lacks belong to the first. */
async function partsWithPages(whole: Config, reader: ProvenReader): Promise<readonly Part[]> {
  const configs = inShards(whole);
  const ownerOf = (source: string) =>
    configs.find(({ sources }) => Object.hasOwn(sources, source)) ?? configs[0];
  const owners = new Set<Config | undefined>();
  if (configs.length > 1) {
    for await (const { entry } of loggedEntries(reader, reader.head.size, 0))
      if (entry.t === 'page') owners.add(ownerOf(entry.source));
  }
  if (owners.size === 0) owners.add(configs[0]);
  return configs
    .filter((config) => owners.has(config))
    .map((config) => ({ config, has: (source) => ownerOf(source) === config }));
}

/** After that, the same command line replays all again. */
async function forgetProgress(config: Config, whole: Config, key: string): Promise<void> {
  const { state } = config;
  const forget = async () => changeState(state, (store) => store.streams.forgetAll(key));
  await (state.kafka === null ? forget() : ownJourney(config, whole, forget));
}

interface Doing extends Part {
  readonly asked: AskedEvents;
  /** The key under which the progress is stored. */
  readonly key: string;
  readonly deps: CommandDeps;
  readonly plan: WholePlan;
  readonly reader: ProvenReader;
  readonly sink: string;
  readonly stop: AbortSignal;
  readonly tools: BootTools;
}

function refuseBesideAnother({ state, file }: Config): void {
  const holder = holderOf(state.dir);
  if (holder === null) return;
  throw new ExportError('state_locked', `replaying with ${file}: ${holder} runs with this config`, {
    next: 'Stop that process, replay, and start it again. No record is lost if upstream still has it.',
  });
}

async function replayed(doing: Doing): Promise<0 | 1> {
  const { config, deps, plan, sink, stop, tools } = doing;
  const journey = await openJourney(plan, config.state, tools, { polls: false });
  const over = new AbortController();
  const stuck = new AbortController();
  const { pipeline, spool } = journey;
  const watched = { clock: tools.clock, state: () => pipeline.state, end: () => spool.gauge.end };
  timeToGiveUp(watched, over.signal).then(
    () => stuck.abort(new Error('nothing moves any more')),
    () => undefined,
  );
  const running = pipeline.run(over.signal, config.shutdown.timeoutMs);
  running.catch((error) => stuck.abort(error));
  const halt = AbortSignal.any([stop, stuck.signal]);
  let isRead = false;
  try {
    isRead = await hold(doing, journey, halt);
    if (isRead) await delivered(doing, journey, halt);
  } finally {
    over.abort(new Error('the replay is over'));
    await running.catch(() => undefined);
    await journey.close();
  }
  const { position = 0, error = null } =
    pipeline.state.sinks.find(({ name }) => name === sink) ?? {};
  const left = backlog(spool.gauge, position);
  if (isRead && left === 0) return 0;
  const why = error === null ? 'it was stopped' : error.message;
  deps.err(
    cleanText(`incomplete: ${counted(left, 'event')} still waiting for ${sink}: ${why}`, 500),
  );
  deps.err('nothing is lost: the same command line resumes from there');
  return 1;
}

/** Stores the requested pages; false if it was stopped before the last. */
async function hold(
  doing: Doing,
  { spool, pipeline }: Journey,
  halt: AbortSignal,
): Promise<boolean> {
  const { asked, has, key, deps, plan, reader, sink, tools } = doing;
  const { size } = reader.head;
  const { checkpoint } = await spool.recall(key);
  const begun = typeof checkpoint === 'number' ? checkpoint : 0;
  const normaliserOf = normalisersOf(plan.sources);
  const meter = meterOf(deps, { of: size, from: begun, now: () => tools.clock.monotonic() });
  const unrouted = new Set<string>();
  let events = 0;
  let pruned = 0;
  for await (const { index, entry } of loggedEntries(reader, size, begun)) {
    if (halt.aborted) return false;
    if (entry.t !== 'page' || entry.kept === 0 || entry.kind === 'answer') continue;
    if (!has(entry.source) || !asked.mayBeIn(entry)) continue;
    if (!leadsTo(plan.routes, { source: entry.source, sink })) {
      unrouted.add(entry.source);
      continue;
    }
    const held = await archivedPage(reader, entry, 0);
    if (held === null) {
      pruned += 1;
      continue;
    }
    const page = asked.isAll
      ? held
      : chosen(new DecodedPage(held, normaliserOf(held.context)), asked);
    if (page === null) continue;
    if ((await spool.room(halt).catch(() => null)) === null) return false;
    await spool.append({ ...progress(key, index + 1), pages: [{ ...page, onlySink: sink }] });
    events += page.uids.length / uidBytes;
    meter.show(
      index,
      events,
      pipeline.state.sinks.find(({ name }) => name === sink)?.delivered ?? 0,
    );
  }
  await spool.append({ ...progress(key, size), pages: [] });
  meter.end(events);
  if (pruned > 0) deps.err(`skipped: ${counted(pruned, 'page')} whose bodies were deleted`);
  for (const source of unrouted) {
    deps.err(
      cleanText(`no route leads from ${source} to ${sink}: none of its events were replayed`, 300),
    );
  }
  return true;
}

/**
 * Beside an entity a checkpoint is none that a damaged state could go back to, and may be deleted.
 */
function progress(stream: string, next: number) {
  return { stream, checkpoint: next, entities: { put: [['replay', '']], drop: [] } } as const;
}

/** The page with its requested events only; null: it has none. */
function chosen({ held, events }: DecodedPage, { passes }: AskedEvents): NewPage | null {
  const picked = events.flatMap((event, at) => (passes(event) ? [at] : []));
  if (picked.length === 0) return null;
  const uids = picked.map((at) => held.uids.subarray(at * uidBytes, (at + 1) * uidBytes));
  const kept = Uint32Array.from(picked, (at) => held.kept?.[at] ?? at);
  return { ...held, kept, uids: Buffer.concat(uids) };
}

/** Waits until the sink is caught up, or only waits for more events to fill a batch. */
async function delivered({ sink, tools }: Doing, journey: Journey, halt: AbortSignal) {
  const { pipeline, spool } = journey;
  const isBehind = () => {
    const state = pipeline.state.sinks.find(({ name }) => name === sink);
    return state !== undefined && state.position < spool.gauge.end && state.dueInMs === null;
  };
  while (isBehind() && !halt.aborted) await tools.clock.sleep(lookEveryMs);
}

/** Logs the progress from time to time, and at the end the total and the rate. */
function meterOf(
  { err }: CommandDeps,
  { of, from, now }: { readonly of: number; readonly from: number; readonly now: () => number },
) {
  const begun = now();
  let reported = begun;
  const rate = (events: number) => Math.round((events * 1000) / Math.max(1, now() - begun));
  return {
    show(index: number, events: number, sent: number) {
      if (now() - reported < reportEveryMs) return;
      reported = now();
      const share = Math.floor(((index - from) * 100) / Math.max(1, of - from));
      err(`${share}%  ${counted(events, 'event')} read, ${sent} delivered, ${rate(events)}/s`);
    },
    end: (events: number) => err(`${counted(events, 'event')} read, ${rate(events)}/s`),
  };
}
