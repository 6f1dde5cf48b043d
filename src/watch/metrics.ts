// The metrics for Prometheus, in its text format 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/). The list below is stable: alerts
// and dashboards depend on it, so names are added and never renamed. Labels are names from the
// config and streams derived from them, never text from a record. Counters start at 0 with the
// process. The metrics are few and read rarely, so each scrape formats them from the pipeline's
// state: nothing is counted twice, and no client library is needed.
//
//   sluice_ready                                1 while nothing stops the export
//   sluice_start_time_seconds                   when this process started
//   sluice_build_info                           {version, commit, date, node} always 1; an unknown commit is empty
//   sluice_config_reload_refused                1 while the config in its file is refused
//   sluice_standing_by                          1 while another process has the state in Kafka
//   sluice_shards_owned, sluice_shards_running  with state.kafka only, as the next three
//   sluice_takeovers_total                      shards taken from another process
//   sluice_heartbeat_timestamp_seconds          last answer of the Kafka group that was silent longest
//   sluice_commit_seconds                       the last commit to Kafka, or the one under way
//   sluice_stream_info                          {source, stream, upstream, company} always 1; company is empty if there is none
//   sluice_stream_records_total                 {source, stream} new records read
//   sluice_stream_polls_total                   {source, stream}
//   sluice_stream_polls_skipped_total           {source, stream} fell due while one was running
//   sluice_stream_caught_up_timestamp_seconds   {source, stream} last read to its tail; absent before, and once its API has ended
//   sluice_stream_up_to_timestamp_seconds       {source, stream} everything shown by then is at all its sinks
//   sluice_stream_checkpoint_timestamp_seconds  {source, stream} absent before the first checkpoint
//   sluice_stream_newest_record_timestamp_seconds {source, stream} latest time in a record, not after its poll
//   sluice_stream_clock_ahead_seconds           {source, stream} how far the newest records are ahead of our clock
//   sluice_stream_failing, sluice_stream_halted {source, stream} 0 or 1
//   sluice_stream_stalled                       {source, stream} 1 while attention has a line about the stream
//   sluice_stream_deliveries_total              {source, stream, result} webhooks only
//   sluice_source_conditions_total              {condition, stream} gaps, resets and the like
//   sluice_upstream_wait_seconds                {upstream} the longest wait of its limits now
//   sluice_upstream_ends_timestamp_seconds      {upstream} absent where it never ends
//   sluice_upstream_moved                       {upstream} 1: its end concerns no source any more
//   sluice_succession_held                      {source, successor} 1 while too few records match
//   sluice_spool_bytes, sluice_spool_max_bytes, sluice_spool_events
//   sluice_spool_oldest_timestamp_seconds       when the oldest page held was read, if any is
//   sluice_sink_delivered_events_total          {sink}
//   sluice_sink_retries_total                   {sink}
//   sluice_sink_dead_letters_total              {sink} since the start
//   sluice_sink_dead_letters_held               {sink} waiting for an operator
//   sluice_sink_suspect_events                  {sink} refused while nothing is accepted
//   sluice_sink_set_aside_events                {sink} waiting for a destination at fault
//   sluice_sink_backlog_events                  {sink} held and not passed yet
//   sluice_sink_up_to_timestamp_seconds         {sink} everything shown by then is settled there
//   sluice_sink_position                        {sink} offset in the spool
//   sluice_sink_failing, sluice_sink_refused    {sink} 0 or 1
//   sluice_filter_failures_total                {route, source} events that could not be judged
//   sluice_transcoder_events_total              {source, result} written by copying, or not and why
//   sluice_log_lines_lost_total                 with log.otlp only: what the collector never got
//   sluice_process_resident_memory_bytes, sluice_process_cpu_seconds_total

import { build, epochOf } from '../tools/index.ts';
import type { StatusMoment } from './live.ts';
import type { LiveStatus } from './status-facts.ts';

