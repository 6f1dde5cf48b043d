// The numbers for Prometheus, read back by a small parser that knows the text format and nothing of how it was written.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { History } from '../../src/watch/history.ts';
import type { StatusMoment } from '../../src/watch/live.ts';
import { metricFamilies, metricsText } from '../../src/watch/metrics.ts';
import { statusOf } from '../../src/watch/report.ts';
import { anyText } from '../support/any-text.ts';
import { aMoment, aSink, aStream } from './a-moment.ts';

/** The numbers of a journey, in their text. */
function numbersOf(moment: StatusMoment): string {
  const observed = { moment, history: new History(), ailments: [], now: 2_000, startedAt: 1_000 };
  const facts = { ...moment, residentBytes: 5, cpuSeconds: 0.5, stalled: new Set(['logs/c-1']) };
  return metricsText(
    metricFamilies(statusOf({ ...observed, readyShare: 0.5, forms: null }), facts),
  );
}

test('metricsText writes each number under its type', () => {
  const moment = aMoment({
    streams: [aStream({ name: 'logs/c-1', source: 'logs', records: 7, state: 'halted' })],
    sinks: [
      aSink({
        ...{ delivered: 9, backlog: 4, state: 'refused' },
        suspects: { events: 12, refused: 3, stuck: true, first: [] },
        set_aside: [5, 2].map((events, n) => ({
          ...{ destination: `index-${n}`, events, reason: 'closed', since: '2026-11-26T00:00:00Z' },
        })),
      }),
    ],
    found: [{ condition: 'source.gap', stream: 'logs/c-1', count: 2 }],
    transcoded: [{ source: 'logs', written: 5, unknown: 1, refused: 3 }],
  });

  const { types, points } = parsed(numbersOf(moment));

  const stream = '{source="logs",stream="logs/c-1"}';
  expect(points.get(`sluice_stream_records_total${stream}`)).toBe(7);
  expect(points.get(`sluice_stream_halted${stream}`)).toBe(1);
  expect(
    points.get('sluice_source_conditions_total{condition="source.gap",stream="logs/c-1"}'),
  ).toBe(2);
  expect(points.get('sluice_sink_delivered_events_total{sink="siem"}')).toBe(9);
  expect(points.get('sluice_sink_backlog_events{sink="siem"}')).toBe(4);
  expect(points.get('sluice_sink_suspect_events{sink="siem"}')).toBe(12);
  expect(points.get('sluice_sink_set_aside_events{sink="siem"}')).toBe(7);
  expect(points.get('sluice_sink_refused{sink="siem"}')).toBe(1);
  expect(points.get('sluice_transcoder_events_total{source="logs",result="refused"}')).toBe(3);
  expect(points.get('sluice_spool_events')).toBe(10);
  expect(points.get('sluice_ready')).toBe(1);
  expect(types.get('sluice_stream_records_total')).toBe('counter');
  expect(types.get('sluice_spool_bytes')).toBe('gauge');
});

test('metricsText has the upstream and company of each stream, and how far its clock is ahead', () => {
  const moment = aMoment({
    streams: [
      aStream({
        ...{ name: 'logs/c-1', source: 'logs', upstream: 'ops', company: 'c-1' },
        ...{ newest_record_at: '2026-11-26T00:00:00.000Z', clock_ahead_ms: 90_000 },
      }),
      aStream({ name: 'audit', source: 'audit', upstream: 'edge', newest_record_at: null }),
    ],
  });

  const { points } = parsed(numbersOf(moment));

  const of = (name: string, source: string) => `${name}{source="${source}",stream=`;
  const c1 = '"logs/c-1"';
  expect(points.get(`${of('sluice_stream_info', 'logs')}${c1},upstream="ops",company="c-1"}`)).toBe(
    1,
  );
  expect(
    points.get(`${of('sluice_stream_info', 'audit')}"audit",upstream="edge",company=""}`),
  ).toBe(1);
  expect(points.get(`${of('sluice_stream_clock_ahead_seconds', 'logs')}${c1}}`)).toBe(90);
  expect(points.get(`${of('sluice_stream_clock_ahead_seconds', 'audit')}"audit"}`)).toBe(0);
  expect(points.get(`${of('sluice_stream_newest_record_timestamp_seconds', 'logs')}${c1}}`)).toBe(
    Date.parse('2026-11-26T00:00:00Z') / 1_000,
  );
  expect(
    points.has(`${of('sluice_stream_newest_record_timestamp_seconds', 'audit')}"audit"}`),
  ).toBe(false);
});

test('metricsText leaves out unknown values', () => {
  const moment = aMoment({ streams: [aStream({ caught_up_at: null, checkpoint_at: null })] });

  const names = [...parsed(numbersOf(moment)).points.keys()].join('\n');

  expect(names).not.toContain('caught_up_timestamp');
  expect(names).toContain('sluice_stream_polls_total');
});

