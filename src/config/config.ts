// Reads and checks a config file. Nothing is opened and no server is contacted: text, environment and named files go
// in; a Config comes out, or a ConfigError with all flaws. Invariants: no text makes it throw anything else; no secret
// gets into a message.

import { join } from 'node:path';
import { LineCounter } from 'yaml';
import type { z } from 'zod';
import type { MemberSettings } from '../cluster/index.ts';
import { parseHostPort } from '../contracts/config.ts';
import type {
  DriftSettings,
  Json,
  LogLevel,
  OtlpCollector,
  Route,
  Secret,
} from '../contracts/index.ts';
import { unknownKey } from '../tools/index.ts';
import {
  type UpstreamBlock,
  type UpstreamSettings,
  upstreamFields,
  upstreamFlaws,
} from '../upstream/index.ts';
import { type BlockReading, parseBlock } from './block.ts';
import { readCompanies } from './companies.ts';
import { withCompanions } from './companions.ts';
import { ConfigError, type Flaw, Flaws } from './flaws.ts';
import { stateIdentity } from './kafka-identity.ts';
import { plainValueOf, withCompanies } from './kept.ts';
import { parseListen } from './listen.ts';
import { checkMasks } from './masks.ts';
import { checkParents } from './parents.ts';
import { plainSecretNotices } from './plain-secrets.ts';
import { prepareCommands, refreshCommands } from './prepare-commands.ts';
import { printOf } from './print.ts';
import { proxyNotice } from './proxy-notices.ts';
import { readFile, type Surroundings, whyUnreadable } from './references.ts';
import { checkResidency } from './residency.ts';
import { readRoutes, unroutedNotices } from './routes.ts';
import { type NamedBlock, readSection, reportBlockFlaw, type Section } from './section.ts';
import {
  logBlock,
  maskBlock,
  shutdownBlock,
  stateBlock,
  statusBlock,
  topKeys,
  upstreamBlock,
} from './shape.ts';
import { checkShards, sinksOfOne, upstreamDigest } from './shards.ts';
import { type ConfiguredSink, ignoredKeyNotices, readSinks } from './sinks.ts';
import { type ConfiguredSource, readSources } from './sources.ts';
import { type StateDir, stateDirOf } from './state-dir.ts';
import { checkSuccession, withAuditRecords, withSuccessors } from './succession.ts';
import { checkTlsFiles } from './tls-files.ts';
import { readWatch } from './watch.ts';
import { readWritten, type WrittenValue } from './written.ts';

export { ConfigError, flawText } from './flaws.ts';
export type { Surroundings } from './references.ts';

/** A complete config. Names are keys; records have own properties only. */
export interface Config {
  /** The path as it was given. */
  readonly file: string;
  readonly state: StateDir & {
    readonly maxBytes: number;
    readonly keepMs: number;
    /** How long pages are kept for a sink that no running config has, milliseconds. */
    readonly removedSinksMs: number;
    readonly sync: 'full' | 'normal';
    /** Kafka as the authoritative state, with the database as its cache; null: the database is authoritative. */
    readonly kafka: MemberSettings | null;
  };
  readonly upstreams: Readonly<Record<string, UpstreamSettings>>;
  readonly sources: Readonly<Record<string, ConfiguredSource>>;
  readonly sinks: Readonly<Record<string, ConfiguredSink>>;
  /** Empty: every source to every sink. */
  readonly routes: readonly Route[];
  readonly watch: { readonly drift: DriftSettings | null };
  readonly status: {
    readonly host: string;
    readonly port: number;
    readonly token: Secret | null;
    /** By what they allow. */
    readonly tokens:
      | {
          readonly [R in 'view' | 'events' | 'act']?: Secret | undefined;
        }
      | null;
    readonly basicAuth: { readonly username: string; readonly password: Secret } | null;
    /** The share of the streams that must advance for /readyz to answer 200. */
    readonly readyShare: number;
    readonly tail: boolean;
    readonly telemetry: (OtlpCollector & { readonly everyMs: number }) | null;
  } | null;
  readonly shutdown: { readonly timeoutMs: number };
  readonly log: { readonly level: LogLevel; readonly otlp: OtlpCollector | null };
  /** The config as written, without its secrets, for commands that inspect a running process. */
  readonly kept: Json;
  /** References with a placeholder instead of a value, as written; each once. */
  readonly unset: readonly string[];
  /** Allowed settings that may be mistakes, e.g. a source without a route; for `check`. */
  readonly notices: readonly Flaw[];
  /** Keys of older versions that no longer have an effect; for `check` and for the log of `run`. */
  readonly ignored: readonly Flaw[];
}

