// The judge of a torture run. It compares every sink with the sandbox's ledger: each record in each sink, once if the
// sink promises once, character for character, and no record that upstream never had. An event that a sink rejected
// permanently counts while it is a dead letter. Each finding names uids, streams and paths.

import { runSluice } from '../support/cli.ts';
import { consumeAll, type KafkaBroker } from '../support/kafka.ts';
import type { Arrivals } from './arrivals.ts';
import { digestOf } from './digest.ts';
import type { FiledEvent } from './filed.ts';
import { firewallFindings } from './firewall-accounts.ts';
import { kafkaSinks } from './receivers.ts';
import type { Stage } from './stage.ts';

/** What one sink has: for each uid how often it came. */
export type Has = ReadonlyMap<string, number>;

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
const onceSinks = ['disk', ...kafkaSinks];

/** Adds everything up. The program may still run; what is on its way is then a finding. */
export async function takeAccounts(stage: Stage): Promise<Accounts> {
  const { kafka, posts, otel, syslog } = stage.receivers;
  const filed = stage.filed.read();
  const letters = await deadLettersOf(stage);
  const inKafka = await Promise.all(kafkaSinks.map((sink) => recordsOf(kafka, sink)));
  syslog.read();
  const has: Readonly<Record<string, Has>> = {
    disk: counted(filed.map(({ uid }) => uid)),
    ...Object.fromEntries(
      inKafka.map(({ sink, digests }) => [sink, counted(digests.map(([uid]) => uid))]),
    ),
    otel: posts.otel.arrived.times,
    post: posts.post.arrived.times,
    siem: syslog.tls.times,
    archive: syslog.tcp.times,
  };
  const all = new Set(Object.values(has).flatMap((sink) => [...sink.keys()]));
  const byUid = new Map(filed.map((event) => [event.uid, event]));
  const rawOf = (uid: string) => posts.post.raws.get(uid) ?? posts.otel.raws.get(uid);
  const sameAsFile = (digests: Iterable<readonly [uid: string, digest: string]>, sink: string) =>
    differences(digests, { sink, byUid, own: (uid) => byUid.get(uid)?.digest });
  const findings = [
    ...Object.entries(has).flatMap(([sink, uids]) => {
      const missing = [...all].filter(
        (uid) => !uids.has(uid) && letters.get(sink)?.has(uid) !== true,
      );
      return reported(`${sink} lacks`, missing, byUid);
    }),
    ...onceSinks.flatMap((sink) => {
      const twice = [...(has[sink] ?? [])].filter(([, times]) => times > 1).map(([uid]) => uid);
      return reported(`${sink} repeats`, twice, byUid);
    }),
    ...ledgerFindings(stage, filed, rawOf),
    ...firewallFindings(stage, filed, rawOf),
    ...inKafka.flatMap(({ sink, digests }) => sameAsFile(digests, sink)),
    ...sameAsFile(syslog.tcp.digests(), 'archive'),
    ...sameAsFile(posts.post.arrived.digests(), 'post'),
    ...differences(posts.otel.raws, { sink: 'otel', byUid, own: rawOf }),
    ...Object.entries(repeatable(stage)).flatMap(([sink, { altered }]) =>
      reported(`${sink} got different contents under the same uid`, altered, byUid),
    ),
    ...syslog.faults.slice(0, examplesMax).map((fault) => `siem: ${fault}`),
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

/** What a reader of committed records sees in a Kafka sink's topic. */
async function recordsOf({ addresses }: KafkaBroker, sink: string) {
  const records = await consumeAll(sink, { brokers: [addresses.plain], timeoutMs: 60_000 });
  const digests = records.map(
    ({ headers, value }) => [String(headers.uid), digestOf(value)] as const,
  );
  return { sink, digests };
}

/** What the sinks have got that may repeat. */
export function repeatable({
  receivers: { posts, syslog },
}: Stage): Readonly<Record<string, Arrivals>> {
  return {
    otel: posts.otel.arrived,
    post: posts.post.arrived,
    siem: syslog.tls,
    archive: syslog.tcp,
  };
}

async function deadLettersOf(stage: Stage): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
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
  rawOf: (uid: string) => string | undefined,
): readonly string[] {
  return stage.sandbox.ledger().lists.flatMap((list) => {
    const [, company = '', name = ''] = /companies\/([^/]+)\/(\w+)$/.exec(list.path) ?? [];
    const log = { '': 'audit', events: 'events', web: 'web', all: 'alerts' }[name] ?? name;
    const mine = filed.filter((event) => event.log === log && event.company === company);
    const open = counted([...list.records()].map(({ text }) => text));
    const invented: string[] = [];
    let unread = 0;
    for (const { uid } of mine) {
      const raw = rawOf(uid);
      // Missing records are reported separately; here only arrived ones can be compared.
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

interface Compared {
  readonly sink: string;
  readonly byUid: ReadonlyMap<string, FiledEvent>;
  /** What it is held against; undefined where there is nothing. */
  readonly own: (uid: string) => string | undefined;
}

function differences(
  contents: Iterable<readonly [uid: string, content: string]>,
  { sink, byUid, own }: Compared,
): readonly string[] {
  const altered: string[] = [];
  for (const [uid, content] of contents) if ((own(uid) ?? content) !== content) altered.push(uid);
  return reported(`${sink} has other content than the file or http for`, altered, byUid);
}

function reported(
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