test('metricsText has the numbers of a state in Kafka where there is one', () => {
  const cluster = {
    share: { owned: [1, 4], running: [4], failing: [] },
    ...{ takeovers: 3, answeredAt: 1_500, commitMs: 250 },
  };
  const { types, points } = parsed(numbersOf(aMoment({ cluster })));

  expect(points.get('sluice_shards_owned')).toBe(2);
  expect(points.get('sluice_shards_running')).toBe(1);
  expect(points.get('sluice_takeovers_total')).toBe(3);
  expect(points.get('sluice_heartbeat_timestamp_seconds')).toBe(1.5);
  expect(points.get('sluice_commit_seconds')).toBe(0.25);
  expect(types.get('sluice_takeovers_total')).toBe('counter');
  const none = { ...cluster, answeredAt: null, commitMs: null };
  for (const moment of [aMoment(), aMoment({ cluster: none })]) {
    const { points: without } = parsed(numbersOf(moment));
    expect(without.get('sluice_heartbeat_timestamp_seconds')).toBeUndefined();
    expect(without.get('sluice_commit_seconds')).toBeUndefined();
  }
});

test('metricsText gives the names that its file lists', () => {
  const file = new URL('../../src/watch/metrics.ts', import.meta.url);
  const head = readFileSync(file, 'utf8').split('\nimport')[0] ?? '';
  const listed = new Set(head.match(/sluice_\w+/g));
  const moment = aMoment({ found: [{ condition: 'c', stream: 's', count: 1 }] });

  const { types } = parsed(numbersOf(moment));

  expect([...types.keys()].toSorted()).toEqual([...listed].toSorted());
});

test('metricsText escapes labels, so that no name forges a number', () => {
  fc.assert(
    fc.property(anyText(), (name) => {
      const moment = aMoment({ sinks: [aSink({ name })] });

      const { points } = parsed(numbersOf(moment));

      const reported = [...points.keys()].filter((key) => key.startsWith('sluice_sink_position{'));
      expect(reported).toEqual([
        `sluice_sink_position{sink=${JSON.stringify(name.toWellFormed())}}`,
      ]);
    }),
    { examples: [['a"} 1\nsluice_ready 0\n#'], ['\\'], ['\\n'], ['\n']] },
  );
});

/** Reads the exposition format 0.0.4; throws at the first line that is not in it. */
function parsed(text: string) {
  const types = new Map<string, string>();
  const points = new Map<string, number>();
  expect(text.endsWith('\n')).toBe(true);
  for (const line of text.split('\n').slice(0, -1)) {
    const type = /^# TYPE (\S+) (counter|gauge)$/.exec(line);
    if (type !== null) types.set(type[1] ?? '', type[2] ?? '');
    if (line.startsWith('# ')) continue;
    const point = /^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\[\\n"])*",?)+)\})? (\S+)$/s.exec(line);
    if (point === null) throw new Error(`not a line of the format: ${line}`);
    const [, name = '', labels, value] = point;
    if (!types.has(name)) throw new Error(`a number without a type: ${name}`);
    const pairs = [...(labels ?? '').matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/gs)].map(
      ([, key, raw = '']) => {
        const plain = raw.replace(/\\(.)/g, (_, mark) => (mark === 'n' ? '\n' : mark));
        // As JSON, so that the keys of this map are readable and exact.
        return `${key}=${JSON.stringify(plain)}`;
      },
    );
    points.set(pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`, Number(value));
  }
  return { types, points };
}

test('metricsText has the freshness of each stream and sink, and the build', () => {
  const time = '2026-11-26T00:00:10Z';
  const moment = aMoment({
    streams: [aStream({ up_to: time }), aStream({ name: 'new', up_to: null })],
    sinks: [aSink({ up_to: time })],
  });

  const { points } = parsed(numbersOf(moment));

  const seconds = Date.parse(time) / 1_000;
  const stream = 'sluice_stream_up_to_timestamp_seconds{source="audit",stream="audit"}';
  expect(points.get(stream)).toBe(seconds);
  expect(points.get(stream.replace('stream="audit"', 'stream="new"'))).toBeUndefined();
  expect(points.get('sluice_sink_up_to_timestamp_seconds{sink="siem"}')).toBe(seconds);
  const [build = ''] = [...points.keys()].filter((name) => name.startsWith('sluice_build_info'));
  expect(build).toMatch(
    /\{version="\d+\.\d+\.\d+[^"]*",commit="[0-9a-f]*",date="[0-9-]*",node="\d+\.\d+\.\d+"\}$/,
  );
  expect(points.get(build)).toBe(1);
});
