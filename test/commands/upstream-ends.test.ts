// The end of an upstream as `check` and `status` show it. Dates are relative to today, so that no verdict depends on it.

import { describe, expect, test } from 'vitest';
import { runHere, runOnceHere } from '../support/cli.ts';
import { aSetup } from './a-setup.ts';

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
        ...{ ends_from: 'config', ends_endpoint: null, ends_earlier: null },
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
