// What `run --once` says at its end, whatever it came to.

import { describe, expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { Summary } from '../../src/pipeline.ts';
import { type After, summaryLines } from '../../src/run/summary.ts';

const config = {
  file: 'sluice.yaml',
  state: {
    dir: '/state',
    places: ['/state'],
    warning: null,
    maxBytes: 100,
    keepMs: 0,
    removedSinksMs: 0,
    sync: 'full',
    kafka: null,
  },
} as const;

function aFailure(code: 'upstream_refused' | 'sink_refused' | 'upstream_unreachable') {
  return new ExportError(code, `it said no to\u001b[2J ${code}`, { next: 'Ask again.' });
}

function aStream(name: string, state: After['state']['streams'][number]['state'] = 'waiting') {
  const none = { polls: 1, records: 0, skipped: 0, caughtUpAt: null, nextPollAt: null };
  return { ...none, name, source: name, state, error: null };
}

function aSink(name: string, deadLetters = 0): After['state']['sinks'][number] {
  return {
    ...{ name, state: 'stopped', position: 5, sent: 5, delivered: 5, deadLetters, retries: 0 },
    error: null,
    dueInMs: null,
    notice: null,
    suspects: null,
    setAside: [],
    waitsAside: false,
  };
}

function lines(summary: Partial<Summary>, state: After['state']): readonly string[] {
  return summaryLines(
    { failed: [], behind: [], records: 5, ...summary },
    { state, bytes: 0 },
    { config, stream: process.stdout },
  );
}

describe('the summary', () => {
  test('shows the numbers read and delivered, and nothing else if all is well', () => {
    const reported = lines({ records: 1 }, { streams: [aStream('a')], sinks: [aSink('disk')] });

    expect(reported).toEqual([
      '1 new record read from 1 stream',
      'disk: 5 delivered, 0 held, 0 dead letters',
    ]);
  });

  test('groups streams that fail for one reason, those that need an operator first', () => {
    const names = Array.from({ length: 1_000 }, (_, i) => `web/c-${i}`);
    const failed = [
      ...names.map((stream) => ({ stream, cause: aFailure('upstream_unreachable') })),
      { stream: 'audit', cause: aFailure('upstream_refused') },
    ];
    const streams = [...names.map((name) => aStream(name, 'retrying')), aStream('audit', 'halted')];

    const reported = lines({ failed }, { streams, sinks: [aSink('disk')] });

    expect(reported).toEqual([
      '5 new records read from 1001 streams',
      '!! Stream audit is halted: it said no to [2J upstream_refused',
      '   Ask again.',
      ' ! 1,000 streams are not read: web/c-0, web/c-1, web/c-2, web/c-3, web/c-4 and 995 more: it said no to [2J upstream_unreachable',
      '   Ask again.',
      'disk: 5 delivered, 0 held, 0 dead letters',
    ]);
  });

  test('names rejected events of a sink, pending ones, and its dead letters', () => {
    const behind = [
      { sink: 'siem', held: 3, cause: aFailure('sink_refused') },
      { sink: 'slow', held: 2, cause: null },
    ];

    const reported = lines(
      { behind },
      { streams: [], sinks: [aSink('siem'), aSink('slow'), aSink('post', 4)] },
    );

    expect(reported).toEqual([
      '5 new records read from 0 streams',
      '!! Sink siem refuses everything; its events stay in the spool: it said no to [2J sink_refused',
      '   Ask again.',
      ' ! Sink post has refused 4 events for good',
      '   Look why, then send them again or drop them: npx sluice dead-letters list -c sluice.yaml --sink post',
      'siem: 5 delivered, 3 held, 0 dead letters; still held: it said no to [2J sink_refused',
      'slow: 5 delivered, 2 held, 0 dead letters; still held: there was no time left',
      'post: 5 delivered, 0 held, 4 dead letters; refused for good and kept as dead letters',
    ]);
  });
});
