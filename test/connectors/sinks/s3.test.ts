// The s3 sink at a real server: how objects are cut and called, what others can read in them, and what it says when the bucket
// is away, denied, or not its own. Kills of the whole program are in test/journeys/s3.test.ts.

import { spawnSync } from 'node:child_process';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { DeleteObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { s3Sink } from '../../../connectors/sinks/s3.ts';
import type { Json } from '../../../src/contracts/json.ts';
import { Secret } from '../../../src/contracts/secret.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { openStore } from '../../../src/objects/open.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { askedOf } from '../../support/s3-front.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import {
  type OpenedSink,
  openSink,
  parseSettings,
  someEvents,
  testTools,
} from '../../support/sink-opening.ts';
import { FakeEngine, uids, uidsIn } from './file-engine.ts';

const never = new AbortController().signal;
const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

async function aBucket(config: object = {}) {
  const bucket = await server.bucket();
  const settings = { ...server.settings, bucket, ...config };
  return { bucket, settings };
}

/** What `gzip` and `zstd` themselves make of a body; Node where they are missing. */
function unpacked(object: string, body: Buffer): string {
  const isGzip = object.endsWith('.gz');
  const [command, decompress] = isGzip ? ['gzip', gunzipSync] : ['zstd', zstdDecompressSync];
  const run = spawnSync(command, ['-dcq'], { input: body, maxBuffer: 1e9 });
  if (run.status !== 0 && run.error === undefined) throw new Error(run.stderr.toString());
  return (run.error === undefined ? run.stdout : decompress(body)).toString();
}

async function linesIn(bucket: string): Promise<readonly string[]> {
  const objects = [...(await server.objects(bucket))].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return objects.flatMap(([object, { body }]) => uidsIn(unpacked(object, body)));
}

/** An object as a writer of the bucket can make it: metadata of objects shows the spool and its epochs. */
async function forge(Bucket: string, Key: string, place: { epoch: number; next: number }) {
  const claims = { spool: 'spool-1', events: 0, uids: '0'.repeat(64), ...place };
  const Metadata = Object.fromEntries(
    Object.entries(claims).map(([key, value]) => [`sluice-${key}`, String(value)]),
  );
  await server.client.send(new PutObjectCommand({ Bucket, Key, Body: 'x', Metadata }));
}

