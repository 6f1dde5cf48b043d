// Journeys for the page to show: one that is busy with several of everything, and one made of text that wants to be markup.

import type { ClusterStatus } from '../../src/watch/cluster-status.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import type { LiveStream } from '../../src/watch/status-facts.ts';
import {
  aCluster,
  aFailure,
  aMoment,
  anEnd,
  aProcess,
  aSink,
  aSpool,
  aStream,
  at,
} from './a-moment.ts';

/** Markup and script in every field whose text can come from elsewhere. */
export const hostile = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>"'><svg onload=window.pwned=1>{{7*7}}`;

/** That text wherever there can be text. */
export function hostileJourney(): StatusMoment {
  const error = { ...aFailure(hostile), next: hostile, request_id: hostile, trace_id: hostile };
  return aMoment({
    upstreams: [
      {
        ...anEnd(hostile, {
          ...{ ends_at: at(0), days_left: 0, ends_from: 'sunset', ends_endpoint: hostile },
          ends_earlier: { endpoint: hostile, ends_at: hostile },
        }),
        base_url: hostile,
        throttles: [{ path: hostile, wait_ms: 5_000, limit: 1, remaining: 0 }],
        end_of_life: [{ endpoint: hostile, deprecation_at: null, sunset_at: at(0) }],
      },
    ],
    streams: [
      aStream({
        name: hostile,
        source: hostile,
        upstream: hostile,
        state: 'halted',
        error,
        order: hostile,
      }),
    ],
    sinks: [
      aSink({
        ...{ name: hostile, type: hostile, state: 'refused', error },
        ...{
          dead_letters: 1,
          dead_letter_reasons: [{ reason: hostile, count: 1, last_at: at(0) }],
        },
      }),
    ],
    conditions: [
      {
        condition: hostile,
        stream: hostile,
        observed_at: '2026-01-01T00:00:00Z',
        message: hostile,
      },
    ],
  });
}

/** Also in the reports of a group's members about themselves. */
export function hostileCluster(): ClusterStatus {
  const error = { code: hostile, message: hostile, next: hostile };
  const [name, type, state, order] = [hostile, hostile, hostile, hostile];
  const sink = { ...aSink({ name, type }), state, error };
  const stream = { ...aStream({ name, order }), state, error };
  return aCluster({
    prefix: hostile,
    processes: [aProcess({ instance: hostile, host: hostile, address: hostile, sinks: [sink] })],
    fenced: [{ instance: hostile, host: hostile, pid: 1, shards: [0], at: hostile }],
    unowned: { shards: [1], sinks: [sink] },
    ...{ sinks: [sink], streams: [stream] },
  });
}

/** Three processes of six shards, one of which has lately taken over what another one had. */
export function busyCluster(now: number): ClusterStatus {
  const sink = (name: string, backlog: number) =>
    aSink({ name, backlog, position: 61_000, up_to: at(now - 3_000) });
  return aCluster({
    processes: [
      aProcess({ shards: [0, 2, 5], sinks: [sink('lake', 0), sink('siem', 812)] }),
      aProcess({ instance: 'sluice-1', pid: 18, shards: [1, 3, 4], sinks: [sink('lake', 40)] }),
      aProcess({ instance: null, pid: 4_711, state: 'drained', shards: [], works_since: null }),
    ],
    takeovers: 4,
    fenced: [
      {
        ...{ instance: 'sluice-2', host: 'node-c.example', pid: 17, shards: [5] },
        at: at(now - 90_000) ?? '',
      },
    ],
    streams: ['audit', 'web_logs/c-1'].map((name) => aStream({ name, caught_up_at: at(now) })),
  });
}

const auditBudget = { path: '/audit/events', wait_ms: 0, limit: 60, remaining: 41 };
const opsBudget = { path: '*', wait_ms: 12_000, limit: null, remaining: 0 };

