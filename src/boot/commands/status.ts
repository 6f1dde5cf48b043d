// `sluice status`: how each stream, the spool and each sink stand, read from the state directory, so that it also
// answers while another process runs and when none can. For people a table whose colours say what needs attention;
// with --json one object for scripts (times are RFC 3339 or null, durations milliseconds; keys may be added):
//
//   { running: string | null,
//     streams: [{ name, source, order, checkpoint_at, caught_up_at, lag_ms, state, error }],
//     spool: { bytes, max_bytes, events, oldest_at },
//     sinks: [{ name, type, position, backlog, dead_letters, state, error }],
//     orphans: { streams: [name], sinks: [name] } }
//
// `lag_ms` is the time since the stream was last read to its tail. `state` is `stopped` while no process runs, `new`
// before anything was read or sent. `error` is { code, message, next } of the last failure, null once it has passed.
// Orphans have state and are not in the config.

import { asExportError } from '../../contracts/errors.ts';
import { openLog } from '../../watch/log.ts';
import type { ConfigOptions, ExitCode, Means } from '../command.ts';
import { type Config, readConfig } from '../config/config.ts';
import { planFrom } from '../config/plan.ts';
import { backlogOf, type NotedError, readState, type State } from '../state.ts';
import { type Cell, painted, sizeText, spanText, tableLines } from '../table.ts';
import { openTools } from '../tools.ts';

/** Options of `status`. */
export interface StatusOptions extends ConfigOptions {
  readonly json?: boolean;
}

/** Prints the status. */
export async function status(options: StatusOptions, { env, out }: Means): Promise<ExitCode> {
  const config = readConfig(options.config, { env });
  const report = reportOf(config, await streamsOf(config), readState(config.state.dir));
  if (options.json === true) out(JSON.stringify(report, null, 2));
  else for (const line of reportLines(report)) out(line);
  return 0;
}

/** A stream's name and the source it belongs to. */
export interface NamedStream {
  readonly name: string;
  readonly source: string;
}

/** The streams of a config; nothing is asked of upstream. */
export async function streamsOf(config: Config): Promise<readonly NamedStream[]> {
  const tools = openTools(await openLog({ level: 'error', form: 'text' }));
  try {
    const plan = planFrom(config, { tools, throttles: tools.throttles, tokens: tools.tokens });
    return plan.sources.flatMap(({ name: source, streams }) =>
      streams.map(({ name }) => ({ name, source })),
    );
  } catch (error) {
    throw asExportError(error, 'finding the streams of the config');
  } finally {
    await tools.http.close();
  }
}

interface Report {
  readonly running: string | null;
  readonly streams: readonly {
    readonly name: string;
    readonly source: string;
    readonly order: string | null;
    readonly checkpoint_at: string | null;
    readonly caught_up_at: string | null;
    readonly lag_ms: number | null;
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
  }[];
  readonly orphans: { readonly streams: readonly string[]; readonly sinks: readonly string[] };
}

function reportOf(config: Config, streams: readonly NamedStream[], state: State): Report {
  const now = Date.now();
  const known = new Set(streams.map(({ name }) => name));
  const stateNow = (noted: string | null | undefined) => {
    if (noted === null || noted === undefined) return 'new';
    return state.holder === null ? 'stopped' : noted;
  };
  return {
    running: state.holder,
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
      };
    }),
    orphans: {
      streams: [...state.streams.keys()].filter((name) => !known.has(name)),
      sinks: [...state.sinks.keys()].filter((name) => !Object.hasOwn(config.sinks, name)),
    },
  };
}

function reportLines(report: Report): readonly string[] {
  const { running, streams, spool, sinks, orphans } = report;
  const lines = [running === null ? 'not running' : `running: ${running}`, ''];
  lines.push(
    ...tableLines(
      ['STREAM', 'ORDER', 'CHECKPOINT', 'CAUGHT UP', 'STATE', 'LAST ERROR'],
      streams.map(({ name, order, checkpoint_at, lag_ms, state, error }) => [
        name,
        order ?? '-',
        checkpoint_at ?? '-',
        lag_ms === null ? '-' : `${spanText(lag_ms)} ago`,
        stateCell(state, error),
        errorCell(error),
      ]),
    ),
  );
  const share = spool.bytes / spool.max_bytes;
  const full = `${sizeText(spool.bytes)} of ${sizeText(spool.max_bytes)}`;
  lines.push(
    '',
    `spool: ${share > 0.8 ? painted(full, 'bad') : full}, events held: ${spool.events}`,
  );
  if (spool.oldest_at !== null) lines.push(`       the oldest since ${spool.oldest_at}`);
  lines.push(
    '',
    ...tableLines(
      ['SINK', 'TYPE', 'POSITION', 'BACKLOG', 'DEAD LETTERS', 'STATE', 'LAST ERROR'],
      sinks.map(({ name, type, position, backlog, dead_letters, state, error }) => [
        name,
        type,
        String(position),
        String(backlog),
        dead_letters === 0 ? '0' : { text: String(dead_letters), mood: 'warn' },
        stateCell(state, error),
        errorCell(error),
      ]),
    ),
  );
  lines.push(...orphanLines(orphans));
  return lines;
}

function orphanLines({ streams, sinks }: Report['orphans']): readonly string[] {
  const lines = [
    ...streams.map((name) => `stream ${name} has a checkpoint and is not in the config`),
    ...sinks.map(
      (name) => `sink ${name} has a position and is not in the config: no page waits for it`,
    ),
  ];
  return lines.length === 0 ? [] : ['', ...lines.map((line) => painted(line, 'warn'))];
}

function stateCell(state: string, error: NotedError | null): Cell {
  switch (state) {
    case 'halted':
    case 'refused':
      return { text: state, mood: 'bad' };
    case 'retrying':
      return { text: state, mood: 'warn' };
    case 'new':
    case 'stopped':
      return { text: state, mood: 'dim' };
    default:
      return { text: state, mood: error === null ? 'good' : 'warn' };
  }
}

function errorCell(error: NotedError | null): Cell {
  return error === null ? '-' : { text: error.message, mood: 'bad' };
}

function timeText(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