describe(`s3 sink at ${name}`, () => {
  test('objects are cut by bytes and age, and are named by day, epoch and first event', async () => {
    const clock = manualClock(Date.UTC(2026, 2, 4, 23, 59));
    const { bucket, settings } = await aBucket({
      prefix: '/in/here/',
      rotate: { bytes: '3KiB', every: '5m' },
    });
    const { sink, batch } = await openSink(s3Sink, settings, {
      tools: testTools(clock),
      epochs: [{ id: 1_772_000_000_000, until: null }],
    });
    const answers: (Delivery['outcome'] | null)[] = [];
    const send = (first: number, count: number) => {
      const at = answers.push(null) - 1;
      void sink.send(batch(someEvents(count, first)), never).then(({ outcome }) => {
        answers[at] = outcome;
      });
    };

    send(40, 1);
    send(41, 1);
    await sink.ready?.(never);
    expect([answers, sink.dueInMs?.()]).toEqual([[null, null], 300_000]);
    send(42, 9); // more than 3 KiB in all
    await expect.poll(() => answers).toEqual(['delivered', 'delivered', 'delivered']);
    clock.jump(86_400_000);
    send(51, 1);
    await sink.ready?.(never);
    await clock.advance(299_999);
    expect([answers.at(-1), sink.dueInMs?.()]).toEqual([null, 1]);
    await clock.advance(1);
    await expect.poll(() => answers.at(-1)).toBe('delivered');
    clock.jump(-86_400_000); // names keep their order all the same
    send(52, 9);
    await expect.poll(() => answers.at(-1)).toBe('delivered');
    // A clock that was far ahead for a moment names no later object, and one that is behind none at all.
    const tenYears = 3_650 * 86_400_000;
    for (const [jump, first] of [
      [tenYears, 61],
      [-tenYears, 70],
      [-Date.UTC(2026, 2, 4), 79],
    ] as const) {
      clock.jump(jump);
      send(first, 9);
      await expect.poll(() => answers.at(-1)).toBe('delivered');
    }

    expect(sink.dueInMs?.()).toBeNull();
    expect([...(await server.objects(bucket)).keys()]).toEqual([
      'in/here/2026/03/04/1772000000000-0000000000000040.ndjson.gz',
      'in/here/2026/03/05/1772000000000-0000000000000051.ndjson.gz',
      'in/here/2026/03/05/1772000000000-0000000000000052.ndjson.gz',
      'in/here/2026/03/05/1772000000000-0000000000000070.ndjson.gz',
      'in/here/2026/03/05/1772000000000-0000000000000079.ndjson.gz',
      'in/here/2036/03/02/1772000000000-0000000000000061.ndjson.gz',
    ]);
  });

  test.each(['gzip', 'zstd'])(
    'other programs read an object of %s, whose uids are at its end',
    async (compress) => {
      const { bucket, settings } = await aBucket({ compress });
      const { sink, batch } = await openSink(s3Sink, settings, {
        epochs: [{ id: 7, until: null }],
      });
      const events = someEvents(9_000);
      const answers = [0, 3_000, 6_000].map((at) =>
        sink.send(batch(events.slice(at, at + 3_000)), never),
      );
      sink.flush?.();
      await Promise.all(answers);
      expect(await linesIn(bucket)).toEqual(events.map(({ uid }) => uid));

      // Another state's sink leaves all of them out, and takes what is new.
      const other = await openSink(s3Sink, settings, {
        spoolId: 'other',
        epochs: [{ id: 8, until: null }],
      });
      expect(await other.sink.committed?.(never)).toEqual({ position: 0, ahead: true });
      const mixed = other.sink.send(
        other.batch([...events.toReversed(), ...someEvents(1, 9_000)]),
        never,
      );
      other.sink.flush?.();
      expect(await mixed).toEqual({ outcome: 'delivered' });
      expect((await linesIn(bucket)).toSorted()).toEqual(uids(9_001).toSorted());
    },
  );

  test('an object of other events under its name stops the sink, which says so', async () => {
    const { bucket, settings } = await aBucket();
    const clock = manualClock(Date.UTC(2026, 0, 1));
    const { sink, batch } = await openSink(s3Sink, settings, { tools: testTools(clock) });
    await sink.committed?.(never);
    const { endpoint, region } = server.settings;
    const { access_key_id, secret_access_key } = server.settings.credentials;
    const store = await openStore(`s3://${bucket}`, {
      endpoint,
      region,
      credentials: { access_key_id, secret_access_key: new Secret(() => secret_access_key) },
    });
    await store.create('2026/01/01/0000000000001-0000000000000000.ndjson.gz', [Buffer.from('x')]);

    const answer = sink.send(batch(someEvents(2)), never);
    sink.flush?.();

    expect(await answer).toMatchObject({
      outcome: 'refused',
      scope: 'sink',
      cause: { code: 'sink_refused', message: expect.stringMatching(/other events/) },
    });
  });

  test('a bucket that is away for a while gets the same objects, and nothing twice', async () => {
    const { bucket, settings } = await aBucket();
    const front = await startHttpReceiver({ keep: false });
    let isAway = false;
    front.answer(async (request) => {
      const answer = await askedOf(server.endpoint, request);
      return isAway ? { answer: 'reset' } : answer; // it arrives, and the response is lost
    });
    const { sink, batch } = await openSink(s3Sink, { ...settings, endpoint: front.url });
    await sink.committed?.(never);
    isAway = true;

    const lost = [0, 1, 2].map((at) => sink.send(batch(someEvents(1, at)), never));
    sink.flush?.();
    for (const answer of lost) expect((await answer).outcome).toBe('retry');
    expect((await sink.send(batch(someEvents(1)), never)).outcome).toBe('retry');
    isAway = false;
    const again = await sink.send(batch(someEvents(2)), never);
    const rest = sink.send(batch(someEvents(3, 2)), never);
    sink.flush?.();

    expect([again, await rest]).toEqual([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
    expect(await linesIn(bucket)).toEqual(uids(5));
    expect(await server.objects(bucket)).toHaveProperty('size', 2);
  });

  test('an account that may only write does so, and the log names the checks that are skipped', async () => {
    const { bucket, settings } = await aBucket();
    const denied = '<Error><Code>AccessDenied</Code><Message>no s3:ListBucket</Message></Error>';
    const front = await startHttpReceiver({
      answer: (request) =>
        request.method === 'PUT'
          ? askedOf(server.endpoint, request)
          : { answer: 'reply', status: 403, body: denied },
    });
    const config = { ...settings, endpoint: front.url };
    const { sink, batch, tools } = await openSink(s3Sink, config);

    const answer = sink.send(batch(someEvents(3)), never);
    sink.flush?.();

    expect(await answer).toEqual({ outcome: 'delivered' });
    expect(await linesIn(bucket)).toEqual(uids(3));
    expect(tools.logged).toMatchObject([{ level: 'warn', fields: { code: 'sink_refused' } }]);
    const probed = s3Sink.probe(parseSettings(s3Sink, config), tools, never);
    await expect(probed).rejects.toMatchObject({
      code: 'sink_refused',
      next: expect.stringMatching(/s3:ListBucket/),
    });
  });

  test('a probe names the fault, and leaves nothing', async () => {
    const { bucket, settings } = await aBucket();
    const probe = (change: object) =>
      s3Sink.probe(parseSettings(s3Sink, { ...settings, ...change }), testTools(), never);

    await probe({});
    await expect(probe({ bucket: 'not-there' })).rejects.toMatchObject({ code: 'sink_refused' });
    await expect(probe({ endpoint: 'http://127.0.0.1:1' })).rejects.toMatchObject({
      code: 'sink_unreachable',
    });
    expect(await server.objects(bucket)).toHaveProperty('size', 0);
  });

  test.each([
    ['the epoch before', 7],
    ['the present epoch', 9],
  ])('an object forged for %s makes the sink skip no event, and is reported', async (_, epoch) => {
    const { bucket, settings } = await aBucket();
    const epochs = [
      { id: 7, until: 40 },
      { id: 9, until: null },
    ];
    const forged = `2026/03/04/${String(epoch).padStart(13, '0')}-0000000000000000.ndjson.gz`;
    await forge(bucket, forged, { epoch, next: 40 });
    const { sink, batch } = await openSink(s3Sink, settings, { epochs, position: 10 });

    const reach = await sink.committed?.(never);
    const answer = sink.send(batch(someEvents(30, 10)), never);
    sink.flush?.();

    expect(reach).toEqual({ position: 0, ahead: true });
    expect(await answer).toEqual({ outcome: 'delivered' });
    await server.client.send(new DeleteObjectCommand({ Bucket: bucket, Key: forged }));
    expect(await linesIn(bucket)).toEqual(someEvents(30, 10).map(({ uid }) => uid));
  });

  test('an object of a later day does not move the next objects to that day', async () => {
    const clock = manualClock(Date.UTC(2026, 2, 4));
    const { bucket, settings } = await aBucket();
    const forged = '2999/12/31/0000000000009-0000000000000000.ndjson.gz';
    await forge(bucket, forged, { epoch: 9, next: 10 });
    const wishes = { tools: testTools(clock), epochs: [{ id: 9, until: null }], position: 10 };
    const { sink, batch } = await openSink(s3Sink, settings, wishes);

    const answer = sink.send(batch(someEvents(3, 10)), never);
    sink.flush?.();

    expect(await answer).toEqual({ outcome: 'delivered' });
    const names = [...(await server.objects(bucket)).keys()].filter((one) => one !== forged);
    expect(names).toEqual(['2026/03/04/0000000000009-0000000000000010.ndjson.gz']);
  });

  test('a state of the time when the clock was years ahead finds the objects of the days after that', async () => {
    const tenYears = 3_650 * 86_400_000;
    const clock = manualClock(Date.UTC(2026, 2, 4) + tenYears);
    const { bucket, settings } = await aBucket();
    const marks: Json[] = [];
    const wishes = {
      ...{ tools: testTools(clock), epochs: [{ id: 9, until: null }] },
      remember: async (mark: Json) => void marks.push(mark),
    };
    const send = async ({ sink, batch }: OpenedSink, first: number, count: number) => {
      const answer = sink.send(batch(someEvents(count, first)), never);
      sink.flush?.();
      expect(await answer).toEqual({ outcome: 'delivered' });
    };
    const before = await openSink(s3Sink, settings, { ...wishes, position: 10 });
    await send(before, 10, 3);
    clock.jump(-tenYears);
    await send(before, 13, 3);
    const mark = marks.at(-1) ?? null;
    await send(before, 16, 3);
    await before.sink.close();

    const after = await openSink(s3Sink, settings, { ...wishes, position: 13, mark });
    await send(after, 13, 8);

    const all = someEvents(11, 10).map(({ uid }) => uid);
    expect((await linesIn(bucket)).toSorted()).toEqual(all.toSorted());
  });

  test('whatever becomes of the state, each record stands once', async () => {
    const act = fc.oneof(
      {
        weight: 5,
        arbitrary: fc.record({
          act: fc.constant('send' as const),
          count: fc.integer({ min: 1, max: 4 }),
          keep: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ act: fc.constantFrom('restart', 'copy', 'restore', 'lose') }),
      },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 14 }), async (acts) => {
        const { bucket, settings } = await aBucket();
        const engine = new FakeEngine('', settings, { definition: s3Sink });
        let copy = engine.copy();
        for (const one of acts) {
          if (one.act === 'send') {
            const delivery = await engine.send(one.count, one);
            expect(delivery.outcome).toBe('delivered');
            if (!one.keep) await engine.restart();
          } else if (one.act === 'restart') await engine.restart();
          else if (one.act === 'copy') copy = engine.copy();
          else if (one.act === 'restore') await engine.restore(copy);
          else await engine.restore();
        }
        await engine.catchUp();
        expect((await linesIn(bucket)).toSorted()).toEqual(uids(engine.records).toSorted());
        await engine.restart();
      }),
      { numRuns: 25 },
    );
  });
});
