// kafkajs sends batches that sluice has encoded, also where another producer of the same process loaded kafkajs's requests
// first.

import { createRequire } from 'node:module';
import { expect, test, vi } from 'vitest';

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
