// The state directory restored from a copy, cut, and lost, beside a file that has more: nothing that was written is
// cut, each event is there once, and the loss is reported.

import { cpSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aJourney, uidsOfRecords } from '../support/a-journey.ts';
import { waitUntil } from '../support/temp.ts';

const events = 600;

async function aFileJourney() {
  const { at, configure, ...journey } = await aJourney({ events: events / 2 });
  const sinks = `  disk: { type: file, path: ${at('out/events.ndjson')}, rotate: { bytes: 200KiB } }`;
  const config = configure('sluice', { state: 'state', sinks });
  const text = () =>
    readdirSync(at('out'))
      .filter((name) => !name.startsWith('.'))
      .map((name) => readFileSync(join(at('out'), name), 'utf8'))
      .join('');
  return {
    ...{ state: at('state'), copy: at('copy'), grow: journey.grow },
    once: () => journey.once(config),
    start: () => journey.start(config),
    lines: () => text().split('\n').slice(0, -1),
    uids: () => uidsOfRecords(text()),
  };
}

test('a state that is put back, or lost, neither cuts the file nor repeats in it, and is reported', async () => {
  const { state, copy, once, grow, lines, uids } = await aFileJourney();
  await once();
  cpSync(state, copy, { recursive: true });
  grow(events / 2);
  await once();
  const before = new Set(lines());

  rmSync(state, { recursive: true });
  cpSync(copy, state, { recursive: true });
  const restored = await once();
  const afterRestore = uids();
  rmSync(state, { recursive: true });
  const lost = await once();
  const afterLoss = uids();

  expect(before.size).toBe(events);
  expect([...before].filter((line) => !lines().includes(line))).toEqual([]);
  for (const uids of [afterRestore, afterLoss]) {
    expect([uids.length, new Set(uids).size]).toEqual([events, events]);
  }
  for (const run of [restored, lost]) {
    expect([run.exitCode, run.stderr.includes('state_older')]).toEqual([0, true]);
  }
});

test('a log of the database that is removed after a kill is reported, and repeats nothing in the file', {
  tags: ['long'],
}, async () => {
  const { state, once, start, grow, uids } = await aFileJourney();
  await once();
  grow(events / 2);
  const running = start();
  await waitUntil(() => uids().length === events, { what: 'all events in the file' });
  await running.kill('SIGKILL');

  rmSync(join(state, 'sluice.db-wal'));
  const after = await once();

  expect([uids().length, new Set(uids()).size]).toEqual([events, events]);
  expect([after.exitCode, after.stderr.includes('state_older')]).toEqual([0, true]);
});