/** Events as the live tail shows them. */
export const readableLines = [
  '2026-01-01 00:49:31  Informational  audit                  ana@example.com: policy.rule.update (allow-dns)',
  '2026-01-01 00:49:40  Low            web_logs/c-1           10.1.4.23: action=allowed category=search bytes=18211',
  '2026-01-01 00:49:51  Medium         web_logs/c-2           10.1.9.8: action=blocked category=malware url=https://download.example/setup.exe',
  '2026-01-01 00:49:58  High           audit                  jo@example.com: user login failed (too many attempts)',
];

/** Several of everything, in waves, with one sink that fails; so many seconds after the start. */
export function busyJourney(seconds: number, now: number): StatusMoment {
  const wave = (height: number, period: number) =>
    Math.round(height * (seconds + (period / 2) * Math.sin(seconds / period)));
  const companies = ['c-1', 'c-2', 'c-3'];
  const end = 100_000 + wave(480, 300);
  const stream = (name: string, parts: Partial<LiveStream> = {}) =>
    aStream({
      ...{ name, source: name.split('/')[0] ?? name, polls: seconds, records: wave(120, 300) },
      ...{ caught_up_at: at(now - 2_300), checkpoint_at: at(now - 4_000), order: 'oldest_first' },
      next_poll_at: at(now + 12_000),
      ...parts,
    });
  const behind = Math.round(900 + 800 * Math.sin(seconds / 400));
  const stuck = 61_000;
  return aMoment({
    upstreams: [
      {
        ...anEnd('edge', { ends_at: '2027-01-01T00:00:00.000Z', days_left: 35 }),
        base_url: 'https://api.example.com/v1',
        throttles: [auditBudget],
        end_of_life: [],
      },
      {
        ...anEnd('ops'),
        base_url: 'https://svc.example.com',
        throttles: [opsBudget],
        end_of_life: [
          { endpoint: '/api/logs/v1', deprecation_at: null, sunset_at: at(1_830_000_000_000) },
        ],
      },
    ],
    streams: [
      stream('audit', { budget: auditBudget }),
      ...companies.map((company) =>
        stream(`web_logs/${company}`, { upstream: 'ops', budget: opsBudget }),
      ),
      stream('firewall/c-1', {
        ...{ upstream: 'ops', state: 'retrying', everyMs: null, order: null, records: 12 },
        error: {
          code: 'upstream_unreachable',
          message: 'reading firewall/c-1: upstream answered 503',
          next: 'It is asked again by itself; nothing is lost.',
          upstream_code: null,
          request_id: 'req-7f3a91',
          trace_id: null,
        },
      }),
    ],
    spool: aSpool({
      bytes: 212e6 + seconds * 60_000,
      max_bytes: 1_073_741_824,
      ...{ events: stuck, end, oldest_at: at(now - 5_000_000) },
    }),
    sinks: [
      aSink({ name: 'lake', type: 'kafka', state: 'sending', position: end, delivered: end }),
      aSink({
        ...{ name: 'siem', type: 'syslog', state: 'sending', dead_letters: 3, delivered: end },
        ...{ position: end - behind, backlog: behind },
        dead_letter_reasons: [
          {
            reason: 'the message is longer than max_message',
            count: 2,
            last_at: at(now - 700_000),
          },
          {
            reason: 'a field holds bytes that are no UTF-8',
            count: 1,
            last_at: at(now - 4_000_000),
          },
        ],
      }),
      aSink({
        ...{ name: 'post', type: 'http', state: 'refused', position: 39_000, backlog: stuck },
        ...{ delivered: 39_000, retries: 214 },
        error: {
          ...aFailure('sending to post: https://ingest.example answered 403: the key was revoked'),
          ...{ code: 'sink_refused', next: 'Renew the key; the events stay held.' },
        },
      }),
    ],
    conditions: [
      {
        condition: 'source.gap_suspected',
        stream: 'audit',
        observed_at: new Date(now - 900_000).toISOString(),
        message: 'the list no longer reaches back to what was read',
      },
    ],
  });
}
