// Metrics pushed over OTLP to a real HTTP server, and compared with what OpenTelemetry's own serialiser makes of the numbers
// that /metrics shows.

import { randomUUID } from 'node:crypto';
import { JsonMetricsSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { expect, test } from 'vitest';
import { Secret } from '../../src/contracts/secret.ts';
import type { Log } from '../../src/contracts/tools.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { type HttpReceiver, inTurn, startHttpReceiver } from '../support/http-receiver.ts';
import { manualClock } from '../support/manual-clock.ts';
import { noLog } from '../support/plain-upstream.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { aMoment, aServer, ask } from './a-moment.ts';

const everyMs = 60_000;

/** A server that pushes to the receiver, and what it logs. */
async function aPusher(
  receiver: HttpReceiver,
  authorization = new Secret(() => 'Bearer a-secret'),
) {
  const clock = manualClock();
  const http = openHttpClient();
  afterThisTest(() => http.close());
  const logged: string[] = [];
  const note = (event: string) => logged.push(event);
  const log: Log = { ...noLog, info: note, warn: note };
  const headers = { authorization };
  const url = `${receiver.url}/v1/metrics`;
  const telemetry = { url, headers, everyMs, http, instance: randomUUID() };
  const server = await aServer(() => aMoment(), { clock, log, telemetry });
  return { clock, server, logged };
}

/** The numbers of Prometheus' text as OpenTelemetry's serialiser writes them. */
function asOpenTelemetry(text: string, times: { start: number; end: number }, instance: string) {
  type ResourceMetrics = Parameters<typeof JsonMetricsSerializer.serializeRequest>[0];
  const time = (ms: number): [number, number] => [Math.floor(ms / 1_000), (ms % 1_000) * 1e6];
  const families = text.split('# HELP ').slice(1);
  const metrics = families.flatMap((family) => {
    const [head = '', type = '', ...lines] = family.trimEnd().split('\n');
    const [, name = '', description = ''] = /^(\S+) (.*)$/.exec(head) ?? [];
    const isCounter = type.endsWith(' counter');
    const dataPoints = lines.map((line) => {
      const labels = [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]);
      const value = Number(line.slice(line.lastIndexOf(' ')));
      const [startTime, endTime] = [time(times.start), time(times.end)];
      return { startTime, endTime, attributes: Object.fromEntries(labels), value };
    });
    const descriptor = { name, description, unit: '', valueType: 1, type: 'GAUGE' };
    // Gauges are 2 and sums 3 in the SDK; 1 is its cumulative temporality.
    const kind = { dataPointType: isCounter ? 3 : 2, isMonotonic: true, aggregationTemporality: 1 };
    return dataPoints.length === 0 ? [] : [{ descriptor, dataPoints, ...kind }];
  });
  const attributes = { 'service.name': 'sluice', 'service.instance.id': instance };
  // The SDK's enums are numbers, which is all that the serialiser looks at.
  const all = {
    resource: resourceFromAttributes(attributes),
    scopeMetrics: [{ scope: { name: 'sluice' }, metrics }],
  } as unknown as ResourceMetrics;
  const written = Buffer.from(JsonMetricsSerializer.serializeRequest(all) ?? []).toString();
  return JSON.parse(written);
}

test('a push equals the request of OpenTelemetry’s own exporter', async () => {
  const receiver = await startHttpReceiver();
  const { clock, server } = await aPusher(receiver);
  const start = clock.now();
  await clock.advance(everyMs);
  const [request] = await receiver.waitFor(1);
  const text = (await ask(`${server.url}/metrics`)).body;

  const sent = JSON.parse(String(request?.body));
  const [{ resource }] = sent.resourceMetrics;
  const instance = resource.attributes[1].value.stringValue;
  const expected = asOpenTelemetry(text, { start, end: start + everyMs }, instance);
  // Optional in OTLP, and 0 where left out.
  delete expected.resourceMetrics[0].resource.droppedAttributesCount;
  // What the process itself needs changes between the push and the scrape.
  const steady = (metrics: { name: string }[]) =>
    metrics.filter(({ name }) => !name.startsWith('sluice_process'));
  const metricsOf = (whole: typeof sent) => whole.resourceMetrics[0].scopeMetrics[0].metrics;

  expect(request).toMatchObject({ method: 'POST', path: '/v1/metrics' });
  expect(request?.headers).toMatchObject({
    ...{ authorization: 'Bearer a-secret', 'content-type': 'application/json' },
  });
  expect(instance).toMatch(/^[0-9a-f-]{36}$/);
  expect(steady(metricsOf(sent))).toEqual(steady(metricsOf(expected)));
  expect(metricsOf(sent).length).toBeGreaterThan(20);
  expect(sent.resourceMetrics[0].resource).toEqual(expected.resourceMetrics[0].resource);
});

test('a collector that rejects is tried again each time, and reported once', async () => {
  const refusal = { answer: 'reply', status: 503 } as const;
  const well = { answer: 'reply', status: 200 } as const;
  const receiver = await startHttpReceiver({ answer: inTurn(refusal, refusal, well) });
  const { clock, logged } = await aPusher(receiver);

  for (let count = 1; count <= 3; count += 1) {
    // The next push is due only after the last one is answered.
    await waitUntil(() => (clock.sleepers >= 2 ? true : null), { what: 'a pusher asleep' });
    await clock.advance(everyMs);
    await receiver.waitFor(count);
  }
  await waitUntil(() => logged.includes('metrics_push_recovered'), { what: 'the good news' });

  expect(logged.filter((line) => line.includes('metrics'))).toEqual([
    'metrics_push_failed',
    'metrics_push_recovered',
  ]);
});

test('after a refusal, the command of a header runs again', async () => {
  const refusal = { answer: 'reply', status: 401 } as const;
  const well = { answer: 'reply', status: 200 } as const;
  const receiver = await startHttpReceiver({ answer: inTurn(refusal, well) });
  let value = 'Bearer old';
  const authorization = new Secret(() => value);
  authorization.bind(
    () => value,
    null,
    async () => {
      value = 'Bearer new';
    },
  );
  const { clock, logged } = await aPusher(receiver, authorization);

  for (let count = 1; count <= 2; count += 1) {
    await waitUntil(() => (clock.sleepers >= 2 ? true : null), { what: 'a pusher asleep' });
    await clock.advance(everyMs);
    await receiver.waitFor(count);
  }
  await waitUntil(() => logged.includes('metrics_push_recovered'), { what: 'the good news' });

  expect(receiver.requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer old',
    'Bearer new',
  ]);
});

// Sooner than the request's own bound of ten seconds.
test('a collector that says nothing does not keep the server from closing', {
  timeout: 8_000,
}, async () => {
  const receiver = await startHttpReceiver({ answer: () => ({ answer: 'hang' }) });
  const { clock, server, logged } = await aPusher(receiver);
  await clock.advance(everyMs);
  await receiver.waitFor(1);

  await server.close();

  expect(logged).toEqual(['status_page_listening']);
});
