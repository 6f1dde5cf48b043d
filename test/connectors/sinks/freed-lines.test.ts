// Sinks that copy, compress or write a batch's lines let the engine free their memory at once; without that, a garbage
// collection of the whole heap frees it. Sinks that post are in posted-memory.test.ts.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fileSink } from '../../../connectors/sinks/file.ts';
import { kafkaSink } from '../../../connectors/sinks/kafka.ts';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { openSink } from '../../support/sink-opening.ts';
import { tempDir } from '../../support/temp.ts';

const kafka = { brokers: ['127.0.0.1:1'], topic: 'events' };

test.each([
  ['a file', fileSink, () => ({ path: join(tempDir(), 'events.ndjson') })],
  ['RELP', syslogSink, () => ({ address: 'relp://127.0.0.1:1' })],
  ['Kafka', kafkaSink, () => ({ ...kafka, exactly_once: false })],
  ['Kafka, each event once', kafkaSink, () => ({ ...kafka, exactly_once: true })],
  [
    'Kafka, a topic for each company',
    kafkaSink,
    () => ({ ...kafka, topic: '{company}', exactly_once: false }),
  ],
] as const)('%s: lines are freed once they are delivered', async (_, definition, settings) => {
  const { sink } = await openSink(definition, settings());

  expect(sink.isDoneOnceDelivered).toBe(true);
  await sink.close();
});
