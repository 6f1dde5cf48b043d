// The otlp sink at the OpenTelemetry Collector's own receiver, over each of its protocols.

import { expect, test } from 'vitest';
import { otlpSink } from '../../../connectors/sinks/otlp.ts';
import { deliver } from '../../contracts/deliver.ts';
import { anEvent } from '../../support/an-event.ts';
import { startOtlpCollector } from '../../support/otlp-collector.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const saying = (message: string, offset: number) => anEvent({ offset, ocsf: { message } });

test('over gRPC and HTTP it accepts every event once, and rejected ones are reported', async (context) => {
  const collector = await startOtlpCollector(context);
  const ways = [
    { protocol: 'grpc', url: collector.grpc },
    { protocol: 'http/protobuf', url: collector.http },
    { protocol: 'http/json', url: collector.http },
  ];

  for (const settings of ways) {
    const before = collector.uids.length;
    const opened = await openSink(otlpSink, settings);
    await otlpSink.probe(parseSettings(otlpSink, settings), testTools(), never);
    const send = (message: string) => opened.sink.send(opened.batch([saying(message, 1)]), never);
    const events = someEvents(1000);

    const { attempts, refused } = await deliver(opened, events, 250);

    expect([attempts, refused]).toEqual([4, []]);
    await expect.poll(() => collector.uids.slice(before)).toEqual(events.map(({ uid }) => uid));
    // Reported as the collector's own failure, so the cause may be the event or the pipeline.
    expect(await send('answer: permanent')).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('Permanent error: not this one') },
    });
    expect(await send(`answer: busy ${settings.protocol}`)).toMatchObject({
      outcome: 'retry',
      cause: { message: expect.stringContaining('the queue is full') },
    });
    expect(await send(`answer: busy ${settings.protocol}`)).toEqual({ outcome: 'delivered' });
  }
});

test('over gRPC a message that is larger than it takes is halved, packed or not', async (context) => {
  for (const compression of ['gzip', 'none']) {
    const collector = await startOtlpCollector(context);
    const opened = await openSink(otlpSink, { protocol: 'grpc', url: collector.grpc, compression });
    const events = Array.from({ length: 40 }, (_, offset) =>
      saying('m'.repeat(offset === 7 ? 5_000_000 : 200_000), offset),
    );

    const { refused } = await deliver(opened, events, 40);

    const reason = expect.stringMatching(/RESOURCE_EXHAUSTED: .*larger than max/);
    expect(refused).toEqual([{ uid: events[7]?.uid, reason }]);
    const others = events.flatMap(({ uid, offset }) => (offset === 7 ? [] : uid));
    await expect.poll(() => collector.uids.toSorted()).toEqual(others.toSorted());
  }
});
