// The real receivers of a torture run, one for each sink, with a bad network in front if requested. Their events are
// counted here; their faults are in the acts.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeCa, makeUntrustedCa } from '../support/certificates.ts';
import { type HttpReceiver, startHttpReceiver } from '../support/http-receiver.ts';
import { createTopic, type KafkaBroker, startKafka } from '../support/kafka.ts';
import { runDir } from '../support/once-per-run.ts';
import { type OtlpReceiver, type OtlpRecord, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { type Rsyslog, startRsyslog } from '../support/rsyslog.ts';
import { startTcpReceiver, type TcpReceiver } from '../support/tcp-receiver.ts';
import { type Arrival, Posts } from './posts.ts';
import { type NetworkProxy, startProxy } from './proxy.ts';
import type { Signs } from './signs.ts';
import { SyslogTally } from './syslog-tally.ts';
import { Trust } from './trust.ts';

/** The receivers of all sinks, and what stands in front of them. */
export interface Receivers {
  readonly rsyslog: Rsyslog;
  readonly syslog: SyslogTally;
  readonly kafka: KafkaBroker;
  readonly otel: OtlpReceiver;
  readonly post: HttpReceiver;
  readonly posts: { readonly otel: Posts; readonly post: Posts };
  /** In front of rsyslog's TLS port. */
  readonly siem: NetworkProxy;
  /** In front of rsyslog's TCP port. */
  readonly archive: NetworkProxy;
  /** In front of the sandbox. */
  readonly upstream: NetworkProxy;
  /** Accepts TLS connections with the certificate of an authority that is not trusted at the start. */
  readonly impostor: TcpReceiver;
  /** Whom the program trusts at the two receivers that speak TLS. */
  readonly trust: { readonly siem: Trust; readonly post: Trust };
}

/** The two Kafka sinks, one for each driver; their topics and transactional ids are called as they are. */
export const kafkaSinks = ['lake', 'river'] as const;

/** A run of an hour uses a tenth. */
const syslogBytesMax = 64 * 1024 ** 3;

/** Starts them all. */
export async function startReceivers(
  dir: string,
  { signs, upstreamPort }: { readonly signs: Signs; readonly upstreamPort: number },
): Promise<Receivers> {
  const authorities = [await makeCa(), await makeUntrustedCa()] as const;
  const trustAt = (name: string) => new Trust(join(dir, `${name}-ca.pem`), authorities);
  const trust = { siem: trustAt('siem'), post: trustAt('post') };
  const [rsyslog, kafka, otel, post, impostor] = await Promise.all([
    startRsyslog({ tls: trust.siem.current, fileBytesMax: syslogBytesMax }),
    startKafka(),
    startOtlpReceiver({ keep: false }),
    startHttpReceiver({ tls: trust.post.current, keep: false }),
    startTcpReceiver({ tls: trust.siem.stranger }),
  ]);
  for (const topic of kafkaSinks) await createTopic([kafka.addresses.plain], topic);
  const posts = { otel: new Posts('otel', signs), post: new Posts('post', signs) };
  otel.answer(({ records }) => posts.otel.take(records.map(arrivalOf)));
  post.answer(async ({ body }) => {
    const answer = await posts.post.take(arrivalsIn(body));
    if (answer.answer === 'accept') return { answer: 'reply', status: 200 };
    return answer.answer === 'partly' ? { answer: 'reply', status: 400 } : answer;
  });
  const reported = (sign: string) => () => signs.give(sign);
  return {
    ...{ rsyslog, kafka, otel, post, posts, trust, impostor },
    syslog: new SyslogTally(rsyslog),
    siem: await startProxy(rsyslog.tlsPort, { sent: reported('siem sent'), endsInTurn: true }),
    archive: await startProxy(rsyslog.tcpPort, {
      sent: reported('archive sent'),
      ended: reported('archive confirmed'),
      endsInTurn: true,
    }),
    upstream: await startProxy(upstreamPort, { answered: reported('upstream answered') }),
  };
}

/** Ends them all. */
export async function endReceivers(receivers: Receivers): Promise<void> {
  const { rsyslog, kafka, otel, post, siem, archive, upstream, impostor } = receivers;
  await Promise.all([siem.close(), archive.close(), upstream.close(), otel.close(), post.close()]);
  await Promise.all([rsyslog.kill(), kafka.kill(), impostor.close()]);
}

/** The log of a partition on the run's own broker; null where it cannot be seen. */
export function partitionLog(partition: string): string | null {
  const logs = readdirSync(runDir())
    .filter((name) => name.startsWith('kafka-'))
    .map((name) => join(runDir(), name, 'log'));
  const mine = logs.find((log) => existsSync(join(log, `${kafkaSinks[0]}-0`)));
  return mine === undefined ? null : join(mine, partition, '00000000000000000000.log');
}

function arrivalOf(record: OtlpRecord): Arrival {
  const { attributes } = record;
  return {
    uid: String(attributes['log.record.uid']),
    raw: String(attributes['log.record.original']),
    content: JSON.stringify(record, (_key, value) =>
      typeof value === 'bigint' ? `${value}n` : value,
    ),
  };
}

// The record stands at the end of the line; without it the line is what the file sink writes.
const rawData = /,"raw_data_size":\d+,"raw_data":"(?:[^"\\]|\\.)*"\}$/;

function arrivalsIn(body: Buffer): readonly Arrival[] {
  const lines = body.toString('utf8').split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const { metadata, raw_data } = JSON.parse(line) as {
        readonly metadata: { readonly uid: string };
        readonly raw_data: string;
      };
      return { uid: metadata.uid, raw: raw_data, content: line.replace(rawData, '}') };
    });
}
