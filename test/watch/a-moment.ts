// A made-up journey as the status server receives it: everything well, unless a test changes a part.

import { once } from 'node:events';
import {
  type ClientRequestArgs,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
} from 'node:http';
import { ExportError } from '../../src/contracts/errors.ts';
import { Secret } from '../../src/contracts/secret.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { timeText } from '../../src/tools/time-text.ts';
import type { Role } from '../../src/watch/access.ts';
import type { ClusterStatus, ProcessStatus } from '../../src/watch/cluster-status.ts';
import type { Ailment } from '../../src/watch/health.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import type {
  LiveError,
  LiveSink,
  LiveStream,
  StoredUpstream,
} from '../../src/watch/status-facts.ts';
import {
  type StatusServer,
  type StatusSettings,
  serveStatus,
} from '../../src/watch/status-server.ts';
import type { EventTap } from '../../src/watch/tail.ts';
import { noLog } from '../support/plain-upstream.ts';
import { afterThisTest } from '../support/temp.ts';

/** A time in the form of a status, from epoch milliseconds. */
export const at: (ms: number | null) => string | null = timeText;

/** An upstream that never ends, or as `parts` say. */
export function anEnd(name: string, parts: Partial<StoredUpstream> = {}): StoredUpstream {
  const never = {
    ends_at: null,
    days_left: null,
    ends_endpoint: null,
    ends_earlier: null,
    moved: false,
  };
  return { name, ...never, ends_from: 'default', ...parts };
}

/** A failure with this message. */
export function aFailure(message = 'it did not work'): NonNullable<LiveError> {
  const ids = { upstream_code: null, request_id: null, trace_id: null };
  return { code: 'sink_unreachable', message, next: 'Look.', ...ids };
}

/** The obstacle of a stream. */
export function anAilment(name: string, reason: Ailment['reason'], error = aFailure()): Ailment {
  return { part: 'stream', name, reason, what: 'is unwell', error, message: `${name} is unwell` };
}

/** The obstacle of a stream of a company. */
export function anAilmentOf(
  owner: NonNullable<Ailment['owner']>,
  name: string,
  reason: Ailment['reason'],
  error = aFailure(),
): Ailment {
  return { ...anAilment(name, reason, error), owner };
}

/** A stream that was read to its tail. */
export function aStream(parts: Partial<LiveStream> = {}): LiveStream {
  return {
    ...{ name: 'audit', source: 'audit', upstream: 'edge', state: 'waiting', well: true },
    ...{ polls: 3, polls_skipped: 0, records: 100, records_per_s: 0, polled_at: null, up_to: null },
    order: 'newest_first',
    caught_up_at: '2026-01-01T00:00:00.000Z',
    checkpoint_at: '2026-01-01T00:00:00.000Z',
    newest_record_at: '2026-01-01T00:00:00.000Z',
    ...{
      next_poll_at: null,
      lag_ms: null,
      waits_for: null,
      silent_since: null,
      budget: null,
      error: null,
    },
    ...parts,
  };
}

/** A sink that has everything. */
export function aSink(parts: Partial<LiveSink> = {}): LiveSink {
  return {
    ...{ name: 'siem', type: 'syslog', state: 'idle', well: true },
    ...{ position: 100, backlog: 0, up_to: null, delivered: 100, retries: 0 },
    ...{ drained_in_ms: null, due_in_ms: null, events_per_s: 0 },
    ...{
      dead_letters: 0,
      dead_letter_reasons: [],
      error: null,
      notice: null,
      suspects: null,
      set_aside: [],
    },
    ...parts,
  };
}

/** A spool with room. */
export function aSpool(parts: Partial<StatusMoment['spool']> = {}): StatusMoment['spool'] {
  return {
    ...{ well: true, bytes: 1_000, max_bytes: 1_000_000, events: 10, end: 100 },
    ...{ oldest_at: '2026-01-01T00:00:00.000Z', full_in_ms: null },
    ...parts,
  };
}

