// The end of an upstream as `check` and `status` show it. Dates are relative to today, so that no verdict depends on it.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { listen } from '../connectors/sinks/syslog-receivers.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { waitUntil } from '../support/temp.ts';
import { aSetup, type Setup } from './a-setup.ts';

const dayMs = 86_400_000;

/** A time so many days from now, half a day off the bounds at which the text changes. */
function inDays(days: number): string {
  return new Date(Date.now() + (days + 0.5) * dayMs).toISOString();
}

async function said(words: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runHere(words);
  expect([words, exitCode, stderr]).toEqual([words, 0, '']);
  return stdout;
}

describe.each<[days: number, text: string, isMatter: boolean]>([
  [35, 'in 35 days', true],
  [200, 'in 200 days', false],
  [-3, '', true],
])('an end in %i days', (days, text, isMatter) => {
  const ends = inDays(days);
  const date = ends.slice(0, 10);
  const sentence = days < 0 ? `ended on ${date}` : `ends on ${date}, ${text}`;

  test('check shows it, and exits with 0', async () => {
    const { config } = await aSetup({ ends });
    const stdout = await said(['check', '-c', config]);

    expect(stdout).toContain(`upstream edge ${sentence}: set by upstreams.edge.ends\n`);
    expect(/^note .*Upstream edge/m.test(stdout)).toBe(isMatter);
  });

  test('an end excuses no error and stops no stream: a run reads on, and status shows it', async () => {
    const { config } = await aSetup({ ends });
    const { exitCode } = await runOnceHere(config);
    const stdout = await said(['status', '-c', config]);
    const { upstreams, streams } = JSON.parse(await said(['status', '-c', config, '--json']));

    expect(exitCode).toBe(0);
    expect(stdout).toContain(`upstream edge ${sentence}`);
    expect(stdout.includes('nothing needs attention')).toBe(!isMatter);
    expect(upstreams).toEqual([
      {
        ...{ name: 'edge', ends_at: ends, days_left: days },
        ...{ ends_from: 'config', ends_endpoint: null, ends_earlier: null, moved: false },
      },
    ]);
    expect(streams).toMatchObject([{ name: 'audit', error: null }]);
  });
});

test('without an end of its own, the unified API has the date of the document', async () => {
  const { config } = await aSetup({ ends: null });
  const { upstreams } = JSON.parse(await said(['status', '-c', config, '--json']));

  expect(upstreams).toMatchObject([
    { name: 'edge', ends_at: '2026-12-31T23:59:59.000Z', ends_from: 'default' },
  ]);
});

test('an upstream without an end needs no attention', async () => {
  const { config } = await aSetup();

  expect(await said(['check', '-c', config])).toMatch(/upstream edge has no end: set by upstreams/);
});

interface EndEvent {
  readonly metadata: { readonly event_code?: string; readonly log_name?: string };
}

/** The events `upstream.ends` in the file. */
function endsIn({ dir }: Setup): readonly EndEvent[] {
  const file = join(dir, 'events.ndjson');
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as EndEvent);
  return events.filter(({ metadata }) => metadata.event_code === 'upstream.ends');
}

test('the event is sent once, over a reload, a SIGKILL, a restart and a date that moves', async () => {
  const setup = await aSetup({ ends: 'never' });
  const edit = (from: string, to: string) => {
    const text = readFileSync(setup.config, 'utf8');
    writeFileSync(setup.config, text.replace(`ends: ${from}`, `ends: ${to}`));
  };
  const [first, second] = [inDays(20), inDays(5)];
  const sluice = startSluice(['run', '-c', setup.config]);
  await waitUntil(() => setup.delivered().length >= 250, { what: 'the records' });
  expect(endsIn(setup)).toEqual([]);
  edit('never', first);
  await waitUntil(() => endsIn(setup).length > 0, { what: 'the event', timeoutMs: 60_000 });
  await sluice.kill('SIGKILL');
  expect((await runOnceHere(setup.config)).exitCode).toBe(0);
  edit(first, second);
  expect((await runOnceHere(setup.config)).exitCode).toBe(0);
  expect((await runOnceHere(setup.config)).exitCode).toBe(0);

  expect(endsIn(setup)).toMatchObject([
    {
      metadata: { log_name: 'sluice' },
      unmapped: { details: { upstream: 'edge', ends_at: first, days: 30, days_left: 20 } },
    },
    { unmapped: { details: { ends_at: second, days: 7, days_left: 5 } } },
  ]);
});

test('a date in a header is shown by check --connect, and by status after the process ended', async () => {
  const sunset = new Date(Math.floor((Date.now() + 20.5 * dayMs) / 1_000) * 1_000);
  const server = createServer((request, response) => {
    const isToken = request.url?.includes('token');
    const body = isToken
      ? { access_token: 'secret', token_type: 'bearer', expires_in: 3_600 }
      : { data: [], next_cursor: null };
    const ends = isToken ? {} : { sunset: sunset.toUTCString() };
    response.writeHead(200, { 'content-type': 'application/json', ...ends });
    response.end(JSON.stringify(body));
  });
  const port = await listen(server);
  const { config } = await aSetup({ ends: null });
  const text = readFileSync(config, 'utf8');
  writeFileSync(config, text.replace(/base_url: .*/, `base_url: http://127.0.0.1:${port}/v1`));
  const date = sunset.toISOString().slice(0, 10);
  const named = `upstream edge ends on ${date}, in 20 days: named by the Sunset header of /audit/events`;

  const checked = await said(['check', '-c', config, '--connect']);
  const run = await runOnceHere(config);
  const stopped = await said(['status', '-c', config]);

  expect(checked).toContain(named);
  expect(run.exitCode).toBe(0);
  expect(stopped).toContain(named);
  expect(stopped).not.toContain('checkpoint and is not in the config');
});
