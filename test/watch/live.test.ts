// What boot hands to the status server: conditions on their way into the spool, and the facts of a running journey.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConditionRecord } from '../../src/contracts/change.ts';
import type { Append } from '../../src/contracts/spool.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { conditionNotes, noticing } from '../../src/watch/live.ts';
import { aSetup } from '../commands/a-setup.ts';
import { anAppend } from '../support/a-page.ts';
import { startSluice } from '../support/cli.ts';
import { inTurn, startHttpReceiver } from '../support/http-receiver.ts';
import { afterThisTest, tempDir, waitUntil } from '../support/temp.ts';
import { ask } from './a-watched.ts';

function aCondition(stream: string, message: string): ConditionRecord {
  const observed_at = '2026-11-01T00:00:00.000Z';
  return { condition: 'source.gap', source: stream, stream, observed_at, message };
}

/** An append with the records as one page of conditions beside a usual page. */
function withConditions(records: readonly ConditionRecord[]): Append {
  const append = anAppend({ ids: ['a'] });
  const [page] = append.pages;
  if (page === undefined) throw new Error('an append has a page');
  const conditions = {
    context: { ...page.context, kind: 'condition' as const },
    body: Buffer.from(JSON.stringify(records)),
    items: '',
    kept: null,
    uids: Buffer.alloc(32 * records.length, 7),
  };
  return { ...append, pages: [page, conditions] };
}

async function aSpool() {
  const dir = tempDir('watched-');
  const spool = await openSpool({ dir, sync: 'normal', keepMs: 0, bytesMax: 1e8, sinks: ['s'] });
  afterThisTest(() => spool.close());
  return spool;
}

test('noticing notes the conditions that become durable, the newest first', async () => {
  const notes = conditionNotes();
  const spool = noticing(await aSpool(), notes);

  await spool.append(anAppend({ ids: ['0'] }));
  await spool.append(withConditions([aCondition('audit', 'one')]));
  await spool.append(withConditions([aCondition('audit', 'two'), aCondition('logs', 'three')]));

  expect(notes.latest.map(({ message }) => message)).toEqual(['three', 'two', 'one']);
  expect(notes.counts()).toEqual([
    { condition: 'source.gap', stream: 'audit', count: 2 },
    { condition: 'source.gap', stream: 'logs', count: 1 },
  ]);
  expect(spool.gauge.end).toBe(6);
});

test('noticing notes nothing of an append that failed', async () => {
  const notes = conditionNotes();
  const inner = await aSpool();
  const spool = noticing(inner, notes);
  await inner.close();

  await expect(spool.append(withConditions([aCondition('audit', 'one')]))).rejects.toThrow();

  expect(notes.latest).toEqual([]);
});

test('conditionNotes keep the latest fifty, and count all', () => {
  const notes = conditionNotes();

  for (let at = 0; at < 60; at += 1) notes.add(aCondition('audit', `${at}`));

  expect(notes.latest).toHaveLength(50);
  expect(notes.latest[0]?.message).toBe('59');
  expect(notes.counts()).toMatchObject([{ count: 60 }]);
});

test('/status.json of a running journey agrees with what was delivered', async () => {
  const well = { answer: 'reply', status: 200 } as const;
  const wrong = { answer: 'reply', status: 400, body: 'no such field' } as const;
  const receiver = await startHttpReceiver({ answer: inTurn(well, wrong, wrong, well) });
  const dir = tempDir('watched-');
  const { config } = await aSetup({
    sandbox: { events: 20 },
    sinks: [
      `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`,
      `  post: { type: http, url: "${receiver.url}", format: json, batch: { events: 1 } }`,
    ],
    more: ['status: { listen: 127.0.0.1:0 }'],
  });
  const sluice = startSluice(['run', '-c', config]);
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  const whole = async () => {
    const report = JSON.parse((await ask(`${url}/status.json`)).body);
    const [disk, post] = report.sinks;
    const isRead = report.streams[0]?.checkpoint_at !== null && disk?.delivered === 20;
    return isRead && post?.dead_letters === 2 && post?.delivered === 18 && report;
  };

  const report = await waitUntil(whole, { what: 'a whole report' });

  expect(report).toMatchObject({
    ready: true,
    upstreams: [{ name: 'edge', streams: 1, streams_failing: 0 }],
    streams: [{ name: 'audit', source: 'audit', upstream: 'edge', records: 20, order: 'unknown' }],
    spool: { end: 20, events: 0, oldest_at: null },
    sinks: [
      { name: 'disk', type: 'file', position: 20, backlog: 0, dead_letters: 0, error: null },
      { name: 'post', position: 20, dead_letter_reasons: [{ count: 2 }] },
    ],
  });
  expect(report.sinks[1].dead_letter_reasons[0].reason).toContain('400');
  expect(report.streams[0].budget).toMatchObject({ path: '/audit/events', wait_ms: 0 });
  expect(Date.parse(report.streams[0].checkpoint_at)).toBeLessThanOrEqual(Date.parse(report.at));
  expect(sluice.stderr.join('\n')).not.toContain('cursor');
});
