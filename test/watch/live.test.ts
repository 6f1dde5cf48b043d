// The facts of a running journey, as its status reports them.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aSetup } from '../commands/a-setup.ts';
import { startSluice } from '../support/cli.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { tempDir, waitUntil } from '../support/temp.ts';
import { ask } from './a-moment.ts';

test('/status.json of a running journey agrees with the deliveries', async () => {
  const well = { answer: 'reply', status: 200 } as const;
  const wrong = { answer: 'reply', status: 400, body: 'no such field' } as const;
  // The second and the third event are bad for good.
  const seen: string[] = [];
  const receiver = await startHttpReceiver({
    answer: ({ body }) => {
      const event = body.toString();
      if (!seen.includes(event)) seen.push(event);
      return [1, 2].includes(seen.indexOf(event)) ? wrong : well;
    },
  });
  const dir = tempDir('watched-');
  const { config } = await aSetup({
    sandbox: { events: 20 },
    sinks: [
      `  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`,
      `  post: { type: http, url: "${receiver.url}", format: json, batch: { events: 1 }, retry: { max: 1s } }`,
    ],
    more: ['status: { listen: 127.0.0.1:0 }'],
  });
  const sluice = startSluice(['run', '-c', config]);
  const { url } = JSON.parse(await sluice.waitForLine('"status page"'));
  const whole = async () => {
    const report = JSON.parse((await ask(`${url}/status.json`)).body);
    const [disk, post] = report.sinks;
    const isRead = report.streams[0]?.checkpoint_at !== null && disk?.delivered === 20;
    // Pages go a moment after the last sink has them.
    return (
      isRead &&
      report.spool.events === 0 &&
      post?.dead_letters === 2 &&
      post?.delivered === 18 &&
      report
    );
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
