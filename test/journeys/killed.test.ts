// SIGKILL while batches are answered as fast as they come: what an http receiver had answered before is not sent again, but
// for the one batch whose answer was on its way.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { aJourney } from '../support/a-journey.ts';
import { afterThisTest } from '../support/temp.ts';

interface Arrived {
  readonly run: number;
  readonly uids: readonly string[];
}

const kills = 4;

test('sluice that is killed sends again at most the batch under way and one more', {
  tags: ['long'],
}, async () => {
  const { configure, start } = await aJourney({
    events: 50_000,
    source: 'every: 1s, page_limit: 1000',
  });
  const answered: Arrived[] = [];
  let run = 0;
  let waiting = { until: Number.POSITIVE_INFINITY, done: () => {} };
  const receiver = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const lines = Buffer.concat(pieces).toString().trim().split('\n');
    const uids = lines.map((line) => JSON.parse(line).metadata.uid as string);
    answered.push({ run, uids });
    response.end();
    if (answered.length >= waiting.until) waiting.done();
  });
  receiver.listen(0, '127.0.0.1');
  afterThisTest(() => receiver.close());
  await once(receiver, 'listening');
  const { port } = receiver.address() as AddressInfo;
  const config = configure('sluice', {
    sinks: `  post: { type: http, url: "http://127.0.0.1:${port}/", batch: { events: 10 } }`,
  });

  for (; run < kills; run += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting = { until: answered.length + 40 + run * 13, done: resolve };
    const sluice = start(config);
    await Promise.race([promise, sluice.exited]);
    await sluice.kill('SIGKILL');
  }

  const again = Array.from({ length: kills - 1 }, (_, index) => {
    const later = new Set(answered.filter((one) => one.run > index).flatMap(({ uids }) => uids));
    const before = answered.filter((one) => one.run === index);
    return before.filter(({ uids }) => uids.some((uid) => later.has(uid))).length;
  });
  expect(Math.max(...again)).toBeLessThanOrEqual(2);
});