/** Content type of `metricsText`. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

/** Facts that are not in the status. */
export interface ProcessFacts
  extends Pick<StatusMoment, 'refused' | 'found' | 'logLinesLost' | 'cluster'> {
  readonly residentBytes: number;
  readonly cpuSeconds: number;
  /** Streams that are not well (health.ts), by name. */
  readonly stalled: ReadonlySet<string>;
}

/** The metrics in Prometheus text format. */
export function metricsText(families: readonly Family[]): string {
  return families.map(familyText).join('');
}

/** Every metric of the list above. */
export function metricFamilies(statusView: LiveStatus, facts: ProcessFacts): readonly Family[] {
  return [
    ...processFamilies(statusView, facts),
    ...clusterFamilies(facts),
    ...streamFamilies(statusView, facts),
    ...sinkFamilies(statusView, facts),
    ...spoolFamilies(statusView),
    ...logFamilies(facts),
  ];
}

/** One metric with its points. */
export interface Family {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
  readonly points: readonly Point[];
}

type Labels = Readonly<Record<string, string>>;

interface Point {
  readonly labels: Labels;
  /** In Prometheus format: `{sink="siem"}`. */
  readonly text: string;
  readonly value: number;
}

/** How one metric is read from each object; null: it has no value now. */
type Reading<T> = readonly [name: string, help: string, value: (one: T) => number | null];

/** Labels are formatted once for all families: with thousands of streams they dominate the cost. */
function familiesOf<T>(
  all: readonly T[],
  labelsOf: (one: T) => Labels,
  readings: readonly Reading<T>[],
): readonly Family[] {
  const labelled = all.map((one) => {
    const labels = labelsOf(one);
    return { one, labels, text: labelsText(labels) };
  });
  return readings.map(([name, help, read]) => {
    const points: Point[] = [];
    for (const { one, labels, text } of labelled) {
      const value = read(one);
      if (value !== null) points.push({ labels, text, value });
    }
    return { name, kind: name.endsWith('_total') ? 'counter' : 'gauge', help, points };
  });
}

/** Read once: an upgrade on the disk does not change the running program. */
const running = build();

function processFamilies(statusView: LiveStatus, facts: ProcessFacts): readonly Family[] {
  const { version, commit, date } = running;
  const { node } = process.versions;
  const about = { version, commit: commit ?? '', date: date ?? '', node };
  const info = familiesOf([about], (labels) => ({ ...labels }), [
    ['sluice_build_info', 'Version of sluice and of Node.js; always 1.', () => 1],
  ]);
  const own = familiesOf([facts], () => ({}), [
    ['sluice_ready', '1 if no part is stopped.', () => Number(statusView.ready)],
    ['sluice_start_time_seconds', 'Start of the process.', () => inSeconds(statusView.started_at)],
    [
      'sluice_config_reload_refused',
      'The config in its file was refused.',
      () => Number(statusView.reload_refused !== null),
    ],
    [
      'sluice_standing_by',
      'Another process owns the state in Kafka.',
      () => Number(statusView.standing_by !== null),
    ],
    ['sluice_process_resident_memory_bytes', 'Resident memory.', (f) => f.residentBytes],
    ['sluice_process_cpu_seconds_total', 'CPU time used.', (f) => f.cpuSeconds],
  ]);
  return [...info, ...own];
}

function clusterFamilies({ cluster }: ProcessFacts): readonly Family[] {
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1_000);
  return familiesOf(cluster === undefined ? [] : [cluster], () => ({}), [
    ['sluice_shards_owned', 'Shards of this process.', ({ share }) => share.owned.length],
    [
      'sluice_shards_running',
      'Shards of this process whose worker runs.',
      ({ share }) => share.running.length,
    ],
    ['sluice_takeovers_total', 'Shards taken over from another process.', (one) => one.takeovers],
    [
      'sluice_heartbeat_timestamp_seconds',
      'Last response of the Kafka group that was silent longest.',
      ({ answeredAt }) => seconds(answeredAt),
    ],
    [
      'sluice_commit_seconds',
      'Duration of the last or current commit to Kafka.',
      ({ commitMs }) => seconds(commitMs),
    ],
  ]);
}