/** As `readConfig`, once the commands of `${exec:…}` have run that have no value yet. Rejects with a ConfigError. */
export async function loadConfig(file: string, configEnv: Surroundings): Promise<Config> {
  await prepareCommands(file, configEnv);
  return readConfig(file, configEnv);
}

/** As `loadConfig`, for a reload: commands that have a value run again, at most once in 30 s. */
export async function reloadConfig(file: string, configEnv: Surroundings): Promise<Config> {
  await refreshCommands(file, configEnv);
  return readConfig(file, configEnv);
}

/** Reads and checks a config file. Throws a ConfigError with every flaw. */
export function readConfig(file: string, configEnv: Surroundings = { env: process.env }): Config {
  const whole = (message: string) =>
    new ConfigError(file, [{ line: 0, column: 0, path: '', message }]);
  let bytes: Uint8Array;
  try {
    bytes = readFile(file, configEnv);
  } catch (error) {
    throw whole(`the config cannot be read: ${whyUnreadable(error)}`);
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw whole('the config is not UTF-8 text');
  }
  return parseConfig(text, file, configEnv);
}

/** Checks a config's text; `file` is for messages. Throws a ConfigError with every flaw. */
export function parseConfig(text: string, file: string, configEnv: Surroundings): Config {
  const lines = new LineCounter();
  const flaws = new Flaws(lines);
  const [notices, ignored] = [new Flaws(lines), new Flaws(lines)];
  const top = readWritten(text, { lines, flaws, around: configEnv });
  const config =
    top === null ? null : readTop(top, file, { flaws, around: configEnv, notices, ignored });
  if (top !== null) plainSecretNotices(top, notices);
  if (top !== null && config === null && flaws.count === 0) {
    flaws.add(null, [], `this cannot be checked without ${flaws.unset.join(', ')}`);
  }
  if (top === null || config === null || flaws.count > 0) throw new ConfigError(file, flaws.list);
  const found = { notices: notices.list, ignored: ignored.list, unset: flaws.unset };
  return { file, ...config, kept: withCompanies(plainValueOf(top), config.upstreams), ...found };
}

function readTop(
  top: WrittenValue,
  file: string,
  reading: BlockReading & { readonly notices: Flaws; readonly ignored: Flaws },
): Omit<Config, 'file' | 'kept' | 'notices' | 'ignored' | 'unset'> | null {
  const { flaws } = reading;
  if (top.children === null || Array.isArray(top.value)) {
    const empty = top.value === null || top.value === undefined;
    const what = empty ? 'the config is empty' : 'a config is a mapping';
    if (!top.broken) flaws.add(empty ? null : top.at, [], `${what}; it needs ${neededKeys}`);
    return null;
  }
  for (const [key, { keyAt }] of top.children) {
    if (topKeys.some((known) => known === key)) continue;
    flaws.add(keyAt, [String(key)], unknownKey(String(key), topKeys));
  }
  const at = (key: (typeof topKeys)[number]) => ({ written: top.children?.get(key), path: [key] });
  const state = parseBlock(stateBlock, at('state'), reading);
  const status = parseBlock(statusBlock, at('status'), reading);
  const shutdown = parseBlock(shutdownBlock, at('shutdown'), reading);
  const log = parseBlock(logBlock, at('log'), reading);
  for (const key of ['status', 'log'] as const) {
    const written = top.children.get(key)?.children?.get('otlp');
    if (written !== undefined) checkTlsFiles({ written, path: [key, 'otlp'] }, reading);
  }

  const kafka = top.children.get('state')?.children?.get('kafka');
  if (kafka !== undefined) checkTlsFiles({ written: kafka, path: ['state', 'kafka'] }, reading);

  const upstreams = readUpstreams(readSection(top, 'upstreams', reading), reading);
  const written = readSources(readSection(top, 'sources', reading), upstreams, reading);
  const sinks = readSinks(readSection(top, 'sinks', reading), reading);
  ignoredKeyNotices(sinks, reading.ignored);
  checkParents(written, reading);
  checkSuccession(written, reading);
  const sources = withAuditRecords(written);
  const named = readRoutes(at('routes').written, { sources, sinks }, reading);
  const mask = parseBlock(maskBlock, at('mask'), reading);
  const isMaskSet = at('mask').written !== undefined;
  const keyed = named.map((route) =>
    route.mask === undefined ? route : { ...route, maskKey: mask?.key },
  );
  const routes = withSuccessors(keyed, { sources }, reading);
  checkMasks(routes, { written: at('routes').written, sinks, isMaskSet }, reading);
  checkResidency({ upstreams, ends: { sources, sinks }, routes }, reading.flaws);
  const drift = readWatch(at('watch').written, sources, reading);
  unroutedNotices(routes, { sources, sinks }, reading.notices);

  if (state === undefined || shutdown === undefined || log === undefined) return null;
  const listen = status === undefined ? null : parseListen(status.listen);
  const found = stateOf(
    state,
    stateDirOf(state.dir, file, reading.around),
    readable(upstreams),
    () => plainValueOf(top),
  );
  const work = {
    state: {
      ...found,
      maxBytes: state.max_bytes,
      keepMs: state.keep,
      removedSinksMs: state.removed_sinks,
      sync: state.sync,
    },
    upstreams: readable(upstreams),
    sources: readable(sources),
    ...withCompanions(readable(sinks), routes),
    watch: { drift },
  };
  checkShards(work, { flaws, at: kafka?.children?.get('shards')?.at ?? null });
  return {
    ...{ ...work, sinks: sinksOfOne(work) },
    status:
      status === undefined || listen === null
        ? null
        : {
            ...listen,
            token: status.token ?? null,
            tokens: status.tokens ?? null,
            basicAuth: status.basic_auth ?? null,
            readyShare: status.ready.streams,
            tail: status.tail,
            telemetry: status.otlp
              ? { ...collectorOf(status.otlp), everyMs: status.otlp.every }
              : null,
          },
    shutdown: { timeoutMs: shutdown.timeout },
    log: { level: log.level, otlp: log.otlp ? collectorOf(log.otlp) : null },
  };
}

