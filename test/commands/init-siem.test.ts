// `init --siem`: the config leads there, what is to be set up there stands beside it, and a test event shows that it works.

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { siems } from '../../src/commands/shared/siems.ts';
import { readConfig } from '../../src/config/config.ts';
import { configEnv } from '../config/config-text.ts';
import { runHere } from '../support/cli.ts';
import { datadogKey, startDatadogIntake } from '../support/datadog-intake.ts';
import { startHttpReceiver } from '../support/http-receiver.ts';
import { sharedOpenSearch } from '../support/opensearch.ts';
import { startOtlpGrpcReceiver } from '../support/otlp-grpc-receiver.ts';
import { splunkTokens, startSplunk } from '../support/splunk-hec.ts';
import { startTcpReceiver } from '../support/tcp-receiver.ts';
import { tempDir } from '../support/temp.ts';

const edge = { EDGE_CLIENT_ID: 'an-id', EDGE_CLIENT_SECRET: 'a-secret' };
const unified = ['--unified', 'https://api.example.com/v1'];

async function initSiem(siem: string, to: string | null, env: Record<string, string> = {}) {
  const dir = tempDir();
  const config = join(dir, 'sluice.yaml');
  const words = [
    'init',
    '-c',
    config,
    ...unified,
    '--siem',
    siem,
    ...(to === null ? [] : ['--to', to]),
  ];
  return { ...(await runHere(words, env)), config, dir };
}

/** The answer for `--to` if it is no web address; nothing listens there. */
const nowhere: Readonly<Record<string, string>> = {
  arcsight: 'tcp://127.0.0.1:1',
  qradar: 'tcp://127.0.0.1:1',
  secops: '00000000-0000-0000-0000-000000000000',
};
const checkout = join(import.meta.dirname, '..', '..');
const secopsKey = '/run/secrets/secops.json';

test.each(siems)(
  '$name: the written config passes check, with nothing noted',
  async ({ name, receiver }) => {
    const { config, dir } = await initSiem(name, nowhere[name] ?? 'http://127.0.0.1:1/');

    const text = readFileSync(config, 'utf8');
    const names = [...text.matchAll(/\$\{env:(\w+)\}/g)].map(([, named = '']) => [named, 'x']);
    const env = { ...Object.fromEntries(names), ...edge };
    const read = readConfig(config, configEnv(env, { [config]: text, [secopsKey]: '{}' }));
    expect(Object.keys(read.sinks)).toEqual([name]);
    expect(readFileSync(join(dir, receiver.file), 'utf8')).toMatch(/\S\n$/);
  },
);

test.each(siems)(
  '$name: prints the path of its content, and of the page that leads to the first alert',
  async ({ name, content: { folder, page } }) => {
    const { stdout } = await initSiem(name, nowhere[name] ?? 'http://127.0.0.1:1/');

    expect(stdout).toContain(
      `rules for it, in a checkout of sluice: ${folder}; from here to the first alert: ${page}\n`,
    );
    expect(readdirSync(join(checkout, folder)).length).toBeGreaterThan(0);
    const text = readFileSync(join(checkout, page), 'utf8');
    expect(text).toMatch(/alert/);
    expect(text).toContain(`init --siem ${name} `);
    expect(text).toMatch(/sandbox --attacks|first-alert\.ts/);
    expect(text).toContain('\n## Tests\n');
  },
);

test('the content is no part of a plain install', () => {
  const { files } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  for (const { content } of siems)
    for (const file of files) {
      expect(content.folder).not.toMatch(new RegExp(`^${file}(/|$)`));
      expect(content.page).not.toMatch(new RegExp(`^${file}(/|$)`));
    }
});

test('splunk: the event is written when the indexer says so', async () => {
  const splunk = await startSplunk({
    tokens: [{ ...splunkTokens.acked, indexes: ['security', 'main'] }],
    pollsInVain: 1,
  });

  const { stdout, exitCode } = await initSiem(
    'splunk',
    splunk.url,
    tokenFor(splunkTokens.acked.token),
  );

  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringContaining('the receiver says that it has it'),
  ]);
  expect(splunk.indexed.map(({ raw }) => JSON.parse(raw).metadata.event_code)).toEqual([
    'sink.test',
  ]);
  expect(splunk.indexed.map(({ sourcetype }) => sourcetype)).toEqual(['ocsf:sluice']);
});

test('opensearch: the template is there before the event', async () => {
  const cluster = await sharedOpenSearch();

  const { stdout, exitCode } = await initSiem('opensearch', cluster.url, {
    OPENSEARCH_PASSWORD: 'x',
  });

  const uid = /uid ([0-9a-f]{64})/.exec(stdout)?.[1] ?? '';
  await cluster.ask('POST', '/sluice-*/_refresh');
  const found = await cluster.ask('POST', '/sluice-*/_search', {
    query: { ids: { values: [uid] } },
  });
  expect([exitCode, found.hits.total.value]).toEqual([0, 1]);
  expect(found.hits.hits[0]._source.event.action).toBe('sink.test');
});

