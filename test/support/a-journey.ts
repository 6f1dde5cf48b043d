// A journey of the real program: one upstream (edge.ts), a directory, and configs in it that read the upstream's audit
// events. With brokers the state is in Kafka, and each config is one process of a deployment with a prefix of its own.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runSluice, startSluice } from './cli.ts';
import { anEdge } from './edge.ts';
import { tempDir } from './temp.ts';

/** What differs between the configs of a journey. */
interface ConfigWishes {
  /** Directory of the state, within the journey's; default: the name of the config. */
  readonly state?: string;
  /** More keys of `state`, each after a comma. */
  readonly stateKeys?: string;
  /** More keys of `state.kafka`. */
  readonly kafka?: string;
  /** The source's keys, without type and upstream. */
  readonly source?: string;
  /** More lines of `sources`. */
  readonly otherSources?: string;
  /** The lines of `sinks`; default: a file, `out.ndjson`. */
  readonly sinks?: string;
  /** More top blocks. */
  readonly more?: string;
}

interface JourneyWishes extends ConfigWishes {
  /** Audit events of the upstream at the start. */
  readonly events: number;
  /** Brokers of a state in Kafka; default: the state is in the directory. */
  readonly brokers?: readonly string[];
  /** More variables of the program. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A journey; its configs have these settings unless `configure` sets others. */
export async function aJourney({ events, brokers, env: more = {}, ...usual }: JourneyWishes) {
  const { sandbox, upstreams, env: own } = await anEdge(events);
  const env = { ...own, ...more };
  const dir = tempDir();
  const at = (file: string) => join(dir, file);
  const prefix = `p-${crypto.randomUUID()}`;
  const configure = (name = 'sluice', wishes: ConfigWishes = {}): string => {
    const {
      state = name,
      stateKeys = '',
      kafka,
      source = 'every: 1s',
      otherSources = '',
      sinks,
      more: blocks = '',
    } = { ...usual, ...wishes };
    const log = `brokers: ${JSON.stringify(brokers)}, prefix: ${prefix}`;
    const inKafka =
      brokers === undefined ? '' : `, kafka: { ${log}${kafka === undefined ? '' : `, ${kafka}`} }`;
    writeFileSync(
      at(`${name}.yaml`),
      `state: { dir: ${at(state)}${stateKeys}${inKafka} }
${upstreams}
sources:
  audit: { type: audit_events, upstream: edge, ${source} }
${otherSources}
sinks:
${sinks ?? `  disk: { type: file, path: ${at('out.ndjson')}, format: json }`}
${blocks}
`,
    );
    return at(`${name}.yaml`);
  };
  return {
    ...{ dir, at, prefix, sandbox, env, configure },
    /** So many events more. */
    grow: (count: number) => sandbox.control.grow('/v1/audit/events', count),
    start: (config: string) => startSluice(['run', '-c', config], { env }),
    once: (config: string, others: JourneyWishes['env'] = {}) =>
      runSluice(['run', '-c', config, '--once'], { env: { ...env, ...others } }),
    /** Uids of the events in `out.ndjson`, in order. */
    uids: () => uidsIn(at('out.ndjson')),
  };
}

/** Uids of the events in a file of JSON lines, in order; none while the file does not exist. A line under way is left out. */
export function uidsIn(file: string): readonly string[] {
  return existsSync(file) ? metadataOf(readFileSync(file, 'utf8')).map(({ uid }) => uid) : [];
}

/** As `uidsIn`, of a text, without sluice's own events. */
export function uidsOfRecords(text: string): readonly string[] {
  return metadataOf(text).flatMap(({ uid, log_name: log }) => (log === 'sluice' ? [] : [uid]));
}

interface Metadata {
  readonly uid: string;
  readonly log_name?: string;
}

function metadataOf(text: string): readonly Metadata[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => (JSON.parse(line) as { metadata: Metadata }).metadata);
}
