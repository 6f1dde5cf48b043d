// The judge of a torture run. It holds what every sink has against what the sandbox's ledger says could be read: each
// record in each sink, once where once is promised, character for character, and nothing that upstream never had. What a
// sink refused for good counts as accounted for while it is a dead letter. Each finding names uids, streams and places.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { runSluice } from '../support/cli.ts';
import { consumeAll } from '../support/kafka.ts';
import { firewallFindings } from './firewall-accounts.ts';
import type { Stage } from './stage.ts';

/** What one sink has: for each uid how often it came. */
export type Has = ReadonlyMap<string, number>;

/** An event as the file sink wrote it. */
export interface FiledEvent {
  readonly uid: string;
  readonly line: string;
  readonly log: string;
  readonly company: string;
  /** Upstream's own id; empty where there is none. */
  readonly id: string;
}

/** What a run came to. */
export interface Accounts {
  /** What is wrong; empty when nothing was lost, repeated, altered or invented. */
  readonly findings: readonly string[];
  /** Distinct events over all sinks. */
  readonly events: number;
  readonly sinks: Readonly<Record<string, { readonly repeats: number; readonly letters: number }>>;
  /** Events about the sources themselves, by class of message. */
  readonly conditions: number;
}

const examplesMax = 8;
const onceSinks = ['disk', 'lake'];

/** Adds everything up. The program may still run; what is on its way is then a finding. */
export async function takeAccounts(stage: Stage): Promise<Accounts> {
  const filed = filedEvents(stage.activeFile);
  const letters = await lettersOf(stage);
  const { rsyslog, kafka, posts, otel } = stage.receivers;
  const kafkaRecords = await consumeAll(stage.topic, {
    brokers: [kafka.addresses.plain],
    timeoutMs: 60_000,
  });
  const syslog = rsyslog.records().map((record) => ({
    record,
    uid: record.structuredData['sluice@32473']?.uid ?? 'without uid',
  }));
  const overTcp = syslog.filter(({ record }) => record.input === 'tcp');
  const overTls = syslog.filter(({ record }) => record.input === 'tls');
  const has: Readonly<Record<string, Has>> = {
    disk: counted(filed.map(({ uid }) => uid)),
    lake: counted(kafkaRecords.map(({ headers }) => String(headers.uid))),
    otel: new Map([...posts.otel.arrived].map(([uid, { times }]) => [uid, times])),
    post: new Map([...posts.post.arrived].map(([uid, { times }]) => [uid, times])),
    siem: counted(overTls.map(({ uid }) => uid)),
    archive: counted(overTcp.map(({ uid }) => uid)),
  };
  const all = new Set(Object.values(has).flatMap((sink) => [...sink.keys()]));
  const byUid = new Map(filed.map((event) => [event.uid, event]));
  const raws = new Map([...posts.post.arrived].map(([uid, { raw }]) => [uid, raw ?? '']));
  const lines = (texts: Iterable<readonly [uid: string, text: string]>, sink: string) =>
    differences(texts, byUid, sink);
  const findings = [
    ...Object.entries(has).flatMap(([sink, uids]) => {
      const missing = [...all].filter(
        (uid) => !uids.has(uid) && letters.get(sink)?.has(uid) !== true,
      );
      return told(`${sink} lacks`, missing, byUid);
    }),
    ...onceSinks.flatMap((sink) => {
      const twice = [...(has[sink] ?? [])].filter(([, times]) => times > 1).map(([uid]) => uid);
      return told(`${sink} repeats`, twice, byUid);
    }),
    ...ledgerFindings(stage, filed, raws),
    ...firewallFindings(stage, filed, raws),
    ...lines(
      kafkaRecords.map(({ headers, value }) => [String(headers.uid), value]),
      'lake',
    ),
    ...lines(
      overTcp.map(({ uid, record }) => [uid, record.msg.trim()]),
      'archive',
    ),
    ...overTls
      .filter(({ record }) => record.cef?.decoded !== true)
      .slice(0, examplesMax)
      .map(({ uid }) => `siem: ${uid} is no CEF that liblognorm can read`),
    ...otel.faults.slice(0, examplesMax).map((fault) => `otel got what is no OTLP: ${fault}`),
  ];
  const sinks = Object.fromEntries(
    Object.entries(has).map(([sink, uids]) => {
      const times = [...uids.values()].reduce((sum, n) => sum + n, 0);
      return [sink, { repeats: times - uids.size, letters: letters.get(sink)?.size ?? 0 }];
    }),
  );
  const conditions = filed.filter(({ log }) => log === 'sluice').length;
  return { findings, events: all.size, sinks, conditions };
}