function collectorOf({
  url,
  headers = {},
  tls,
}: NonNullable<z.output<typeof logBlock>['otlp']>): OtlpCollector {
  return { url, headers, tls };
}

const neededKeys = 'upstreams, sources and sinks';

/** The readable entries by name. */
function readable<T>(section: Section<T>): Readonly<Record<string, T>> {
  const settled = [...section.entries.values()].flatMap(({ name, settings }): [string, T][] =>
    settings === null ? [] : [[name, settings]],
  );
  return Object.fromEntries(settled);
}

function readUpstreams(section: Section<null>, reading: BlockReading): Section<UpstreamSettings> {
  return section.map((entry: NamedBlock<null>) => {
    const settings: UpstreamBlock | null = parseBlock(upstreamBlock, entry, reading) ?? null;
    // An unreadable credential has been reported already and must not count as missing too.
    const auth = entry.written.children?.get('auth');
    const isBroken = [...(auth?.children?.values() ?? [])].some(({ broken }) => broken);
    const flaws = isBroken ? [] : upstreamFlaws(settings ?? rightKeys(entry));
    const before = reading.flaws.count;
    for (const flaw of flaws) reportBlockFlaw(flaw, entry, reading);
    const isRight = reading.flaws.count === before;
    if (settings === null) return null;
    checkTlsFiles(entry, reading);
    proxyNotice(settings, entry, reading);
    const companies = readCompanies(settings, entry, reading);
    return isRight && companies !== null ? { ...settings, ...companies } : null;
  });
}

/** The valid keys of a block with an invalid one, so that their flaws are reported in the same run. */
function rightKeys({ written }: NamedBlock<null>): Partial<UpstreamBlock> {
  const right = Object.entries(upstreamFields).flatMap(([key, field]) => {
    const parsed = field.safeParse(written.children?.get(key)?.value);
    return parsed.success ? [[key, parsed.data]] : [];
  });
  return Object.fromEntries(right);
}

/** With Kafka the cache has a directory of its own: it must never replace a state. */
function stateOf(
  { kafka }: z.output<typeof stateBlock>,
  found: StateDir,
  upstreams: Config['upstreams'],
  kept: () => Json,
): StateDir & Pick<Config['state'], 'kafka'> {
  if (kafka === undefined) return { ...found, kafka: null };
  const cacheIn = (dir: string) => join(dir, `kafka-${kafka.prefix}`);
  const places = found.places.map(cacheIn);
  const {
    session_timeout: sessionMs,
    replication_factor: replicationFactor,
    leave_at_end: leavesAtEnd,
    deployment: deploymentName,
    sasl,
    ...settings
  } = kafka;
  const brokers = kafka.brokers.map(parseHostPort).filter((address) => address !== null);
  let print: ReturnType<typeof printOf> | undefined;
  return {
    ...found,
    dir: cacheIn(found.dir),
    places,
    kafka: {
      ...{ ...settings, brokers, sessionMs, replicationFactor, leavesAtEnd, deploymentName },
      sasl: sasl && stateIdentity(sasl, kafka.tls),
      deployment: () => Object.values(upstreams).map(upstreamDigest),
      upstreams: () => ({
        addresses: valuesOf(upstreams, (one) => one.base_url),
        digests: valuesOf(upstreams, upstreamDigest),
      }),
      config: () => {
        print ??= printOf(kept());
        return print;
      },
    },
  };
}

function valuesOf<T, V>(of: Readonly<Record<string, T>>, value: (one: T) => V): Record<string, V> {
  return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, value(one)]));
}
