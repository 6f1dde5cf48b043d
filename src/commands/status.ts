// `sluice status`: how each stream, the spool and each sink stand, read from the state directory, so that it also
// answers while another process runs and when none can, and needs no secret. For people what needs attention first, then
// tables with the same order; with --json one object for scripts, in the order of the config (times are RFC 3339 or null, durations milliseconds; keys may be added):
//
//   { running: string | null,
//     state_dir: string,
//     reload_refused: { at, code, message, next } | null,
//     streams: [{ name, source, order, checkpoint_at, caught_up_at, lag_ms, next_poll_at, waits_for, state, error }],
//     spool: { bytes, max_bytes, events, oldest_at },
//     sinks: [{ name, type, position, backlog, dead_letters, state, error }],
//     orphans: { streams: [name], sinks: [name] },
//     filters: [{ route, source, failures, why }] }
//
// `lag_ms` is the time since the stream was last read to its tail. `next_poll_at` is null while no process runs and before
// the first poll. `waits_for` is `room in the spool` where that is full, else null. `state` is `stopped` while no process runs, `new`
// before anything was read or sent. `reload_refused` says why the config as it stands in its file does not run. `error` is { code, message, next } of the last failure, null once it has passed.
// Orphans have state and are not in the config. `filters` are those that events passed unjudged since the start; only the
// process that runs knows them, so the list is empty where it has no status.listen.

import type { Config } from '../config/config.ts';
import type { Notice } from '../contracts/sink.ts';
import type { ReloadRefusal } from '../run/running-config.ts';
import {
  errorCell,
  painted,
  sizeText,
  spanText,
  stateCell,
  tableLines,
  urgentFirst,
} from '../terminal/table.ts';
import { cleanText } from '../tools/clean-text.ts';
import { attentionLines, type Standing } from '../watch/attention-lines.ts';
import { askRunning } from '../watch/running.ts';
import {
  backlogOf,
  hasState,
  type NotedError,
  notHere,
  readState,
  type State,
  waitsForRoom,
} from '../watch/state.ts';
import { readConfigAtWork } from './shared/at-work.ts';
import { configOption, defineCommand } from './shared/command.ts';
import { planToLook } from './shared/looking.ts';

/** Prints the status. */
export const status = defineCommand({
  name: 'status',
  about: 'show streams, spool and sinks, also while another process runs',
  options: { config: configOption, json: { about: 'as JSON' } },
  async run({ config: file, json }, means) {
    const { config, unread, refused } = readConfigAtWork(file, means);
    const { out } = means;
    const state = readState(config.state.dir);
    const asked = state.holder === null || config.status === null ? null : await askRunning(config);
    const filters = asked?.outcome === 'report' ? asked.report.filters : [];
    const report = { ...reportOf(config, await streamsOf(config), { state, refused }), filters };
    if (json) out(JSON.stringify(report, null, 2));
    else for (const line of [...reportLines(report, config), ...unreadLines(unread)]) out(line);
    return 0;
  },
});

/** A stream's name and the source it belongs to. */
export interface NamedStream {
  readonly name: string;
  readonly source: string;
}

/** The streams of a config; nothing is asked of upstream. */
export async function streamsOf(config: Config): Promise<readonly NamedStream[]> {
  const { sources } = await planToLook(config);
  return sources.flatMap(({ name: source, streams }) =>
    streams.map(({ name }) => ({ name, source })),
  );
}

interface Report {
  readonly running: string | null;
  readonly state_dir: string;
  readonly reload_refused: (NotedError & { readonly at: string | null }) | null;
  readonly streams: readonly {
    readonly name: string;
    readonly source: string;
    readonly order: string | null;
    readonly checkpoint_at: string | null;
    readonly caught_up_at: string | null;
    readonly lag_ms: number | null;
    readonly next_poll_at: string | null;
    readonly waits_for: string | null;
    readonly state: string;
    readonly error: NotedError | null;
  }[];
  readonly spool: {
    readonly bytes: number;
    readonly max_bytes: number;
    readonly events: number;
    readonly oldest_at: string | null;
  };
  readonly sinks: readonly {
    readonly name: string;
    readonly type: string;
    readonly position: number;
    readonly backlog: number;
    readonly dead_letters: number;
    readonly state: string;
    readonly error: NotedError | null;
    readonly notice: Notice | null;
  }[];
  readonly orphans: { readonly streams: readonly string[]; readonly sinks: readonly string[] };
}