/** Every event in the finished segments and the active one, in the order of the spool. */
export function filedEvents(activeFile: string): readonly FiledEvent[] {
  const dir = join(activeFile, '..');
  if (!existsSync(dir)) return [];
  const finished = readdirSync(dir)
    .filter((name) => /^events\.\d{16}(-\d+)?\.ndjson(\.gz)?$/.test(name))
    .sort();
  // A segment that is just being compressed is there under both names.
  const segments = finished.filter(
    (name) => name.endsWith('.gz') || !finished.includes(`${name}.gz`),
  );
  const paths = [...segments.map((name) => join(dir, name)), activeFile];
  return paths.flatMap((path) => {
    if (!existsSync(path)) return [];
    const bytes = readFileSync(path);
    const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    return text.split('\n').slice(0, -1).map(filedEvent);
  });
}

function filedEvent(line: string): FiledEvent {
  const { metadata } = JSON.parse(line) as {
    readonly metadata: {
      readonly uid: string;
      readonly log_name?: string;
      readonly tenant_uid?: string;
      readonly original_event_uid?: string;
    };
  };
  const { uid, log_name: log = '', tenant_uid: company = '' } = metadata;
  return { uid, line, log, company, id: metadata.original_event_uid ?? '' };
}

async function lettersOf(stage: Stage): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const args = ['dead-letters', 'list', '-c', stage.config, '--json'];
  const { stdout, stderr, exitCode } = await runSluice(args, stage.surroundings);
  if (exitCode !== 0) throw new Error(`dead-letters list ended with ${exitCode}: ${stderr}`);
  const letters = new Map<string, Set<string>>();
  for (const line of stdout.split('\n').filter((text) => text !== '')) {
    const { sink, uid } = JSON.parse(line) as { readonly sink: string; readonly uid: string };
    letters.set(sink, (letters.get(sink) ?? new Set()).add(uid));
  }
  return letters;
}

// Records need not have ids, and two may be the same text, so texts are counted.
function ledgerFindings(
  stage: Stage,
  filed: readonly FiledEvent[],
  raws: ReadonlyMap<string, string>,
): readonly string[] {
  return stage.sandbox.ledger().lists.flatMap((list) => {
    const [, company = '', name = ''] = /companies\/([^/]+)\/(\w+)$/.exec(list.path) ?? [];
    const log = { '': 'audit', events: 'events', web: 'web', all: 'alerts' }[name] ?? name;
    const mine = filed.filter((event) => event.log === log && event.company === company);
    const open = counted([...list.records()].map(({ text }) => text));
    const invented: string[] = [];
    let unread = 0;
    for (const { uid } of mine) {
      const raw = raws.get(uid);
      // What http lacks, or has refused for now, is told as such; here only what it has can be compared.
      if (raw === undefined) {
        unread += 1;
        continue;
      }
      const left = open.get(raw) ?? 0;
      if (left === 0) invented.push(`${uid}: ${raw.slice(0, 120)}`);
      else open.set(raw, left - 1);
    }
    const absent = [...open].filter(([, left]) => left > 0).map(([text]) => text.slice(0, 120));
    const lost = absent.length > unread ? absent : [];
    return [
      ...exampled(`${list.path}: of ${list.size} records never delivered`, lost),
      ...exampled(`${list.path}: delivered and not in the ledger, or too often`, invented),
    ];
  });
}

function differences(
  texts: Iterable<readonly [uid: string, text: string]>,
  byUid: ReadonlyMap<string, FiledEvent>,
  sink: string,
): readonly string[] {
  const altered: string[] = [];
  for (const [uid, text] of texts) {
    const line = byUid.get(uid)?.line;
    if (line !== undefined && line !== text) altered.push(uid);
  }
  return told(`${sink} has other content than the file for`, altered, byUid);
}

function told(
  what: string,
  uids: readonly string[],
  byUid: ReadonlyMap<string, FiledEvent>,
): readonly string[] {
  const where = (uid: string) => {
    const event = byUid.get(uid);
    return event === undefined ? uid : `${uid} (${event.log} ${event.company})`;
  };
  return exampled(what, uids.map(where));
}

function exampled(what: string, all: readonly string[]): readonly string[] {
  if (all.length === 0) return [];
  return [`${what}: ${all.length}`, ...all.slice(0, examplesMax).map((one) => `  ${one}`)];
}

function counted(all: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(one, (counts.get(one) ?? 0) + 1);
  return counts;
}
