// A real S3 server as the receiver of the s3 sink, behind a front that loses requests and answers where the mood says so.

import { gunzipSync } from 'node:zlib';
import { readParquet } from '../../../src/parquet/read.ts';
import { objectBytes } from '../../parquet/object-bytes.ts';
import { type HttpAnswer, startHttpReceiver } from '../../support/http-receiver.ts';
import { sharedS3 } from '../../support/s3.ts';
import { askedOf } from '../../support/s3-front.ts';
import { type Receiver, type ReceiverKind, uidsIn } from './receiver.ts';

const refusesNothing = 'it refuses no record';

const failures: readonly HttpAnswer[] = [
  { answer: 'reply', status: 503, body: '<Error><Code>SlowDown</Code></Error>' },
  { answer: 'reply', status: 500, body: '<Error><Code>InternalError</Code></Error>' },
  { answer: 'reply', status: 409, body: '<Error><Code>ConditionalRequestConflict</Code></Error>' },
  { answer: 'reset' },
];

/** The receiver of the s3 sink, with objects of lines or of Parquet. */
export const s3Kind = (format: 'json' | 'parquet'): ReceiverKind => ({
  type: 's3',
  name: `s3 ${format}`,
  unable: { picky: refusesNothing, mixed: refusesNothing },
  async start(mood, random): Promise<Receiver> {
    const server = await sharedS3();
    const bucket = await server.bucket();
    let failed = 0;
    const front = await startHttpReceiver({
      answer: async (received) => {
        if (mood === 'mute') return { answer: 'hang' };
        const breaks = mood === 'shaky' && random() < 0.5;
        if (breaks) failed += 1;
        const arrives = !breaks || random() < 0.5;
        const answer = arrives ? await askedOf(server.endpoint, received) : null;
        if (answer !== null && !breaks) return answer;
        return failures[Math.floor(random() * failures.length)] ?? { answer: 'reset' };
      },
    });
    if (mood === 'away') await front.close();
    return {
      config: {
        ...server.settings,
        endpoint: front.url,
        bucket,
        prefix: 'some/where',
        rotate: { bytes: '1B' }, // an object for each batch
        timeout: mood === 'mute' ? '300ms' : '60s',
      },
      wishes: { format },
      failures: () => failed,
      async arrived() {
        const objects = await server.objects(bucket, 'some/where/');
        const inOrder = [...objects].toSorted(([a], [b]) => (a < b ? -1 : 1));
        if (format === 'json') {
          return inOrder.flatMap(([, { body }]) => uidsIn(gunzipSync(body).toString()));
        }
        const tables = inOrder.filter(([name]) => name.endsWith('.parquet'));
        const rows = await Promise.all(
          tables.map(([, { body }]) => readParquet(objectBytes(body))),
        );
        return rows.flat().map(({ metadata }) => metadata.uid);
      },
    };
  },
});
