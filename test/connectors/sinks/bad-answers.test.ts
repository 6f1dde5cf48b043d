// Every sink that posts, with every wrong server at its receiver's address: no response counts as an acknowledgement,
// no event becomes a dead letter, and the operator gets the next step. Rejections by real receivers are in each sink's
// own tests, as are responses about other items than were sent.

import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sinks } from '../../../connectors/index.ts';
import { sentinelConfig } from '../../contracts/receivers/sentinel.ts';
import { startAzureMonitor } from '../../support/azure-monitor.ts';
import { startSecOps } from '../../support/google-secops.ts';
import { type HttpAnswer, startHttpReceiver } from '../../support/http-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';
import { freePort } from '../../support/temp.ts';

const sinksDir = join(import.meta.dirname, '../../../connectors/sinks');
const never = new AbortController().signal;
const secret = 's3cr3t-of-the-sink';

interface Stand {
  readonly name: string;
  readonly type: string;
  /** Settings that lead to one who answers so to all but questions for a token. */
  config(answer: HttpAnswer): Promise<object>;
  /** Answers that mean something else to it, and why. */
  readonly but?: { readonly [answer: string]: string };
  /** Answers that its probe passes. */
  readonly probePasses?: readonly string[];
}

const at = (more: (url: string) => object) => async (answer: HttpAnswer) =>
  more((await startHttpReceiver({ answer: () => answer })).url);
const headers = { authorization: `Bearer ${secret}` };
const anyWord = 'whatever succeeds by its status is its word';
const ofBatch = 'it may be about an event, which halves find';
const ofOtlp = {
  'JSON of another': 'OTLP has a client leave out what it does not know',
  nothing: 'an empty message is a whole success in protobuf',
};

const stands: readonly Stand[] = [
  {
    ...{ name: 'http', type: 'http', config: at((url) => ({ url, headers })) },
    but: {
      'half of JSON': anyWord,
      'JSON of another': anyWord,
      nothing: anyWord,
      '400 in HTML': ofBatch,
    },
    // Its receiver need not know GET; only its access check can be probed.
    probePasses: ['a login page', 'a redirect', 'no such path'],
  },
  {
    ...{ name: 'otlp (http/protobuf)', type: 'otlp' },
    config: at((url) => ({ url: `${url}/v1/logs`, headers })),
    but: ofOtlp,
  },
  {
    ...{ name: 'otlp (http/json)', type: 'otlp' },
    config: at((url) => ({ url: `${url}/v1/logs`, headers, protocol: 'http/json' })),
    but: ofOtlp,
  },
  {
    ...{ name: 'elasticsearch', type: 'elasticsearch' },
    config: at((url) => ({ url, auth: { api_key: secret } })),
  },
  ...(['required', 'off'] as const).map((ack) => ({
    ...{ name: `splunk_hec (ack: ${ack})`, type: 'splunk_hec' },
    config: at((url) => ({ url, token: secret, ack })),
  })),
  {
    ...{ name: 'datadog', type: 'datadog' },
    config: at((url) => ({ url, api_key: secret })),
  },
  {
    ...{ name: 'sentinel', type: 'sentinel' },
    async config(answer) {
      const service = await startAzureMonitor();
      service.interfere(({ path }, pass) => (path.endsWith('/token') ? pass() : answer));
      return sentinelConfig(service.url);
    },
  },
  {
    ...{ name: 'google_secops', type: 'google_secops' },
    async config(answer) {
      const service = await startSecOps();
      service.interfere(({ path }, pass) => (path.endsWith('/token') ? pass() : answer));
      const [, project, , location, , instance] = service.instance.split('/');
      const credentials = JSON.stringify(service.serviceAccount);
      return { url: service.url, project, location, instance, credentials };
    },
    but: { 'JSON of another': 'its success is an object of which it says nothing' },
  },
];

const html = { 'content-type': 'text/html; charset=utf-8' };
const json = { 'content-type': 'application/json' };
const page = '\n<!DOCTYPE html>\n<html><title>Sign in</title><body>Sign in</body></html>';
const reply = (status: number, headers: Record<string, string>, body = ''): HttpAnswer => ({
  ...{ answer: 'reply', status, headers, body },
});

const answers: Readonly<Record<string, HttpAnswer>> = {
  'a login page': reply(200, html, page),
  'half of JSON': reply(200, json, '{"took":3,"errors":false,"items":[{"create":{"_id":"'),
  'JSON of another': reply(200, json, '{"status":"ok"}'),
  nothing: reply(200, {}),
  'half an answer': { answer: 'cut' },
  'a reset': { answer: 'reset' },
  'a redirect': reply(302, { location: '/login' }),
  'who are you': reply(401, json, '{}'),
  'not you': reply(403, json, '{}'),
  'no such path': reply(404, html, page),
  'who are you, of a proxy': reply(407, { 'proxy-authenticate': 'Basic' }),
  'no gateway, of a proxy': reply(502, html, page),
  '400 in HTML': reply(400, html, page),
};

test('every sink that posts has a stand here', () => {
  const files = globSync('{*.ts,*/*.ts}', { cwd: sinksDir });
  const posting = files.filter((file) =>
    /\bpost(Once|WithToken)\(/.test(readFileSync(join(sinksDir, file), 'utf8')),
  );
  const types = posting.map((file) => file.split(/[/.]/)[0]?.replaceAll('-', '_'));

  expect(new Set(stands.map(({ type }) => type))).toEqual(new Set(types));
});

describe.each(stands)('$name', ({ type, config, but = {}, probePasses = [] }) => {
  const definition = sinks.find((sink) => sink.type === type);
  if (definition === undefined) throw new Error(`there is no sink ${type}`);

  test.each(Object.keys(answers).filter((name) => but[name] === undefined))(
    'takes for no answer: %s',
    async (name) => {
      const answer = answers[name] as HttpAnswer;
      const settings = { ...(await config(answer)), timeout: '60s' };
      const { sink, batch } = await openSink(definition, settings);

      const said = await sink.send(batch(someEvents(3)), never);
      const probing = definition.probe(parseSettings(definition, settings), testTools(), never);
      const probed = await probing.then(
        () => 'passes',
        () => 'fails',
      );

      expect(said.outcome).toBeOneOf(['retry', 'refused']);
      if (said.outcome !== 'retry' && said.outcome !== 'refused') return;
      if (said.outcome === 'refused') expect(said.scope).toBe('sink');
      expect(said.cause.next).toMatch(/\S/);
      expect(said.cause.message + said.cause.next).not.toContain(secret);
      expect(said.cause.message).not.toMatch(/[<\n]/);
      expect(probed).toBe(probePasses.includes(name) ? 'passes' : 'fails');
    },
  );

  test('waits if nothing listens', async () => {
    const settings = Object.fromEntries(
      Object.entries(await config({ answer: 'hang' })).map(([name, value]) => [name, value]),
    );
    const port = await freePort();
    const away = JSON.parse(
      JSON.stringify(settings).replaceAll(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`),
    );
    const { sink, batch } = await openSink(definition, away);

    expect(await sink.send(batch(someEvents(1)), never)).toMatchObject({
      outcome: 'retry',
      cause: { fault: 'downstream' },
    });
  });
});