function streamFamilies(
  { streams, upstreams, successions }: LiveStatus,
  { found, stalled }: ProcessFacts,
): readonly Family[] {
  return [
    ...familiesOf(streams, infoLabels, [
      ['sluice_stream_info', 'Upstream and company of the stream; always 1.', () => 1],
    ]),
    ...familiesOf(streams, ({ source, name }) => ({ source, stream: name }), [
      ['sluice_stream_records_total', 'New records read.', (s) => s.records],
      ['sluice_stream_polls_total', 'Polls.', (s) => s.polls],
      [
        'sluice_stream_polls_skipped_total',
        'Polls due while one was running.',
        (s) => s.polls_skipped,
      ],
      [
        'sluice_stream_caught_up_timestamp_seconds',
        'Last read to its tail.',
        // After the end of the API, its successor has the time.
        (s) => (s.ended === true ? null : inSeconds(s.caught_up_at)),
      ],
      [
        'sluice_stream_up_to_timestamp_seconds',
        'All that upstream showed by then is settled at every sink of the stream.',
        (s) => inSeconds(s.up_to),
      ],
      [
        'sluice_stream_checkpoint_timestamp_seconds',
        'Last checkpoint.',
        (s) => inSeconds(s.checkpoint_at),
      ],
      [
        'sluice_stream_newest_record_timestamp_seconds',
        'Latest time in a record, not after the time of its poll.',
        (s) => inSeconds(s.newest_record_at),
      ],
      [
        'sluice_stream_clock_ahead_seconds',
        'How far its newest records are ahead of the clock of this machine.',
        (s) => (s.clock_ahead_ms ?? 0) / 1_000,
      ],
      ['sluice_stream_failing', 'The last poll failed.', (s) => Number(s.error !== null)],
      [
        'sluice_stream_halted',
        'Stopped until an operator acts.',
        (s) => Number(s.state === 'halted'),
      ],
      [
        'sluice_stream_stalled',
        'Halted, or without progress for longer than its interval explains.',
        (s) => Number(stalled.has(s.name)),
      ],
    ]),
    ...familiesOf(deliveriesOf(streams), ({ labels }) => labels, [
      ['sluice_stream_deliveries_total', 'Deliveries, by outcome.', (d) => d.count],
    ]),
    ...familiesOf(found, ({ condition, stream }) => ({ condition, stream }), [
      [
        'sluice_source_conditions_total',
        'Gaps, resets and other conditions found.',
        (c) => c.count,
      ],
    ]),
    ...familiesOf(successions, ({ source, successor }) => ({ source, successor }), [
      [
        'sluice_succession_held',
        'Too few records of a pair match: records without a match are stored and not delivered.',
        ({ held }) => Number(held),
      ],
    ]),
    ...familiesOf(upstreams, ({ name }) => ({ upstream: name }), [
      [
        'sluice_upstream_wait_seconds',
        'Longest current wait due to limits.',
        ({ throttles }) =>
          throttles.reduce((most, { wait_ms }) => Math.max(most, wait_ms), 0) / 1_000,
      ],
      [
        'sluice_upstream_ends_timestamp_seconds',
        'End of the upstream.',
        ({ ends_at }) => inSeconds(ends_at),
      ],
      [
        'sluice_upstream_moved',
        'The end of its API concerns no source: each has a successor that delivers, or there is none.',
        ({ moved }) => Number(moved),
      ],
    ]),
  ];
}

/** Other metrics get the company from here, by `stream`: their own labels stay as they are. */
function infoLabels({ source, name, upstream, company = '' }: LiveStatus['streams'][number]) {
  return { source, stream: name, upstream, company };
}

