// The datadog sink against the scripted intake, which cuts and stamps as Datadog does; and what other answers mean.

import { describe, expect, test } from 'vitest';
import { datadogSink } from '../../../connectors/sinks/datadog.ts';
import { anEvent } from '../../support/an-event.ts';
import { datadogKey, startDatadogIntake } from '../../support/datadog-intake.ts';
import { type HttpAnswer, startHttpReceiver } from '../../support/http-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;
const reply = (status: number, body: string): HttpAnswer => ({ answer: 'reply', status, body });
const now = Date.now();
const fresh = (offset: number, message = 'new') => {
  const event = anEvent({ offset, ocsf: { time: now, message } });
  return { ...event, context: { ...event.context, fetchedAt: now } };
};

async function answered(answer: HttpAnswer) {
  const { url } = await startHttpReceiver({ answer: () => answer });
  const { sink, batch } = await openSink(datadogSink, { url, api_key: datadogKey });
  return await sink.send(batch(someEvents(2)), never);
}

describe('datadog', () => {
  test('sends logs by Datadog’s names, with the event whole and its uid', async () => {
    const intake = await startDatadogIntake();
    const config = { url: intake.url, api_key: datadogKey, ddtags: 'env:test', service: 'edge' };
    const { sink, batch } = await openSink(datadogSink, config);
    const event = fresh(0);

    expect(await sink.send(batch([event]), never)).toEqual({ outcome: 'delivered' });

    expect(intake.logs).toEqual([
      {
        isCut: false,
        time: event.ocsf.time,
        attributes: {
          ddsource: 'sluice',
          service: 'edge',
          ddtags: 'stream:audit/c-1,env:test',
          timestamp: event.ocsf.time,
          status: 'info',
          uid: event.uid,
          message:
            'API Activity: policy.update by Anna Schmidt from 203.0.113.7 on Default policy, Success - new',
          sluice: {
            target_type: 'policy',
            target_uid: 'pol-9',
            target_name: 'Default policy',
            actor_kind: 'user',
          },
          ocsf: JSON.parse(JSON.stringify(event.ocsf)),
        },
      },
    ]);
    expect(sink.notice?.()).toBeNull();
  });

  test('sends a line of text as the message', async () => {
    const intake = await startDatadogIntake();
    const config = { url: intake.url, api_key: datadogKey };
    const { sink, batch, format } = await openSink(datadogSink, config, { format: 'cef' });
    const event = fresh(0);

    await sink.send(batch([event]), never);

    expect(intake.logs[0]?.attributes).toMatchObject({ message: format.encode(event) });
  });

  test('refuses events that Datadog would cut, and sends those before and after', async () => {
    const intake = await startDatadogIntake();
    const { sink, batch } = await openSink(datadogSink, { url: intake.url, api_key: datadogKey });
    const events = [fresh(0), fresh(1, 'x'.repeat(600_000)), fresh(2)];
    await sink.send(batch([fresh(9)]), never);

    const answer = await sink.send(batch(events), never);

    const uid = events[1]?.uid;
    const reason = expect.stringContaining('Datadog keeps 1000000');
    expect(answer).toEqual({
      outcome: 'partly',
      refused: [{ uid, reason, by: 'sink' }],
      again: [],
    });
    expect(intake.logs.map(({ isCut }) => isCut)).toEqual([false, false, false]);
  });

  test('keeps to the limit of a request without a probe', async () => {
    const intake = await startDatadogIntake();
    const { sink, batch } = await openSink(datadogSink, { url: intake.url, api_key: datadogKey });
    const events = Array.from({ length: 16 }, (_, i) => fresh(i, 'x'.repeat(400_000)));

    expect(await sink.send(batch(events), never)).toEqual({ outcome: 'delivered' });
    expect(intake.logs).toHaveLength(16);
    expect(intake.requests.every(({ body }) => body.length <= 5_000_000)).toBe(true);
  });

  test('reports events whose time Datadog replaces', async () => {
    const intake = await startDatadogIntake();
    const opened = await openSink(datadogSink, { url: intake.url, api_key: datadogKey });
    const { sink, batch, tools } = opened;

    await sink.send(batch(someEvents(3)), never);
    await sink.send(batch(someEvents(3, 3)), never);

    expect(intake.logs[0]?.time).toBeNull();
    expect(sink.notice?.()?.what).toContain('18 hours');
    expect(tools.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
    await sink.send(batch([fresh(9)]), never);
    expect(sink.notice?.()).toBeNull();
  });

  test.each<[string, HttpAnswer, object]>([
    ['200 for none', reply(200, '{}'), { scope: 'sink' }],
    ['202 with HTML for none', reply(202, '<html></html>'), { scope: 'sink' }],
    ['202 with half of its JSON for none', reply(202, '{"a'), { scope: 'sink' }],
    ['400 of a proxy for the sink', reply(400, 'Bad Request'), { scope: 'sink' }],
    ['400 for the events', reply(400, '{"errors":[]}'), { scope: 'batch' }],
    ['401 for the sink', reply(401, '{"errors":[]}'), { scope: 'sink' }],
    ['403 for the sink', reply(403, '{"errors":[]}'), { scope: 'sink' }],
    ['408 for later', reply(408, '{}'), { outcome: 'retry' }],
    ['429 for later', reply(429, '{}'), { outcome: 'retry', cause: { code: 'sink_throttled' } }],
    ['503 for later', reply(503, ''), { outcome: 'retry' }],
    ['half of one for later', { answer: 'cut' }, { outcome: 'retry' }],
  ])('takes %s', async (_what, answer, meaning) => {
    expect(await answered(answer)).toMatchObject(meaning);
  });

  test('is tried out without a log', async () => {
    const intake = await startDatadogIntake();
    const probe = (api_key: string, url = intake.url) =>
      datadogSink.probe(parseSettings(datadogSink, { url, api_key }), testTools(), never);
    const page = await startHttpReceiver({ answer: () => reply(200, '<html></html>') });

    await probe(datadogKey);
    await expect(probe('another-key')).rejects.toMatchObject({ code: 'sink_refused' });
    await expect(probe(datadogKey, page.url)).rejects.toMatchObject({ code: 'sink_refused' });
    expect(intake.logs).toEqual([]);
  });
});
