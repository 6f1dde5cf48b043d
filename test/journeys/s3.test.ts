// The real program beside a real S3 server: killed at each step of writing objects, and with its state put back from a copy or
// lost. What counts is what stands in the bucket: each event in exactly one object.

import { cpSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import type { OcsfEvent } from '../../src/contracts/event.ts';
import { readParquet } from '../../src/parquet/read.ts';
import { objectBytes } from '../parquet/object-bytes.ts';
import { aJourney } from '../support/a-journey.ts';
import { type ReceivedRequest, startHttpReceiver } from '../support/http-receiver.ts';
import { testSome } from '../support/long.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../support/s3.ts';
import { askedOf } from '../support/s3-front.ts';
import { s3ServerName } from '../support/s3-program.ts';

const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

const firstEvents = 300;

async function anS3Journey(how: 'gzip' | 'zstd' | 'parquet' | 'by source') {
  const bucket = await server.bucket();
  const { at, configure, grow, ...journey } = await aJourney({ events: firstEvents });
  const front = await startHttpReceiver({ keep: false });
  front.answer((request) => askedOf(server.endpoint, request));
  const { access_key_id: id, secret_access_key: secret } = server.settings.credentials;
  const other = '  other: { type: audit_events, upstream: edge, every: 1s }';
  const config = configure('sluice', {
    ...{ state: 'state', otherSources: how === 'by source' ? other : '' },
    sinks: `  lake:
    type: s3
    bucket: ${bucket}
    prefix: ${how === 'by source' ? 'sluice/{source}' : 'sluice'}
    endpoint: "${front.url}"
    credentials: { access_key_id: ${id}, secret_access_key: ${secret} }
    ${how === 'parquet' ? 'format: parquet' : `compress: ${how === 'zstd' ? 'zstd' : 'gzip'}`}
    rotate: { bytes: 30KiB, every: 200ms }
    batch: { events: 10, wait: 10ms }
    retry: { min: 50ms, max: 1s }`,
  });
  return {
    ...{ state: at('state'), copy: at('copy'), grow },
    start: () => journey.start(config),
    once: () => journey.once(config),
    front,
    objects: () => server.objects(bucket),
    /** Upstream's records, without sluice's own events. */
    async uids(): Promise<readonly string[]> {
      const objects = [...(await server.objects(bucket))];
      const events = await Promise.all(objects.map(([object, { body }]) => eventsIn(object, body)));
      return events
        .flat()
        .map(({ metadata }) => metadata)
        .filter(({ log_name: log }) => log !== 'sluice')
        .map(({ uid }) => uid);
    },
  };
}

async function eventsIn(object: string, body: Buffer): Promise<readonly OcsfEvent[]> {
  if (object.endsWith('.parquet')) return await readParquet(objectBytes(body));
  const text = object.endsWith('.gz') ? gunzipSync(body) : zstdDecompressSync(body);
  return text
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** What a request is for. */
function stepOf({ method, path }: ReceivedRequest): 'list' | 'look' | 'write' {
  if (path.includes('list-type=2')) return 'list';
  return method === 'PUT' ? 'write' : 'look';
}

/**
 * Where a process is killed: before the server gets a request, which it never does, or late; before the answer; or a moment
 * after that.
 */
type Moment = 'before' | 'late' | 'unanswered' | 'after';

const kills: readonly (readonly [step: ReturnType<typeof stepOf>, nth: number, Moment])[] = [
  ['write', 1, 'before'],
  ['write', 1, 'unanswered'],
  ['look', 1, 'before'],
  ['write', 2, 'late'],
  ['list', 1, 'unanswered'],
  ['write', 1, 'late'],
  ['write', 1, 'after'],
  ['look', 1, 'after'],
  ['write', 3, 'unanswered'],
  ['write', 2, 'before'],
  ['write', 2, 'after'],
  ['list', 1, 'after'],
  ['write', 5, 'late'],
  ['write', 5, 'unanswered'],
];

/** A cut of tables, or of several sources, has several objects, of which the last says that it is whole. */
const killsBetweenTables: typeof kills = [
  ['write', 1, 'unanswered'],
  ['write', 2, 'late'],
  ['write', 1, 'late'],
  ['write', 2, 'unanswered'],
  ['write', 3, 'before'],
  ['write', 4, 'late'],
];

describe(`s3 sink at ${name}`, () => {
  testSome(1, ['zstd', 'parquet', 'by source'])(
    'a program killed at each step has each event in exactly one object (%s)',
    async (how) => {
      const journey = await anS3Journey(how);
      let events = firstEvents;
      let late: (() => Promise<unknown>) | null = null;
      const passOn = async (request: ReceivedRequest) => {
        // What was in the network when its process died arrives when the next one has looked.
        if (stepOf(request) === 'write') await late?.();
        if (stepOf(request) === 'write') late = null;
        return await askedOf(server.endpoint, request);
      };
      for (const [step, nth, moment] of how === 'zstd' ? kills : killsBetweenTables) {
        const reached = Promise.withResolvers<void>();
        const killed = Promise.withResolvers<void>();
        let seen = 0;
        journey.front.answer(async (request) => {
          if (stepOf(request) === step) seen += 1;
          if (seen !== nth || stepOf(request) !== step) return await passOn(request);
          const isLost = moment === 'before' || moment === 'late';
          const answer = isLost ? null : await passOn(request);
          if (moment === 'late') late = () => askedOf(server.endpoint, request);
          reached.resolve();
          if (moment !== 'after') await killed.promise;
          return answer ?? { answer: 'reset' };
        });
        const sluice = journey.start();
        await reached.promise;
        if (moment === 'after') await delay(nth * 2);
        await sluice.kill('SIGKILL');
        killed.resolve();
        expect(seen).toBeGreaterThanOrEqual(nth);
        journey.grow(100);
        events += 100;
      }
      journey.front.answer(passOn);

      const { exitCode, stderr } = await journey.once();

      const uids = await journey.uids();
      const expected = how === 'by source' ? 2 * events : events;
      expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('state_older')]);
      expect([uids.length, new Set(uids).size]).toEqual([expected, expected]);
    },
  );

  test('a state that is put back, or lost, repeats nothing, and is reported', {
    tags: ['long'],
  }, async () => {
    const { state, copy, once, grow, uids, objects } = await anS3Journey('gzip');
    await once();
    cpSync(state, copy, { recursive: true });
    grow(100);
    await once();
    const before = await objects();

    rmSync(state, { recursive: true });
    cpSync(copy, state, { recursive: true });
    grow(100);
    const restored = await once();
    const again = await once();
    const afterRestore = await uids();
    rmSync(state, { recursive: true });
    const lost = await once();
    const afterLoss = await uids();

    for (const [name, { body }] of before) {
      expect(body.equals((await objects()).get(name)?.body ?? Buffer.alloc(0))).toBe(true);
    }
    for (const found of [afterRestore, afterLoss]) {
      expect([found.length, new Set(found).size]).toEqual([firstEvents + 200, firstEvents + 200]);
    }
    expect(again.exitCode).toBe(0);
    for (const run of [restored, lost]) {
      expect([run.exitCode, run.stderr.includes('state_older')]).toEqual([0, true]);
    }
  });
});
