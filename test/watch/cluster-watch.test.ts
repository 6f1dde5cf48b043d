// The whole cluster on a page: looked at only while somebody has the page open, seldom, and never in anybody's way.

import { expect, test } from 'vitest';
import { ExportError } from '../../src/contracts/errors.ts';
import type { ClusterSight } from '../../src/watch/cluster-status.ts';
import { manualClock } from '../support/manual-clock.ts';
import { waitUntil } from '../support/temp.ts';
import { aCluster, aMoment, aProcess, aServer, aStream, listenTo } from './a-moment.ts';

/** A page with a sight that counts, served on a clock of the test's. */
async function aPage(look: () => Promise<ReturnType<typeof aCluster>>) {
  const clock = manualClock();
  const counts = { looks: 0, closed: 0 };
  const cluster: ClusterSight = {
    async look() {
      counts.looks += 1;
      return await look();
    },
    close() {
      counts.closed += 1;
    },
  };
  const server = await aServer(() => aMoment(), { clock, cluster });
  /** In steps, as time passes. */
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) await clock.advance(500);
  };
  return { clock, counts, server, pass };
}

type Reader = Awaited<ReturnType<typeof listenTo>>;

const reportedTo = ({ text }: Reader) =>
  [...text().matchAll(/^event: cluster\ndata: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));

const isReported = (reader: Reader, times: number) =>
  waitUntil(() => reportedTo(reader).length >= times, { what: `${times} looks at the cluster` });

test('Kafka is queried during requests, every few seconds, and the result is released later', async () => {
  const { server, counts, pass } = await aPage(async () => aCluster());
  await pass(30_000);
  expect(counts).toEqual({ looks: 0, closed: 0 });

  const reader = await listenTo(`${server.url}/events`);
  await pass(500);
  await isReported(reader, 1);
  await pass(10_000);
  await isReported(reader, 3);
  expect(counts.looks).toBe(3);
  // A second client gets the known state at once, without another query.
  const second = await listenTo(`${server.url}/events`);
  await isReported(second, 1);
  expect(counts.looks).toBe(3);

  reader.leave();
  second.leave();
  await Promise.all([reader.ended, second.ended]);
  // The server notices it a little later.
  await waitUntil(
    async () => {
      const before = counts.looks;
      await pass(20_000);
      return counts.looks === before;
    },
    { what: 'no reader left' },
  );
  await pass(60_500);
  expect(counts.closed).toBe(1);
});

test('looks that take long are seldom, and one at a time', async () => {
  const pending: PromiseWithResolvers<ReturnType<typeof aCluster>>[] = [];
  const { server, counts, pass } = await aPage(() => {
    const one = Promise.withResolvers<ReturnType<typeof aCluster>>();
    pending.push(one);
    return one.promise;
  });
  const reader = await listenTo(`${server.url}/events`);
  await pass(20_000);
  expect(counts.looks).toBe(1);

  pending[0]?.resolve(aCluster());
  await isReported(reader, 1);
  await pass(90_000);
  expect(counts.looks).toBe(1);
  await pass(10_500);
  expect(counts.looks).toBe(2);
  // One that never ends holds up nothing.
  await server.close();
  expect(counts.closed).toBe(1);
});

test('parts that Kafka does not return are named, and their last values stay', async () => {
  let works = true;
  const { server, pass } = await aPage(async () => {
    if (works) return aCluster();
    throw new ExportError('sink_unreachable', 'no broker answers', { next: 'Wait.' });
  });
  const reader = await listenTo(`${server.url}/events`);
  await pass(500);
  await isReported(reader, 1);
  works = false;
  await pass(5_500);
  await isReported(reader, 2);

  const [first, second] = reportedTo(reader);
  expect(first).toMatchObject({ error: null, status: { prefix: 'sluice' } });
  expect(second).toEqual({ ...first, error: { message: 'no broker answers', next: 'Wait.' } });
});

test('of thousands of members and streams a page gets a limited number', async () => {
  const error = { code: 'c', message: 'm', next: 'n' };
  const streams = Array.from({ length: 5_000 }, (_, index) => ({
    ...aStream({ name: `s-${index}` }),
    error: index === 4_321 ? error : null,
  }));
  const processes = Array.from({ length: 1_000 }, (_, pid) => aProcess({ pid }));
  const { server, pass } = await aPage(async () => aCluster({ streams, processes }));
  const reader = await listenTo(`${server.url}/events`);
  await pass(500);
  await isReported(reader, 1);

  const [reported] = reportedTo(reader);
  expect([reported.processes_total, reported.streams_total]).toEqual([1_000, 5_000]);
  expect([reported.status.processes.length, reported.status.streams.length]).toEqual([100, 50]);
  expect(reported.status.streams[0].name).toBe('s-4321');
});