function reportOf(
  config: Config,
  streams: readonly NamedStream[],
  { state, refused }: { readonly state: State; readonly refused: ReloadRefusal | null },
): Report {
  const now = Date.now();
  const known = new Set(streams.map(({ name }) => name));
  const stateNow = (noted: string | null | undefined) => {
    if (noted === null || noted === undefined) return 'new';
    return state.holder === null ? 'stopped' : noted;
  };
  return {
    running: state.holder,
    state_dir: config.state.dir,
    reload_refused: refused && { ...refused, at: timeText(refused.at) },
    streams: streams.map(({ name, source }) => {
      const held = state.streams.get(name);
      const caughtUpAt = held?.caughtUpAt ?? null;
      return {
        name,
        source,
        order: held?.checkpoint?.order ?? null,
        checkpoint_at: timeText(held?.checkpoint?.savedAt ?? null),
        caught_up_at: timeText(caughtUpAt),
        lag_ms: caughtUpAt === null ? null : Math.max(0, now - caughtUpAt),
        next_poll_at: state.holder === null ? null : timeText(held?.nextPollAt ?? null),
        waits_for: waitsForRoom(held, state, config) ? 'room in the spool' : null,
        state: stateNow(held?.state),
        error: held?.error ?? null,
      };
    }),
    spool: {
      bytes: state.spool.bytes,
      max_bytes: config.state.maxBytes,
      events: state.spool.events,
      oldest_at: timeText(state.spool.oldestAt),
    },
    sinks: Object.entries(config.sinks).map(([name, { settings }]) => {
      const held = state.sinks.get(name);
      return {
        name,
        type: settings.type,
        position: held?.position ?? 0,
        backlog: backlogOf(held, state.spool),
        dead_letters: held?.deadLetters ?? 0,
        state: stateNow(held?.state),
        error: held?.error ?? null,
        notice: held?.notice ?? null,
      };
    }),
    orphans: {
      streams: [...state.streams.keys()].filter((name) => !known.has(name)),
      sinks: [...state.sinks.keys()].filter((name) => !Object.hasOwn(config.sinks, name)),
    },
  };
}

function reportLines(
  report: Report & Pick<Standing, 'filters'>,
  config: Config,
): readonly string[] {
  const { running, spool, orphans } = report;
  const absent = !hasState(config.state.dir);
  const full = `${sizeText(spool.bytes)} of ${sizeText(spool.max_bytes)}`;
  const oldest = spool.oldest_at === null ? '' : `, the oldest since ${spool.oldest_at}`;
  return [
    running === null
      ? painted(cleanText(`not running${notHere(config)}`, 1_000), absent ? 'warn' : 'dim')
      : `running: ${cleanText(running, 200)}`,
    // Where nothing is known, nothing can be said to be well.
    ...(absent ? [] : ['', ...attentionLines(report, config.file)]),
    '',
    ...streamTable(report),
    '',
    `spool: ${full}, events held: ${spool.events}${oldest}`,
    '',
    ...sinkTable(report),
    ...orphanLines(orphans),
  ];
}

function streamTable({ streams }: Report): readonly string[] {
  return tableLines(
    ['STREAM', 'ORDER', 'CHECKPOINT', 'CAUGHT UP', 'STATE', 'NEXT POLL', 'LAST ERROR'],
    urgentFirst(streams).map((stream) => [
      stream.name,
      stream.order ?? '-',
      stream.checkpoint_at ?? '-',
      stream.lag_ms === null ? '-' : `${spanText(stream.lag_ms)} ago`,
      stateCell(stream.state, stream.error),
      nextPollText(stream),
      errorCell(stream.error),
    ]),
  );
}

function nextPollText({ waits_for: what, next_poll_at: at }: Report['streams'][number]): string {
  if (what !== null) return `with ${what}`;
  if (at === null) return '-';
  const inMs = Date.parse(at) - Date.now();
  return inMs > 0 ? `in ${spanText(inMs)}` : 'now';
}

function sinkTable({ sinks }: Report): readonly string[] {
  return tableLines(
    ['SINK', 'TYPE', 'POSITION', 'BACKLOG', 'DEAD LETTERS', 'STATE', 'LAST ERROR'],
    urgentFirst(sinks).map(({ name, type, position, backlog, dead_letters, state, error }) => [
      name,
      type,
      String(position),
      String(backlog),
      dead_letters === 0 ? '0' : { text: String(dead_letters), mood: 'warn' },
      stateCell(state, error),
      errorCell(error),
    ]),
  );
}

/** So that nobody takes what stands in for a secret for the real thing. */
function unreadLines(unread: readonly string[]): readonly string[] {
  if (unread.length === 0) return [];
  const told = cleanText([...new Set(unread)].join(', '), 300);
  return ['', painted(`not set here, and not needed to look: ${told}`, 'dim')];
}

function orphanLines({ streams, sinks }: Report['orphans']): readonly string[] {
  const lines = [
    ...streams.map((name) => `stream ${name} has a checkpoint and is not in the config`),
    ...sinks.map(
      (name) => `sink ${name} has a position and is not in the config: no page waits for it`,
    ),
  ];
  const clean = lines.map((line) => painted(cleanText(line, 300), 'warn'));
  return lines.length === 0 ? [] : ['', ...clean];
}

function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
