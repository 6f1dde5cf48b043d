// Parquet objects of one cut at a real S3 server: partitions that share a path have names of their own, and a cut that was
// begun under the names of an earlier version is finished under them.

import { beforeAll, describe, expect, test } from 'vitest';
import { s3Sink } from '../../../connectors/sinks/s3.ts';
import type { Event } from '../../../src/contracts/event.ts';
import type { Json } from '../../../src/contracts/json.ts';
import { readParquet } from '../../../src/parquet/read.ts';
import { objectBytes } from '../../parquet/object-bytes.ts';
import { startHttpReceiver } from '../../support/http-receiver.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { askedOf } from '../../support/s3-front.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { openSink, someEvents } from '../../support/sink-opening.ts';
import { uids } from './file-engine.ts';

const never = new AbortController().signal;
const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

/** Events one after the other, each of the next of these companies; null: of no company. */
function eventsOf(companies: readonly (string | null)[], count: number): readonly Event[] {
  return someEvents(count).map((event, at) => {
    const { company: _, ...context } = event.context;
    const company = companies[at % companies.length] ?? null;
    return { ...event, context: company === null ? context : { ...context, company } };
  });
}

async function uidsIn(bucket: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [object, { body }] of await server.objects(bucket)) {
    if (!object.endsWith('.parquet')) continue;
    for (const { metadata } of await readParquet(objectBytes(body))) found.push(metadata.uid);
  }
  return found.toSorted();
}

const lake = { layout: 'security_lake', account_id: '123456789012' };
const epochs = [{ id: 7, until: null }];
const stem = '0000000000007-0000000000000000';

describe(`s3 sink at ${name}`, () => {
  test.each([
    ['two companies', lake, ['c-1', 'c-2']],
    ['one company and audit events of the same class', lake, ['c-1', null]],
    ['a company that is called none, in the plain layout', {}, ['none', null]],
  ])('Parquet with %s: each event is in one object', async (_, settings, companies) => {
    const bucket = await server.bucket();
    const { sink, batch } = await openSink(
      s3Sink,
      { ...server.settings, bucket, ...settings },
      { format: 'parquet', epochs },
    );

    const answer = sink.send(batch(eventsOf(companies, 20)), never);
    sink.flush?.();

    expect(await answer).toEqual({ outcome: 'delivered' });
    expect(await uidsIn(bucket)).toEqual(uids(20).toSorted());
    const names = [...(await server.objects(bucket)).keys()];
    const objects = names.filter((object) => object.endsWith('.parquet'));
    expect(objects.map((object) => object.split('/').at(-1)).toSorted()).toEqual([
      `${stem}-2.parquet`,
      `${stem}.parquet`,
    ]);
  });

  test('a cut that an earlier version could not finish is finished under its name', async () => {
    const bucket = await server.bucket();
    const front = await startHttpReceiver({ keep: false });
    let writes = 0;
    front.answer(async (request) => {
      // An earlier version stopped here: its second object had the name of the first.
      if (request.method === 'PUT' && ++writes === 2) return { answer: 'reset' };
      return await askedOf(server.endpoint, request);
    });
    let mark: Json = null;
    const events = eventsOf(['c-1', 'c-2'], 20);
    const settings = { ...server.settings, bucket, ...lake };
    const first = await openSink(
      s3Sink,
      { ...settings, endpoint: front.url },
      {
        ...{ format: 'parquet', epochs },
        remember: async (kept) => {
          mark = kept;
        },
      },
    );
    const failed = first.sink.send(first.batch(events), never);
    first.sink.flush?.();
    expect((await failed).outcome).toBe('retry');
    const begun = [...(await server.objects(bucket)).keys()];

    // More events have come meanwhile: the cut ends where it ended.
    const second = await openSink(s3Sink, settings, { format: 'parquet', epochs, mark });
    const all = [...events, ...someEvents(5, 20)];
    const answer = second.sink.send(second.batch(all), never);
    second.sink.flush?.();

    expect(await answer).toEqual({ outcome: 'delivered' });
    const path = `ext/sluice_api_activity/region=us-east-1/accountId=123456789012/eventDay=20260304`;
    expect(begun).toEqual([`${path}/${stem}.parquet`]);
    expect([...(await server.objects(bucket)).keys()]).toContain(`${path}/${stem}-2.parquet`);
    expect(await uidsIn(bucket)).toEqual(uids(25).toSorted());
  });
});
