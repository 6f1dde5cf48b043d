// An object for each company, at a real S3 server: each event is in the objects of its company once, whatever happens to
// the process and its state, and other sinks and shards may write beside them.

import { gunzipSync } from 'node:zlib';
import { DeleteObjectCommand } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { s3Sink } from '../../../connectors/sinks/s3.ts';
import type { Json } from '../../../src/contracts/json.ts';
import type { Delivery } from '../../../src/contracts/sink.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { manualClock } from '../../support/manual-clock.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { askedOf } from '../../support/s3-front.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { openSink, someEvents, testTools } from '../../support/sink-opening.ts';
import { anyActs, perform } from './engine-acts.ts';
import { FakeEngine, uids, uidsIn } from './file-engine.ts';

const never = new AbortController().signal;
const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

async function settingsOf(prefix: string) {
  const bucket = await server.bucket();
  return { ...server.settings, bucket, prefix };
}

/** The uids in the objects of lines, by the directory before the day. */
async function uidsByDirectory(bucket: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>();
  for (const [object, { body }] of await server.objects(bucket)) {
    const [, directory = ''] = /^(.*?)\d{4}\/\d\d\/\d\d\/[^/]+\.ndjson\.gz$/.exec(object) ?? [];
    if (!object.endsWith('.ndjson.gz')) continue;
    found.set(directory, [...(found.get(directory) ?? []), ...uidsIn(gunzipSync(body).toString())]);
  }
  return found;
}

const ofCompanies = (count: number, companies: number, first = 0) =>
  someEvents(count, first).map((event, at) => ({
    ...event,
    context: { ...event.context, company: `c-${(first + at) % companies}` },
  }));

