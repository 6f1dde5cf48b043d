import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LogOutput, logForm, openLog } from '../../src/watch/log.ts';
import { anyText } from '../support/any-text.ts';
import { tempDir } from '../support/temp.ts';

/** A log whose lines are kept. */
async function aLog(settings: Partial<LogOutput>) {
  const lines: string[] = [];
  const log = await openLog({
    level: 'info',
    form: 'json',
    colours: false,
    write: (line) => lines.push(line),
    ...settings,
  });
  return { log, lines };
}

describe('logForm', () => {
  test('is text for a terminal and JSON for everything else', () => {
    const forms = [logForm({ isTTY: true }), logForm({ isTTY: false }), logForm({})];

    expect(forms).toEqual(['text', 'json', 'json']);
  });
});

test('a log on a full disk ends no process, and is written again once there is room', () => {
  const dir = tempDir();
  const module = JSON.stringify(new URL('../../src/watch/log.ts', import.meta.url).href);
  // The file of stderr is first one that takes nothing.
  const script = `
    import { closeSync, openSync } from 'node:fs';
    import { openLog } from ${module};
    const log = await openLog({ level: 'info', form: 'json' });
    log.info('running', 'lost');
    closeSync(2);
    openSync(process.argv[1], 'w');
    log.info('running', 'first');
    log.info('running', 'second');`;
  const full = openSync('/dev/full', 'w');
  const { status } = spawnSync(process.execPath, ['-e', script, join(dir, 'log')], {
    stdio: ['ignore', 'ignore', full],
  });
  closeSync(full);

  expect(status).toBe(0);
  const lines = readFileSync(join(dir, 'log'), 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['first', 'second']);
});

test('a line after one that was cut by a full disk is a line of its own', () => {
  const file = join(tempDir(), 'log');
  const module = JSON.stringify(new URL('../../src/watch/log.ts', import.meta.url).href);
  const script = `
    import { ftruncateSync } from 'node:fs';
    import { openLog } from ${module};
    const log = await openLog({ level: 'info', form: 'json' });
    log.info('running', 'a'.repeat(800));
    log.info('running', 'b'.repeat(400));
    ftruncateSync(2, 900);
    log.info('running', 'end');`;
  const limited = 'ulimit -f 1; file=$1; shift; exec "$@" 2>> "$file"';
  spawnSync('bash', ['-c', limited, 'bash', file, process.execPath, '-e', script]);

  const [whole = '', cut = '', last = ''] = readFileSync(file, 'utf8').split('\n');
  expect(JSON.parse(whole).msg).toBe('a'.repeat(800));
  expect(cut).toMatch(/^\{"level"/);
  expect(JSON.parse(last).msg).toBe('end');
});

describe('the JSON log', () => {
  test('writes one object a line with level, time, message and fields', async () => {
    const { log, lines } = await aLog({});

    log
      .with({ stream: 'audit' })
      .warn('stream_failed', 'the stream could not be read', { status: 503, code: null });

    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/\n$/);
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      event: 'stream_failed',
      msg: 'the stream could not be read',
      stream: 'audit',
      status: 503,
      code: null,
    });
  });

  test('leaves out lines below its level and fields without a value', async () => {
    const { log, lines } = await aLog({ level: 'warn' });

    log.debug('request_failed', 'one');
    log.info('running', 'two');
    log.error('sluice_failed', 'three', { next: undefined });

    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['three']);
    expect(lines[0]).not.toContain('next');
  });
});

describe('the text log', () => {
  test('aligns time, level, message and fields, and puts the next step on its own line', async () => {
    const { log, lines } = await aLog({ form: 'text' });

    log.error('sink_refused', 'the sink refuses everything', {
      sink: 'siem',
      error: 'it said no',
      next: 'Ask again.',
    });

    expect(lines.join('')).toMatch(
      /^\d\d:\d\d:\d\d error the sink refuses everything event=sink_refused sink=siem error="it said no"\n {15}Ask again\.\n$/,
    );
  });

  test('colours the level if colours are requested', async () => {
    const { log, lines } = await aLog({ form: 'text', colours: true });

    log.warn('sink_failed', 'careful');

    expect(lines[0]).toContain('\u001b[33mwarn ');
  });

  test('writes only lines of its level and above, also of logs made with more fields', async () => {
    const { log, lines } = await aLog({ form: 'text', level: 'error' });

    log.with({ sink: 'a' }).warn('sink_failed', 'quiet');
    log.with({ sink: 'a' }).error('sink_refused', 'loud');

    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('loud event=sink_refused sink=a');
  });
});

describe('a hostile value', () => {
  const hostile = anyText({ maxLength: 200 });

  test.each(['json', 'text'] as const)(
    'cannot forge a line or steer a terminal (%s)',
    async (form) => {
      const { log, lines } = await aLog({ form });

      fc.assert(
        fc.property(hostile, (value) => {
          lines.length = 0;
          log.warn('stream_failed', 'upstream said', { error: value });
          const all = lines.join('');
          expect(all.endsWith('\n')).toBe(true);
          expect(all.slice(0, -1)).not.toMatch(
            /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/,
          );
          expect(all.isWellFormed()).toBe(true);
        }),
      );
    },
  );

  test('is cut before it buries the line', async () => {
    const { log, lines } = await aLog({});

    log.warn('stream_failed', 'upstream said', { error: 'x'.repeat(100_000) });

    expect(lines[0]?.length).toBeLessThan(3_000);
  });
});

describe('waits', () => {
  test('are whole milliseconds, and in text a readable form', async () => {
    const json = await aLog({});
    const text = await aLog({ form: 'text' });

    for (const { log } of [json, text])
      log.warn('stream_failed', 'waits', { wait_ms: 39_518.8312, retry_in_ms: 160_000 });
    text.log.warn('stream_failed', 'waits', { a_ms: 12.4, b_ms: 3_600_000, share: 0.25 });

    expect(JSON.parse(json.lines[0] ?? '')).toMatchObject({
      wait_ms: 39_519,
      retry_in_ms: 160_000,
    });
    expect(text.lines[0]).toContain('waits event=stream_failed wait=39.5s retry_in=2m40s\n');
    expect(text.lines[1]).toContain('waits event=stream_failed a=12ms b=1h share=0.25\n');
  });
});
