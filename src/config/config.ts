// Reads and checks a config file: text, then a tree with the values of its references (`written.ts`), then typed blocks
// (`blocks.ts`), then checks between blocks (`checks.ts`), then a Config; or a ConfigError with all flaws. Nothing is
// opened but the files that the config names, and no server is contacted. Invariants: no text makes it throw anything
// else; no secret gets into a message.

import { join } from 'node:path';
import type { z } from 'zod';
import type { MemberSettings } from '../cluster/index.ts';
import { parseHostPort } from '../contracts/config.ts';
import {
  type DriftSettings,
  errorCodeOf,
  type Json,
  type LogLevel,
  type OtlpCollector,
  type Route,
  Secret,
} from '../contracts/index.ts';
import type { UpstreamSettings } from '../upstream/index.ts';
import { type Blocks, readBlocks, validParts } from './blocks.ts';
import { checkBlocks } from './checks.ts';
import { ConfigError, type Flaw, Flaws } from './flaws.ts';
import { stateIdentity } from './kafka-identity.ts';
import { plainValueOf, printOf, withCompanies } from './kept.ts';
import { parseListen } from './listen.ts';
import { prepareCommands, refreshCommands } from './prepare-commands.ts';
import { readFile, type Surroundings, whyUnreadable } from './references.ts';
import type { logBlock, stateBlock } from './shape.ts';
import { sinksOfOne, upstreamDigest } from './shards.ts';
import type { ConfiguredSink } from './sinks.ts';
import type { ConfiguredSource } from './sources.ts';
import { type StateDir, stateDirOf } from './state-dir.ts';
import { readWritten } from './written.ts';

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
  /** The text of the file, in which literal secrets are as written. */
  readonly text: Secret;
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
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFile(file, configEnv));
  } catch (error) {
    const isNoText = errorCodeOf(error) === 'ERR_ENCODING_INVALID_ENCODED_DATA';
    const message = isNoText
      ? 'the config is not UTF-8 text; save it as UTF-8'
      : `the config cannot be read: ${whyUnreadable(error)}${nextWithout(error)}`;
    throw new ConfigError(file, [{ line: 0, column: 0, path: '', message }]);
  }
  return parseConfig(text, file, configEnv);
}

/** The next step if there is no config yet. */
function nextWithout(error: unknown): string {
  return errorCodeOf(error) === 'ENOENT' ? '; `sluice init` writes one, -c names another' : '';
}

/** Checks a config's text; `file` is for messages. Throws a ConfigError with every flaw. */
export function parseConfig(text: string, file: string, configEnv: Surroundings): Config {
  const flaws = new Flaws();
  const tree = readWritten(text, configEnv, flaws);
  const blocks = tree && readBlocks(tree, configEnv, flaws);
  if (blocks) checkBlocks(blocks, configEnv, flaws);
  const config = blocks && configOf(blocks, file, configEnv);
  if (blocks && config === null && flaws.count === 0) {
    flaws.add(null, [], `this cannot be checked without ${flaws.unset.join(', ')}`);
  }
  if (config === null || flaws.count > 0) throw new ConfigError(file, flaws.list('error'));
  const [notices, ignored] = [flaws.list('notice'), flaws.list('ignored')];
  return { file, text: new Secret(() => text), ...config, notices, ignored, unset: flaws.unset };
}

/** The config of the valid blocks; null: an own block of the engine is invalid. */
function configOf(
  blocks: Blocks,
  file: string,
  configEnv: Surroundings,
): Omit<Config, 'file' | 'text' | 'notices' | 'ignored' | 'unset'> | null {
  const { tree, state, status, shutdown, log } = blocks;
  if (state === undefined || shutdown === undefined || log === undefined) return null;
  const parts = validParts(blocks);
  const listen = status === undefined ? null : parseListen(status.listen);
  const kept = plainValueOf(tree);
  const place = stateDirOf(state.dir, file, configEnv);
  const work = {
    state: {
      ...stateOf(state, place, parts.upstreams, kept),
      maxBytes: state.max_bytes,
      keepMs: state.keep,
      removedSinksMs: state.removed_sinks,
      sync: state.sync,
    },
    ...parts,
  };
  return {
    ...{ ...work, sinks: sinksOfOne(work), kept: withCompanies(kept, parts.upstreams) },
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

/** With Kafka the cache has a directory of its own: it must never replace a state. */
function stateOf(
  { kafka }: z.output<typeof stateBlock>,
  found: StateDir,
  upstreams: Config['upstreams'],
  kept: Json,
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
        print ??= printOf(kept);
        return print;
      },
    },
  };
}

function valuesOf<T, V>(of: Readonly<Record<string, T>>, value: (one: T) => V): Record<string, V> {
  return Object.fromEntries(Object.entries(of).map(([name, one]) => [name, value(one)]));
}