describe(`s3 sink at ${name} with a company in its prefix`, () => {
  test('has each event once under its company, whatever happens to the state', async () => {
    await fc.assert(
      fc.asyncProperty(anyActs, async (acts) => {
        const settings = await settingsOf('logs/{company}');
        const engine = new FakeEngine('', settings, { definition: s3Sink, companies: 3 });

        await perform(engine, acts);

        const found = await uidsByDirectory(settings.bucket);
        for (let company = 0; company < 3; company += 1) {
          const own = uids(engine.records).filter((_, record) => record % 3 === company);
          expect((found.get(`logs/c-${company}/`) ?? []).toSorted()).toEqual(own.toSorted());
        }
      }),
      { numRuns: 20 },
    );
  });

  test.each(['logs', 'logs/{company}'])(
    'in %s: repeats no event where the process ended after the mark of a cut and before the position',
    async (prefix) => {
      const settings = await settingsOf(prefix);
      const engine = new FakeEngine('', settings, { definition: s3Sink, companies: 2 });
      await engine.send(3);
      const before = [...(await server.objects(settings.bucket)).keys()];
      await engine.send(4);
      await engine.restart();
      // Its second cut was never written.
      for (const Key of (await server.objects(settings.bucket)).keys()) {
        const of = { Bucket: settings.bucket, Key };
        if (!before.includes(Key)) await server.client.send(new DeleteObjectCommand(of));
      }
      engine.position = 1;

      await engine.catchUp(6);
      await engine.restart();

      const found = [...(await uidsByDirectory(settings.bucket)).values()].flat();
      expect(found.toSorted()).toEqual(uids(7).toSorted());
    },
  );

  test.each([
    'other batches reach its size',
    'it is flushed',
    'a process is stopped',
    'it is slow',
  ])('repeats a cut up to its own end, also if %s before', async (how) => {
    const { bucket, ...others } = await settingsOf('logs/{company}');
    const settings = { ...others, bucket, rotate: { bytes: '1KiB', every: '1s' } };
    const front = await startHttpReceiver({ keep: false });
    let writes = 0;
    front.answer(async (request) => {
      if (request.method === 'PUT') writes += 1;
      // One object of the cut is written, and then the process dies.
      return writes > 1 ? { answer: 'reset' } : await askedOf(server.endpoint, request);
    });
    let mark: Json = null;
    const remember = async (kept: Json) => {
      mark = kept;
    };
    const killed = await openSink(s3Sink, { ...settings, endpoint: front.url }, { remember });
    const lost = [ofCompanies(1, 2), ofCompanies(60, 2, 1)].map((events) =>
      killed.sink.send(killed.batch(events), never),
    );
    for (const answer of lost) expect((await answer).outcome).toBe('retry');
    expect(await server.objects(bucket)).toHaveProperty('size', 1);

    const clock = manualClock(Date.UTC(2026, 2, 4));
    const tools = testTools(clock);
    const send = ({ sink, batch }: typeof killed, at: number) =>
      sink.send(batch(ofCompanies(1, 2, at)), never);
    let next = await openSink(s3Sink, settings, { mark, remember, tools });
    if (how === 'a process is stopped') {
      const begun = [0, 1, 2].map((at) => send(next, at));
      await next.sink.ready?.(never);
      await next.sink.close();
      for (const answer of begun) expect(await answer).toMatchObject({ outcome: 'retry' });
      next = await openSink(s3Sink, settings, { mark, remember, tools });
    }
    const answers: Promise<Delivery>[] = [];
    for (let at = 0; at < 61; at += 1) {
      answers.push(send(next, at));
      if (how === 'it is flushed') next.sink.flush?.();
      if (how !== 'it is slow') continue;
      await next.sink.ready?.(never);
      await clock.advance(29_000);
    }

    expect(await Promise.all(answers)).toEqual(answers.map(() => ({ outcome: 'delivered' })));
    const found = [...(await uidsByDirectory(bucket)).values()].flat();
    expect(found.toSorted()).toEqual(uids(61).toSorted());
    expect(await server.objects(bucket)).toHaveProperty('size', 3);
  });

  test('writes one object for each company of a cut, and one list', async () => {
    const settings = await settingsOf('{source}/{company}');
    const { sink, batch } = await openSink(s3Sink, settings);
    const answers = [0, 1].map((at) => sink.send(batch(ofCompanies(600, 300, at * 600)), never));
    sink.flush?.();
    const delivered = await Promise.all(answers);
    await sink.close();
    const objects = [...(await server.objects(settings.bucket)).keys()];

    expect(delivered).toEqual([{ outcome: 'delivered' }, { outcome: 'delivered' }]);
    expect(objects.length).toBe(301);
    expect(objects.filter((one) => one.startsWith('_source_/_company_/'))).toEqual([
      expect.stringMatching(/^_source_\/_company_\/\d{4}\/\d\d\/\d\d\/\d{13}-\d{16}\.uids\.gz$/),
    ]);
  });

  test('is no obstacle for a sink that writes to the directory of one company, or for another shard', async () => {
    const { bucket, ...others } = await settingsOf('');
    const prefixes = ['logs/{company}', 'logs/c-1', 'logs/{company}/7'];
    const epochs = [{ id: 7, until: null }];
    for (const [at, prefix] of prefixes.entries()) {
      const { sink, batch } = await openSink(
        s3Sink,
        { ...others, bucket, prefix },
        { spoolId: `spool-${at}`, epochs },
      );
      const reach = await sink.committed?.(never);
      const answer = sink.send(batch(ofCompanies(4, 2)), never);
      sink.flush?.();

      expect(reach).toEqual({ position: 0, ahead: false });
      expect(await answer).toEqual({ outcome: 'delivered' });
      await sink.close();
    }

    const found = await uidsByDirectory(bucket);
    expect([...found.keys()].toSorted()).toEqual([
      'logs/c-0/',
      'logs/c-0/7/',
      'logs/c-1/',
      'logs/c-1/7/',
    ]);
    expect(found.get('logs/c-1/')?.length).toBe(2 + 4);
    const again = await openSink(
      s3Sink,
      { ...others, bucket, prefix: 'logs/{company}' },
      { spoolId: 'spool-0', epochs, position: 4 },
    );
    expect(await again.sink.committed?.(never)).toEqual({ position: 4, ahead: false });
  });

  test.each([
    [{ prefix: 'a/{company}', layout: 'plain' }, 'parquet', /not replaced for Parquet/],
    [{ prefix: 'a/{company}{source}', layout: 'plain' }, 'json', /write one of - _ \./],
    [{ prefix: 'a/{company}', layout: 'plain' }, 'json', null],
    [{ prefix: 'a/b', layout: 'plain' }, 'parquet', null],
  ])('%j with format %s: check gives the flaw, if any', (settings, type, flaw) => {
    const found = s3Sink.flaw?.({ type: 's3', ...settings }, { type }) ?? null;

    if (flaw === null) expect(found).toBeNull();
    else expect(found).toMatch(flaw);
  });
});
