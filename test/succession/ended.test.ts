// An API that has ended: no fault where its successor delivers and is read, and one where it does not.

import { describe, expect, test } from 'vitest';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { freePort, waitUntil } from '../support/temp.ts';
import { aMove, type Move, type MoveOptions } from './a-move.ts';

const succeeds = { patience: '1s', overlap: '2h' };
const past = '2026-01-31';

/** A move whose status is served; `ends` of the old API: a past day. */
async function servedMove(options: MoveOptions = {}): Promise<Move & { readonly url: string }> {
  const url = `127.0.0.1:${await freePort()}`;
  const all = { succeeds, ...options, top: { status: { listen: url }, ...options.top } };
  const move = await aMove(all);
  const upstreams = move.pair.upstreams;
  const top = { ...all.top, upstreams: { ...upstreams, old: { ...upstreams.old, ends: past } } };
  move.write({ ...all, top });
  return { ...move, url: `http://${url}` };
}

interface Status {
  readonly ready: boolean;
  readonly attention: readonly { who: string; what: string; message: string; next: string }[];
  readonly upstreams: readonly { name: string; moved: boolean }[];
  readonly sinks: readonly { name: string; backlog: number }[];
  readonly streams: readonly {
    name: string;
    state: string;
    ended?: boolean;
    polls: number;
    error: { code: string; message: string; next: string } | null;
  }[];
}

async function statusOf({ url }: { readonly url: string }): Promise<Status> {
  return (await (await fetch(`${url}/status.json`)).json()) as Status;
}

function streamIn({ streams }: Status, name = 'old_audit') {
  return streams.find((stream) => stream.name === name);
}