/** A journey of one stream and one sink; streams are polled each second. */
export function aMoment(parts: Partial<StatusMoment> = {}): StatusMoment {
  const { streams = [aStream()] } = parts;
  return {
    upstreams: [
      { ...anEnd('edge'), base_url: 'https://edge.example', throttles: [], end_of_life: [] },
    ],
    streams,
    spool: aSpool(),
    sinks: [aSink()],
    conditions: [],
    filters: [],
    transcoded: [],
    lookups: [],
    removed_sinks: [],
    successions: [],
    unread_times: [],
    config_differences: [],
    reload_refused: null,
    standing_by: null,
    intervals: new Map(streams.map(({ name }) => [name, 1_000])),
    refused: new Map(),
    found: [],
    logLinesLost: null,
    ...parts,
  };
}

/** A process of a cluster that works. */
export function aProcess(parts: Partial<ProcessStatus> = {}): ProcessStatus {
  return {
    ...{ instance: 'sluice-0', host: 'node-a.example', pid: 17, address: '10.0.0.1' },
    ...{ state: 'working', shards: [0], sinks: [] },
    ...{ started_at: '2026-01-01T00:00:00.000Z', works_since: '2026-01-01T00:00:00.000Z' },
    ...parts,
  };
}

/** A state in Kafka of six shards, with one process. */
export function aCluster(parts: Partial<ClusterStatus> = {}): ClusterStatus {
  return {
    ...{
      prefix: 'sluice',
      shards: 6,
      processes: [aProcess()],
      config_differences: [],
      takeovers: 0,
      fenced: [],
    },
    ...{ unowned: null, streams: [], sinks: [] },
    ...parts,
  };
}

/** Events that are these lines, returned once. */
export function aTap(texts: readonly string[]): EventTap {
  const lines = texts.map((text, index) => ({ stream: 'audit', severity: index + 1, text }));
  return {
    forms: ['readable', 'json', 'cef', 'sink siem'],
    open(wish) {
      if (wish.where === 'not CEL') {
        throw new ExportError('config_invalid', 'where: not CEL', { next: 'Mend it.' });
      }
      let isReported = false;
      return {
        async take(signal) {
          if (isReported) await once(signal, 'abort');
          isReported = true;
          const shown = lines.filter(({ text }) => text.includes(wish.text));
          return { lines: shown, looked: lines.length, missed: 0, unjudged: 0 };
        },
      };
    },
  };
}

/** Serves the results of `look` on a free loopback port, until the test ends. */
export async function aServer(
  look: () => StatusMoment,
  parts: Partial<Omit<StatusSettings, 'token' | 'tokens' | 'basicAuth'>> & {
    readonly token?: string;
    readonly tokens?: Readonly<Partial<Record<Role, string | (() => string)>>>;
    readonly basicAuth?: readonly [username: string, password: string];
  } = {},
): Promise<StatusServer> {
  const { token, tokens, basicAuth, ...rest } = parts;
  const [username = '', password = ''] = basicAuth ?? [];
  const server = await serveStatus({
    host: '127.0.0.1',
    port: 0,
    look,
    clock: systemClock(),
    log: noLog,
    ...rest,
    token: token === undefined ? null : new Secret(() => token),
    tokens:
      tokens === undefined
        ? null
        : Object.fromEntries(
            Object.entries(tokens).map(([role, text]) => [
              role,
              new Secret(typeof text === 'string' ? () => text : text),
            ]),
          ),
    basicAuth: basicAuth === undefined ? null : { username, password: new Secret(() => password) },
  });
  afterThisTest(() => server.close());
  return server;
}

/** One answer. */
export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request with full control of method and headers, which `fetch` does not give. */
export function ask(url: string, options: ClientRequestArgs = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { ...options, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response
        .on('error', reject)
        .on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
    });
    asked.on('error', reject).end();
  });
}

/** A listener of server-sent events; it leaves with the test. */
export async function listenTo(url: string, headers: Readonly<Record<string, string>> = {}) {
  const asked = request(url, { agent: false, headers }).end();
  const [response]: [IncomingMessage] = (await once(asked, 'response')) as [IncomingMessage];
  let text = '';
  response.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  response.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => response.on('close', resolve));
  afterThisTest(() => asked.destroy());
  return {
    status: response.statusCode ?? 0,
    text: () => text,
    names: () => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name),
    leave: () => asked.destroy(),
    ended,
  };
}
