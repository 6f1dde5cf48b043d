// kafkajs sends batches that sluice has encoded, also where another producer of the same process loaded kafkajs's requests
// first. Its waits do not depend on the wall clock.

import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { prepareKafkajs } from '../../src/kafka/kafkajs-patches.ts';
import { waitUntil } from '../support/temp.ts';

const load = createRequire(import.meta.url);
const root = 'kafkajs/src/protocol/requests/produce';

test.each([3, 4, 5, 6, 7])(
  'a request of version %i that was loaded before the patches',
  async (version) => {
    for (const each of [3, 4, 5, 6, 7]) delete load.cache[load.resolve(`${root}/v${each}/request`)];
    load(`${root}/v${version}/request`);
    vi.resetModules();
    const { prepareKafkajs } = await import('../../src/kafka/kafkajs-patches.ts');
    prepareKafkajs();

    const batch = Buffer.from('an encoded batch');
    const { request } = load(root).protocol({ version })({
      acks: -1,
      timeout: 1_000,
      topicData: [{ topic: 'events', partitions: [{ partition: 0, batch }] }],
    });
    const { buffer } = await request.encode();

    expect(request.apiVersion).toBe(version);
    expect(buffer.includes(batch)).toBe(true);
  },
);

/** A queue of requests to one broker, with the errors and the ids of sent requests. */
function aQueue(requestTimeout = 300) {
  prepareKafkajs();
  const sent: number[] = [];
  const failed: Error[] = [];
  const Queue = load('kafkajs/src/network/requestQueue');
  const logger = { debug: () => undefined, warn: () => undefined };
  const broker = { clientId: 'c', broker: 'b', logger };
  const queue = new Queue({ ...broker, requestTimeout, enforceRequestTimeout: true });
  queue.scheduleRequestTimeoutCheck();
  onTestFinished(() => {
    queue.destroy();
    vi.restoreAllMocks();
  });
  const push = (correlationId: number) =>
    queue.push({
      entry: { correlationId, reject: (error: Error) => failed.push(error) },
      expectResponse: true,
      sendRequest: () => sent.push(correlationId),
    });
  return { queue, push, sent, failed };
}

const hourMs = 3_600_000;

test('a throttle ends although the clock is set back by an hour', async () => {
  const { queue, push, sent } = aQueue(60_000);
  queue.maybeThrottle(50);
  const now = Date.now();
  vi.spyOn(Date, 'now').mockReturnValue(now - hourMs);

  push(1);
  const atOnce = [...sent];
  await waitUntil(() => sent.length === 1, { what: 'the request to be sent' });

  expect(atOnce).toEqual([]);
});

test('a request times out although the clock is set back, and not because it was set forward', async () => {
  const { push, failed } = aQueue();
  const now = Date.now();
  const clock = vi.spyOn(Date, 'now').mockReturnValue(now);
  const begun = performance.now();

  push(1);
  clock.mockReturnValue(now + hourMs);
  await delay(150);
  const [early, elapsedMs] = [failed.length, performance.now() - begun];
  clock.mockReturnValue(now - hourMs);
  await waitUntil(() => failed.length === 1, { what: 'the timeout' });

  // On a slow machine the time may be over by then.
  expect(early === 0 || elapsedMs > 300).toBe(true);
  expect(failed[0]).toMatchObject({ name: 'KafkaJSRequestTimeoutError' });
});
