// Where the status may be served, and with what.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

test.each(['127.0.0.1:8686', 'localhost:1', '"[::1]:8686"', '127.1.2.3:0'])(
  'parseConfig takes loopback address %s without a token',
  (listen) => {
    const config = parseConfig(aConfig({ top: `status: { listen: ${listen} }` }), 'c', configEnv());

    expect(config.status?.token).toBeNull();
  },
);

test('parseConfig takes port 0 for any free port', () => {
  const config = parseConfig(aConfig({ top: 'status: { listen: "[::1]:0" }' }), 'c', configEnv());

  expect(config.status).toMatchObject({ host: '::1', port: 0 });
});

test.each([
  '0.0.0.0:8686',
  '"[::]:8686"',
  '192.168.1.4:1',
  'status.example:8686',
  '127.0.0.1.nip.io:1',
])('parseConfig wants a token where others can read %s', (listen) => {
  const without = flawLines(aConfig({ top: `status: { listen: ${listen} }` }));
  const withToken = flawLines(aConfig({ top: `status: { listen: ${listen}, token: t }` }));

  expect(without).toEqual([
    'c.yaml:1:19 status.listen: others can read this address, so it needs a token or a password; set status.token, status.tokens or status.basic_auth, or listen on 127.0.0.1',
  ]);
  expect(withToken).toEqual([]);
});

test('parseConfig takes a name and a password in place of a token, and a switch for the live tail', () => {
  const basic = 'basic_auth: { username: ana, password: ${env:PASSWORD} }, tail: false';
  const top = `status: { listen: "0.0.0.0:1", ${basic} }`;

  const { status } = parseConfig(aConfig({ top }), 'c', configEnv({ PASSWORD: 'pass:word' }));

  expect(status).toMatchObject({ token: null, basicAuth: { username: 'ana' }, tail: false });
  expect(status?.basicAuth?.password.reveal()).toBe('pass:word');
  expect(JSON.stringify(status)).not.toContain('pass:word');
});

test('parseConfig takes a collector that the numbers are pushed to', () => {
  const otlp = (more: string) => `otlp: { url: "http://collector:4318/v1/metrics"${more} }`;
  const listen = 'listen: "127.0.0.1:0"';
  const top = `status: { ${listen}, ${otlp(', headers: { Authorization: t }, every: 15s')} }`;
  const flawed = `status: { ${listen}, ${otlp(', tls: { ca_file: x }, every: 10ms')} }`;

  const { status } = parseConfig(aConfig({ top }), 'c', configEnv());

  expect(status?.telemetry).toMatchObject({ everyMs: 15_000, tls: undefined });
  expect(status?.telemetry?.headers.Authorization?.reveal()).toBe('t');
  expect(flawLines(aConfig({ top: flawed })).join('\n')).toMatch(
    /status\.otlp\.every: expected a duration between 1s and 1d/,
  );
});

test.each(['127.0.0.1:65536', '127.0.0.1:', ':0', '127.0.0.1:00000000'])(
  'parseConfig refuses %s as an address',
  (listen) => {
    expect(flawLines(aConfig({ top: `status: { listen: "${listen}" }` }))).toEqual([
      expect.stringContaining('expected host:port such as 127.0.0.1:8686'),
    ]);
  },
);
