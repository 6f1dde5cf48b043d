// The archive sink on a bucket of a real S3 server, which goes away and comes back.

import { beforeAll, describe, expect, test } from 'vitest';
import { archiveSink } from '../../../connectors/sinks/archive.ts';
import { signingKeyText } from '../../../src/archive/note.ts';
import type { Batch, Sink } from '../../../src/contracts/sink.ts';
import { openStore } from '../../../src/objects/open.ts';
import type { BucketSettings } from '../../../src/objects/s3-settings.ts';
import { readArchive } from '../../archive/a-writer.ts';
import { type S3Server, s3BuildMsMax, startS3 } from '../../support/s3.ts';
import { s3ServerName } from '../../support/s3-program.ts';
import { openSink, parseSettings, someEvents } from '../../support/sink-opening.ts';

const name = await s3ServerName();
let server: S3Server;
beforeAll(async () => {
  server = await startS3();
}, s3BuildMsMax);

/** As the engine sends a batch by itself. */
async function send(sink: Sink, batch: Batch) {
  const answer = sink.send(batch, new AbortController().signal);
  sink.flush?.();
  return await answer;
}

async function anArchive(isLocked = false) {
  const signing_key = signingKeyText('archive.test', Buffer.alloc(32, 1));
  const location = `s3://${await server.bucket(isLocked)}/some/prefix`;
  const config = { ...server.settings, location, signing_key };
  const settings = parseSettings(archiveSink, config);
  const read = async () => await readArchive(await openStore(location, settings as BucketSettings));
  return { config, read };
}

const uidsOf = (events: ReturnType<typeof someEvents>) => events.map(({ uid }) => uid);

describe(`an archive in a bucket of ${name}`, () => {
  test.each([false, true])('has all sent pages, also with Object Lock: %s', async (isLocked) => {
    const { config, read } = await anArchive(isLocked);
    const events = someEvents(300);
    const before = await openSink(archiveSink, config);
    await send(before.sink, before.batch(events.slice(0, 280)));
    await before.sink.close();
    const after = await openSink(archiveSink, config);

    const reach = await after.sink.committed?.(new AbortController().signal);
    const answer = await send(after.sink, after.batch(events.slice(280)));

    expect(reach?.position).toBe(280);
    expect(answer).toEqual({ outcome: 'delivered' });
    expect((await read()).uids).toEqual(uidsOf(events));
  });

  test('resumes after the server was away', async () => {
    const { config, read } = await anArchive();
    const { sink, batch } = await openSink(archiveSink, config);
    await send(sink, batch(someEvents(2)));
    await server.stop();

    const away = await send(sink, batch(someEvents(2, 2)));
    await server.start();
    const back = await send(sink, batch(someEvents(2, 2)));

    expect(away).toMatchObject({ outcome: 'retry', cause: { code: 'sink_unreachable' } });
    expect(back).toEqual({ outcome: 'delivered' });
    expect((await read()).uids).toEqual(uidsOf(someEvents(4)));
  });

  test('is refused with credentials that are not taken', async () => {
    const { config } = await anArchive();
    const credentials = { ...config.credentials, secret_access_key: 'another' };
    const { sink, batch } = await openSink(archiveSink, { ...config, credentials });

    const answer = await send(sink, batch(someEvents(1)));

    expect(answer).toMatchObject({ outcome: 'refused', scope: 'sink' });
  });
});