test('datadog: the intake has the event, by its site or by an explicit address', async () => {
  const intake = await startDatadogIntake();

  const { stdout, exitCode } = await initSiem('datadog', intake.url, { DD_API_KEY: datadogKey });
  const { config } = await initSiem('datadog', 'datadoghq.eu');

  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringContaining('the receiver says that it has it'),
  ]);
  expect(intake.logs.map(({ attributes }) => attributes.message)).toEqual([
    expect.stringContaining('sluice test event'),
  ]);
  expect(readFileSync(config, 'utf8')).toContain('site: "datadoghq.eu"');
});

test('otel: the receiver has the event, and the collector’s config listens at its port', async () => {
  const receiver = await startOtlpGrpcReceiver();

  const { stdout, exitCode, dir } = await initSiem('otel', receiver.url);

  expect([exitCode, stdout]).toEqual([
    0,
    expect.stringContaining('the receiver says that it has it'),
  ]);
  expect(receiver.records).toHaveLength(1);
  const { receivers, service } = parse(readFileSync(join(dir, 'otel-receiver.yaml'), 'utf8'));
  expect(receivers.otlp.protocols.grpc.endpoint).toBe(`0.0.0.0:${new URL(receiver.url).port}`);
  expect(service.pipelines.logs.receivers).toEqual(['otlp']);
});

test('graylog: one message a request', async () => {
  const receiver = await startHttpReceiver();
  receiver.answer({ answer: 'reply', status: 202 });

  const { exitCode } = await initSiem('graylog', `${receiver.url}/gelf`);

  const sent = receiver.requests.filter(({ body }) => body.includes('sluice test event'));
  expect([exitCode, sent.length]).toEqual([0, 1]);
});

test.each([
  ['qradar', /LEEF:2\.0\|Acme\|Edge\|/],
  ['arcsight', /CEF:0\|Acme\|Edge\|/],
])('%s: the event is written to it, and it answers nothing', async (siem, form) => {
  const receiver = await startTcpReceiver();

  const { stdout, exitCode } = await initSiem(siem, `tcp://127.0.0.1:${receiver.port}`);

  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('so look for it there')]);
  expect(receiver.frames.map(({ framing, text }) => [framing, form.test(text)])).toEqual([
    ['lf', true],
  ]);
});

test('names every variable of the config, also where one line has several', async () => {
  const { stdout, config } = await initSiem(
    'sentinel',
    'https://sluice-abcd.westeurope-1.ingest.monitor.azure.com',
  );

  const named = [...stdout.matchAll(/^ {2}export (\w+)=/gm)].map(([, name]) => name);
  expect(named).toEqual([
    'EDGE_CLIENT_ID',
    'EDGE_CLIENT_SECRET',
    'AZURE_TENANT_ID',
    'AZURE_CLIENT_ID',
    'AZURE_CLIENT_SECRET',
  ]);
  expect(readFileSync(config, 'utf8')).toMatch(/^ +# .*\$\{env:EDGE_API_KEY\}/m);
  expect(stdout).toContain('Missing: AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET.');
});

test('sends nothing while a secret of the sink is missing, and names the next step', async () => {
  const splunk = await startSplunk();

  const { stdout, exitCode, config } = await initSiem('splunk', splunk.url);

  expect(exitCode).toBe(3);
  expect(stdout).toMatch(
    /no test event was sent\. Missing: \w+\. Set it, then run:\n {2}npx sluice check -c .* --send-test --sink splunk\n/,
  );
  expect([existsSync(config), splunk.requests]).toEqual([true, []]);
});

test('repeats the receiver’s message if the receiver rejects the event', async () => {
  const splunk = await startSplunk();

  const { stdout, exitCode } = await initSiem('splunk', splunk.url, tokenFor('another'));

  expect(exitCode).toBe(3);
  expect(stdout).toMatch(/^FAIL {2}sink splunk: .*Invalid token/m);
});

test('overwrites nothing', async () => {
  const dir = tempDir();
  const [config, receiver] = [join(dir, 'sluice.yaml'), join(dir, 'qradar-receiver.txt')];
  writeFileSync(receiver, 'mine');

  const { exitCode, stderr } = await runHere([
    'init',
    '-c',
    config,
    ...unified,
    '--siem',
    'qradar',
  ]);

  expect([exitCode, existsSync(config), readFileSync(receiver, 'utf8')]).toEqual([
    64,
    false,
    'mine',
  ]);
  expect(stderr).toContain('qradar-receiver.txt exists');
});

/** Whatever name the config has for it. */
function tokenFor(token: string): Record<string, string> {
  const lines =
    siems.find(({ name }) => name === 'splunk')?.sink.sample.lines('https://splunk.example') ?? [];
  const named = /\$\{env:(\w+)\}/.exec(lines.join('\n'))?.[1] ?? '';
  return { [named]: token };
}