describe.each([401, 403, 404, 410, 'refused'] as const)('an API that answers %s', (death) => {
  test('makes nothing red once its successor delivers, and before it does', async () => {
    const move = await servedMove();
    const { pair, config, url } = move;
    pair.addMany(20);
    const sluice = startSluice(['run', '-c', config]);
    await move.complete();
    await pair.die('old', death);
    await waitUntil(async () => streamIn(await statusOf(move))?.error, { what: 'the end to show' });
    const before = await statusOf(move);

    const cut = await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
    await waitUntil(async () => streamIn(await statusOf(move))?.ended, { what: 'its end' });
    const polls = streamIn(await statusOf(move))?.polls ?? 0;
    await runHere(['retry', '-c', config, 'old_audit']);
    const isPolled = async () => (streamIn(await statusOf(move))?.polls ?? 0) > polls;
    await waitUntil(isPolled, { what: 'another refusal' });
    const after = await statusOf(move);
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const ready = await fetch(`${url}/readyz`);
    const shown = await runHere(['status', '-c', config]);
    const reported = sluice.stderr.filter((line) => line.includes('its successor delivers'));
    const isSent = async () => (await statusOf(move)).sinks[0]?.backlog === 0;
    await waitUntil(isSent, { what: 'the event of the cutover at the sink' });
    await sluice.kill();
    const stopped = await runHere(['status', '-c', config]);
    const checked = await runHere(['check', '-c', config, '--connect']);
    const once = await runOnceHere(config);
    // Now everything is delivered: an event of the last poll may have been on its way before.
    const receipt = await runHere(['receipt', '-c', config, '--sink', 'disk', '--json']);

    expect(streamIn(before)?.error?.message).toContain('; the API of old ended on 2026-01-31');
    expect(streamIn(before)?.error?.next).toContain('succession cutover new_audit --force');
    expect(before.attention.map(({ who }) => who)).toContain('Upstream old');
    expect([cut.exitCode, after.ready, ready.status]).toEqual([0, true, 200]);
    expect(streamIn(after)).toMatchObject({ ended: true, error: null });
    expect(['polling', 'waiting']).toContain(streamIn(after)?.state);
    expect(after.attention.map(({ who }) => who)).toEqual([]);
    expect(after.upstreams).toMatchObject([
      { name: 'old', moved: true },
      { name: 'new', moved: false },
    ]);
    expect(metrics).toMatch(/sluice_stream_failing\{source="old_audit",stream="old_audit"\} 0/);
    expect(metrics).toMatch(/sluice_stream_halted\{source="old_audit",stream="old_audit"\} 0/);
    expect(metrics).toMatch(/sluice_upstream_moved\{upstream="old"\} 1/);
    expect(metrics).not.toMatch(/caught_up_timestamp_seconds\{source="old_audit"/);
    expect(reported).toHaveLength(1);
    for (const { stdout } of [shown, stopped]) {
      expect(stdout).toMatch(/^old_audit .* ended/m);
      expect(stdout).not.toMatch(/Upstream old|Stream old_audit/);
    }
    const { up_to: upTo, whole, streams } = JSON.parse(receipt.stdout);
    expect([receipt.exitCode, whole, streams[0].ended]).toEqual([0, true, true]);
    expect(upTo > streams[0].up_to).toBe(true);
    expect(checked.stdout).toMatch(/^note .*old.*no fault, since the successor delivers/m);
    expect([checked.exitCode, checked.stdout]).toEqual([0, expect.not.stringMatching(/^FAIL/m)]);
    expect([once.exitCode, once.stderr]).toEqual([0, '']);
  });
});

test('where one of two sources has moved, the API and the other source stay a matter', async () => {
  const other = { type: 'logs', upstream: 'old', path: '/audit', time: ['eventTime'], id: 'id' };
  const pagination = { style: 'page', page_param: 'page', size_param: 'page_size' };
  const move = await servedMove({ more: { other: { ...other, every: '100ms', pagination } } });
  const { pair, config } = move;
  pair.addMany(20);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
  await pair.die('old', 410);
  await waitUntil(async () => streamIn(await statusOf(move))?.ended, { what: 'its end' });
  await waitUntil(async () => streamIn(await statusOf(move), 'other')?.error, { what: 'a fault' });
  const status = await statusOf(move);
  await sluice.kill();
  const listed = await runHere(['succession', '-c', config]);

  expect(status.upstreams).toMatchObject([{ name: 'old', moved: false }, { name: 'new' }]);
  expect(status.attention.map(({ who }) => who)).toContain('Upstream old');
  expect(streamIn(status, 'other')?.error).toMatchObject({
    message: expect.stringContaining('the API of old ended on 2026-01-31'),
    next: expect.stringContaining('Move other to a successor: sluice succession plan'),
  });
  expect(listed.stdout).toContain('no successor: other.');
});

test('a successor that delivers and cannot be read excuses nothing', async () => {
  const move = await servedMove();
  const { pair, config } = move;
  pair.addMany(20);
  const sluice = startSluice(['run', '-c', config]);
  await move.complete();
  await runHere(['succession', 'cutover', '-c', config, 'new_audit', '--force']);
  await pair.die('old', 410);
  await pair.die('new', 503);
  const bothFail = async () => {
    const status = await statusOf(move);
    return streamIn(status)?.error !== null && streamIn(status, 'new_audit')?.error !== null;
  };
  await waitUntil(bothFail, { what: 'both to fail' });
  const failing = await statusOf(move);
  await sluice.kill();
  const stopped = await runHere(['status', '-c', config]);
  const again = startSluice(['run', '-c', config]);
  await again.waitForLine('running');
  await pair.revive('new');
  await runHere(['retry', '-c', config, 'new_audit']);
  await waitUntil(async () => streamIn(await statusOf(move))?.ended, { what: 'its end' });
  await again.kill();

  expect(stopped.stdout).toMatch(/^ ! Stream old_audit is not read/m);
  expect(failing.upstreams).toMatchObject([{ moved: false }, { moved: false }]);
  expect(streamIn(failing)?.error?.next).toContain('new_audit delivers, but cannot be read');
});