/** Results are from a closed list (webhooks/delivery.ts). */
function deliveriesOf(streams: LiveStatus['streams']) {
  return streams.flatMap(({ source, name, deliveries = {} }) =>
    Object.entries(deliveries).map(([result, count]) => {
      return { labels: { source, stream: name, result }, count };
    }),
  );
}

function sinkFamilies(
  { sinks, filters, transcoded }: LiveStatus,
  { refused }: ProcessFacts,
): readonly Family[] {
  return [
    ...familiesOf(sinks, ({ name }) => ({ sink: name }), [
      ['sluice_sink_delivered_events_total', 'Events delivered.', (s) => s.delivered],
      ['sluice_sink_retries_total', 'Attempts that failed.', (s) => s.retries],
      [
        'sluice_sink_dead_letters_total',
        'Events refused for good.',
        (s) => refused.get(s.name) ?? 0,
      ],
      [
        'sluice_sink_dead_letters_held',
        'Dead letters waiting for an operator.',
        (s) => s.dead_letters,
      ],
      [
        'sluice_sink_suspect_events',
        'Events refused while nothing is accepted.',
        (s) => s.suspects?.events ?? 0,
      ],
      [
        'sluice_sink_set_aside_events',
        'Events that wait for a refusing destination.',
        (s) => s.set_aside.reduce((sum, { events }) => sum + events, 0),
      ],
      [
        'sluice_sink_backlog_events',
        'Events in the spool that the sink has not delivered.',
        (s) => s.backlog,
      ],
      [
        'sluice_sink_up_to_timestamp_seconds',
        'All that upstream showed by then and that is routed here is settled.',
        (s) => inSeconds(s.up_to),
      ],
      ['sluice_sink_position', 'Offset in the spool.', (s) => s.position],
      ['sluice_sink_failing', 'The last attempt failed.', (s) => Number(s.error !== null)],
      ['sluice_sink_refused', 'Refuses everything.', (s) => Number(s.state === 'refused')],
    ]),
    ...familiesOf(filters, ({ route, source }) => ({ route, source }), [
      ['sluice_filter_failures_total', 'Events on which a filter failed.', (f) => f.failures],
    ]),
    ...familiesOf(resultsOf(transcoded), ({ labels }) => labels, [
      ['sluice_transcoder_events_total', 'Events offered to the transcoder.', (r) => r.count],
    ]),
  ];
}

function resultsOf(transcoded: LiveStatus['transcoded']) {
  return transcoded.flatMap(({ source, ...results }) =>
    Object.entries(results).map(([result, count]) => ({ labels: { source, result }, count })),
  );
}

function spoolFamilies({ spool }: LiveStatus): readonly Family[] {
  return familiesOf([spool], () => ({}), [
    ['sluice_spool_bytes', 'Bytes in the spool.', ({ bytes }) => bytes],
    ['sluice_spool_max_bytes', 'Bytes at which polling pauses.', (s) => s.max_bytes],
    ['sluice_spool_events', 'Events in the spool.', ({ events }) => events],
    [
      'sluice_spool_oldest_timestamp_seconds',
      'Oldest page in the spool.',
      (s) => inSeconds(s.oldest_at),
    ],
  ]);
}

function logFamilies({ logLinesLost }: ProcessFacts): readonly Family[] {
  return familiesOf([logLinesLost], () => ({}), [
    ['sluice_log_lines_lost_total', 'Log lines that did not reach the collector.', (n) => n],
  ]);
}

function inSeconds(time: string | null): number | null {
  const ms = epochOf(time);
  return ms === null ? null : ms / 1_000;
}

function familyText({ name, kind, help, points }: Family): string {
  const lines = points.map(({ text, value }) => `${name}${text} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${lines.join('')}`;
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/** Escapes backslash, quote and line feed as the format requires; well-formed, because the whole text is UTF-8. */
function escaped(value: string): string {
  return value
    .toWellFormed()
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n');
}
