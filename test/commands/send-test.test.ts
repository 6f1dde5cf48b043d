// `check --send-test`: what arrives is one event that says it is a test, and nothing of a run has moved.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { columns } from '../../connectors/sinks/sentinel/rows.ts';
import { sentinelConfig } from '../contracts/receivers/sentinel.ts';
import { type AzureOptions, startAzureMonitor } from '../support/azure-monitor.ts';
import { runHere, runOnceHere, startSluice } from '../support/cli.ts';
import { type HttpAnswer, inTurn, startHttpReceiver } from '../support/http-receiver.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';
import { waitUntil } from '../support/temp.ts';
import { aSetup } from './a-setup.ts';

async function sendTest(config: string, sink: string, env: Record<string, string> = {}) {
  const words = ['check', '-c', config, '--send-test', '--sink', sink];
  const { stdout, exitCode } = await runHere(words, env);
  const lines = stdout
    .split('\n')
    .filter((line) => line.includes(`sink ${sink}: `) && !line.startsWith(' '));
  return { exitCode, lines };
}

const accepted: HttpAnswer = { answer: 'reply', status: 200 };
const post = (url: string) => [
  `  post: { type: http, url: ${url}, format: json, retry: { min: 50ms, max: 100ms } }`,
];

test('sends one marked event, and reports the receiver’s acknowledgement', async () => {
  const receiver = await startHttpReceiver();
  const { config, stateDir } = await aSetup({ sinks: post(receiver.url) });

  const { exitCode, lines } = await sendTest(config, 'post');

  const bodies = receiver.requests.filter(
    ({ method, body }) => method === 'POST' && body.length > 0,
  );
  const events = bodies
    .flatMap(({ body }) => body.toString().trim().split('\n'))
    .map((line) => JSON.parse(line));
  expect([exitCode, events.length]).toEqual([0, 1]);
  expect(events[0]).toMatchObject({
    class_uid: 6002,
    message: 'sluice test event for post: it reports no real action',
    metadata: { event_code: 'sink.test', log_name: 'sluice' },
  });
  expect(lines).toEqual([
    'ok    sink post: connection',
    `ok    sink post: test event with uid ${events[0].metadata.uid}: the receiver says that it has it`,
  ]);
  expect(() => readdirSync(stateDir)).toThrow('ENOENT');
});

test('sends it again if the receiver requests that, and under the same uid', async () => {
  const busy: HttpAnswer = { answer: 'reply', status: 503 };
  const receiver = await startHttpReceiver({ answer: inTurn(accepted, busy, accepted) });
  const { config } = await aSetup({ sinks: post(receiver.url) });

  const { exitCode } = await sendTest(config, 'post');

  const sent = receiver.requests.filter(({ body }) => body.includes('sink.test'));
  expect([exitCode, sent.length, new Set(sent.map(({ body }) => body.toString())).size]).toEqual([
    0, 2, 1,
  ]);
});

test('fails where the receiver refuses it, and says why', async () => {
  const refused: HttpAnswer = { answer: 'reply', status: 400, body: 'no such index' };
  const receiver = await startHttpReceiver({
    answer: ({ body }) => (body.length > 0 ? refused : accepted),
  });
  const { config } = await aSetup({ sinks: post(receiver.url) });

  const { exitCode, lines } = await sendTest(config, 'post');

  expect(exitCode).toBe(3);
  expect(lines.at(-1)).toMatch(
    /^FAIL {2}sink post: test event with uid [0-9a-f]{64}: .*no such index/,
  );
});

test('says of syslog that it answers nothing, and where to look', async () => {
  const receiver = await startTcpReceiver();
  const { config } = await aSetup({
    sinks: [
      `  siem: { type: syslog, address: "tcp://127.0.0.1:${receiver.port}", resend_window: 100ms }`,
    ],
  });

  const { exitCode, lines } = await sendTest(config, 'siem');

  expect(exitCode).toBe(0);
  expect(lines.at(-1)).toContain('this receiver answers nothing, so look for it there');
  await waitUntil(() => receiver.frames.some(({ text }) => text.includes('sluice test event')), {
    what: 'the event',
  });
});

test('does not touch a run’s resume point, also while it runs', async () => {
  const receiver = await startHttpReceiver();
  const { config, dir, delivered } = await aSetup({
    sinks: [
      ...post(receiver.url),
      '  disk: { type: file, path: "${env:DIR}/events.ndjson", format: json }',
    ],
  });
  const sluice = startSluice(['run', '-c', config], { env: { DIR: dir } });
  await waitUntil(() => delivered().length === 250, { what: 'all events' });
  const before = readFileSync(join(dir, 'events.ndjson'), 'utf8');

  const toFile = await sendTest(config, 'disk', { DIR: dir });
  const toPost = await sendTest(config, 'post', { DIR: dir });
  await sluice.kill();
  const after = await runOnceHere(config, { DIR: dir });

  expect(toFile).toEqual({
    exitCode: 0,
    lines: [
      'ok    sink disk: connection',
      'ok    sink disk: no test event: a run resumes from the events that are there',
    ],
  });
  expect(toPost.exitCode).toBe(0);
  expect(readFileSync(join(dir, 'events.ndjson'), 'utf8')).toBe(before);
  expect(after.stdout).toContain('post: 0 delivered, 0 held, 0 dead letters');
});

test('sends nothing where no route leads', async () => {
  const receiver = await startHttpReceiver();
  const { config } = await aSetup({
    sinks: [...post(receiver.url), '  disk: { type: file, path: events.ndjson, format: json }'],
    more: ['routes:', '  - { from: [audit], to: [disk] }'],
  });

  const { lines } = await sendTest(config, 'post');

  expect(lines.at(-1)).toBe('ok    sink post: no test event: no route leads there');
  expect(receiver.requests.some(({ body }) => body.includes('sink.test'))).toBe(false);
});

test.each<[string, AzureOptions, RegExp, number]>([
  ['ok', { isReader: true, columns }, /^ok {4}sink siem: dcr-\w+ declares all 18 columns/, 0],
  [
    'a failure',
    { isReader: true, columns: {} },
    /^FAIL {2}sink siem: its stored data: .* drops fields that/,
    3,
  ],
  ['a note', {}, /^note {2}sink siem: whether dcr-\w+ declares every column .* not be seen/, 0],
])(
  'the columns of Azure’s rule are %s, before the test event',
  async (_what, options, reported, exit) => {
    const azure = await startAzureMonitor(options);
    const settings = {
      type: 'sentinel',
      ...sentinelConfig(azure.url),
      resource_manager: azure.url,
    };
    const { config } = await aSetup({ sinks: [`  siem: ${JSON.stringify(settings)}`] });

    const { exitCode, lines } = await sendTest(config, 'siem');

    expect(exitCode).toBe(exit);
    expect(lines[0]).toBe('ok    sink siem: connection');
    expect(lines[1]).toMatch(reported);
    expect(azure.rows).toHaveLength(1);
  },
);
