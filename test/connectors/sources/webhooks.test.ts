// What a webhooks source takes from its config, and what it refuses.

import { expect, test } from 'vitest';
import { parseConfig } from '../../../src/config/config.ts';
import type { PushStream } from '../../../src/contracts/source.ts';
import { planFrom } from '../../../src/run/plan.ts';
import { configEnv, flawLines, withFirst } from '../../config/config-text.ts';
import { planMeans } from '../../run/plan-deps.ts';
import { makeCa } from '../../support/certificates.ts';

const { server } = await makeCa();

const hooks = (more: string, name = 'hooks') =>
  `  ${name}: { type: webhooks, upstream: edge, listen: "127.0.0.1:8088", ${more} }`;

function streamOf(more: string, env: Record<string, string> = {}): PushStream {
  const config = parseConfig(withFirst('sources', hooks(more)), 'c.yaml', configEnv(env));
  const [stream] = planFrom(config, planMeans()).sources[0]?.streams ?? [];
  if (stream?.kind !== 'push') throw new Error('a webhooks source has one stream that is brought');
  return stream;
}

test('left out, all is as the document shows it', () => {
  expect(streamOf('secret: s')).toMatchObject({
    ...{ name: 'hooks', records: 'log', paths: [] },
    listen: { host: '127.0.0.1', port: 8088, path: '/webhooks', tls: undefined },
    rules: {
      ...{ signatureHeader: 'svc-signature', deliveryHeader: 'svc-delivery' },
      ...{ eventHeader: 'svc-event', timestampHeader: null, signsTime: false },
      ...{ secretEncoding: 'utf8', maxAgeMs: 300_000, bodyBytesMax: 1024 ** 2 },
    },
    registration: {
      url: 'http://127.0.0.1:8088/webhooks',
      events: ['incident.created', 'agent.action.gated'],
    },
  });
});

test.each([
  ['one', 'secret: "${env:A}"', ['new a']],
  ['a list', 'secret: ["${env:A}", "${env:B}"]', ['new a', 'b']],
])('secrets are read again at each use: %s', (_, more, requested) => {
  const env = { A: 'a', B: 'b' };
  const { secrets } = streamOf(more, env).rules;

  env.A = 'new a';

  expect(secrets.map((secret) => secret.reveal())).toEqual(requested);
  expect(secrets[0]?.reference).toBe('${env:A}');
});

test('an address that listens everywhere is nothing to register', () => {
  const everywhere = 'secret: s, path: /h, tls: { cert_file: /c, key_file: /k }';
  const plan = (listen: string, more = '') =>
    parseConfig(
      withFirst('sources', hooks(`${everywhere}${more}`).replace('127.0.0.1:8088', listen)),
      'c.yaml',
      configEnv({}, { '/c': server.cert, '/k': server.key }),
    );
  const urlOf = (listen: string, more = '') => {
    const [stream] = planFrom(plan(listen, more), planMeans()).sources[0]?.streams ?? [];
    return stream?.kind === 'push' ? stream.registration.url : undefined;
  };

  expect(urlOf('0.0.0.0:8443')).toBe(null);
  expect(urlOf('[::]:8443')).toBe(null);
  expect(urlOf('0.0.0.0:8443', ', url: "https://h.example/h"')).toBe('https://h.example/h');
  expect(urlOf('10.0.0.1:8443')).toBe('https://10.0.0.1:8443/h');
});

test.each([
  ['signed_form: "{timestamp}.{body}"', 'signed_form holds {timestamp}, so timestamp_header'],
  ['signed_form: "{body}"', 'signed_form'],
  ['path: hooks', 'expected a path such as /webhooks'],
  ['signature_header: "X Y"', 'expected a header name'],
  ['url: ftp://h', 'url'],
  ['events: []', 'events'],
  ['tls: { cert_file: /c }', 'key_file'],
  ['tls: { cert_file: /c, key_file: /k }', 'tls.cert_file: the file "/c" cannot be read'],
])('refused: %s', (more, requested) => {
  const [first = ''] = flawLines(withFirst('sources', hooks(`secret: s, ${more}`)));

  expect(first).toContain('sources.hooks');
  expect(first).toContain(requested);
});

test.each(['8088', '127.0.0.1:0', 'http://127.0.0.1:8088'])('refused: listen: %s', (listen) => {
  const text = hooks('secret: s').replace('127.0.0.1:8088', listen);

  expect(flawLines(withFirst('sources', text))[0]).toContain('expected host:port');
});

test('no secret, or an empty list of them, is refused', () => {
  expect(flawLines(withFirst('sources', hooks('path: /h')))[0]).toContain('secret');
  expect(flawLines(withFirst('sources', hooks('secret: []')))[0]).toContain('secret');
});

test('a secret that is no base64 is refused where it is to be, and not shown', () => {
  const text = withFirst('sources', hooks('secret: ["aGk=", "(!)"], secret_encoding: base64'));

  const [flaw = '', ...more] = flawLines(text);

  expect(more).toEqual([]);
  expect(flaw).toContain('sources.hooks: secret is no base64');
  expect(flaw).not.toContain('(!)');
  expect(flawLines(text.replace('(!)', 'b28='))).toEqual([]);
});

test('two sources that share an address have one tls', () => {
  const two = (tls: string) =>
    `${hooks('secret: s', 'a')}\n${hooks(`secret: s, path: /b, tls: ${tls}`, 'b')}`;
  const files = configEnv({}, { '/c': server.cert, '/k': server.key });
  const text = withFirst('sources', two('{ cert_file: /c, key_file: /k }'));

  expect(() => parseConfig(text, 'c.yaml', files)).toThrow(
    'sources.b.tls: the source a has another for 127.0.0.1:8088; it is one',
  );
  expect(() => parseConfig(text.replace('8088', '8089'), 'c.yaml', files)).not.toThrow();
});

test('two sources may share an address, but not a path', () => {
  const two = (path: string) =>
    `${hooks('secret: s', 'a')}\n${hooks(`secret: s, path: ${path}`, 'b')}`;

  expect(flawLines(withFirst('sources', two('/other')))).toEqual([]);
  expect(flawLines(withFirst('sources', two('/webhooks')))).toEqual([
    expect.stringContaining('sources.b.path: the source a uses this path already'),
  ]);
});
