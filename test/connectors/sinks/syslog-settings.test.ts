// The settings of a syslog sink, and the errors for wrong ones. Parsing and checks only; no socket.

import { expect, test } from 'vitest';
import { z } from 'zod';
import { syslogSink } from '../../../connectors/sinks/syslog.ts';
import { parseSettings } from '../../support/sink-opening.ts';

const udp = { address: 'udp://siem.example:514' };
const tcp = { address: 'tcp://siem.example:514' };
const secure = { address: 'tls://siem.example:6514' };
const relp = { address: 'relp://siem.example:2514' };
const relps = { address: 'relps://siem.example:2514' };

test.each([
  [
    'siem.example:514',
    'expected udp://host:port, tcp://host:port, tls://host:port, relp://host:port or relps://',
  ],
  ['http://siem.example:80', 'expected udp://, tcp://, tls://, relp:// or relps://, not http://'],
  ['tls://siem.example', 'such as tls://siem.example:6514'],
  ['tcp://siem.example:0', 'a port from 1 to 65535'],
  ['tcp://siem.example:65536', 'a port from 1 to 65535'],
  ['udp://2001:db8::1:514', 'udp://[2001:db8::1]:514'],
  ['tcp://siem.example:514/path', 'a host and a port'],
  ['relps://siem.example', 'such as relps://siem.example:2514'],
  ['toString://siem.example:1', 'not toString://'],
])('syslogSink refuses the address %s and names the expected form', (address, message) => {
  const parsed = z.object(syslogSink.fields).safeParse({ address });

  expect(parsed.success).toBe(false);
  expect(parsed.error?.issues[0]).toMatchObject({
    path: ['address'],
    message: expect.stringContaining(message),
  });
});

test('syslogSink takes names, IPv4 and IPv6 addresses', () => {
  const hosts = ['tcp://siem.example:514', 'udp://192.0.2.1:514', 'tls://[2001:db8::1]:6514'].map(
    (address) => parseSettings(syslogSink, { address }).address,
  );

  expect(hosts).toMatchObject([
    { transport: 'tcp', host: 'siem.example', port: 514 },
    { transport: 'udp', host: '192.0.2.1', port: 514 },
    { transport: 'tls', host: '2001:db8::1', port: 6514 },
  ]);
});

test.each([
  [{ ...tcp, tls: { ca_file: 'ca.pem' } }, 'write tls://'],
  [{ ...secure, tls: { cert_file: 'c.pem' } }, 'belong together'],
  [{ ...secure, tls: { key_file: 'k.pem' } }, 'belong together'],
  [{ ...udp, framing: 'newline' }, 'framing has no meaning over UDP'],
  [{ ...udp, resend_window: '2s' }, 'resend_window has no meaning over UDP'],
  [{ ...udp, confirm: 'close' }, 'confirm has no meaning over UDP'],
  [{ ...relp, tls: { ca_file: 'ca.pem' } }, 'write relps://'],
  [{ ...relp, framing: 'newline' }, 'framing has no meaning over RELP'],
  [{ ...relps, confirm: 'close' }, 'confirm has no meaning over RELP'],
  [{ ...relps, resend_window: '2s' }, 'resend_window has no meaning over RELP'],
  [{ ...tcp, window: 128 }, 'window is of RELP'],
  [{ ...udp, window: 128 }, 'window is of RELP'],
  [{ ...relps, window: 1000, tls: { ca_file: 'ca.pem' } }, null],
  [{ ...udp, max_message: 65_508 }, 'a datagram holds 65507 bytes'],
  [tcp, null],
  [{ ...tcp, max_message: 1_000_000 }, null],
  [{ ...secure, framing: 'newline' }, null],
  [{ ...secure, tls: { cert_file: 'c.pem', key_file: 'k.pem' } }, null],
  [udp, null],
])('syslogSink judges %j', (config, flaw) => {
  const judged = syslogSink.flaw?.(parseSettings(syslogSink, config));

  if (flaw === null) expect(judged).toBeNull();
  else expect(judged).toContain(flaw);
});

test.each([{ app_name: 'two words' }, { hostname: 'host\n<0>1 forged' }, { max_message: 500 }])(
  'syslogSink refuses %j, which could not stand in a header',
  (wrong) => {
    expect(z.object(syslogSink.fields).safeParse({ ...tcp, ...wrong }).success).toBe(false);
  },
);

test('syslogSink promises an answer over RELP, settled delivery over TCP and TLS, and nothing over UDP', () => {
  const assurances = [udp, tcp, secure, relp, relps].map((config) =>
    syslogSink.assurance(parseSettings(syslogSink, config)),
  );

  expect(assurances).toEqual(['none', 'settled', 'settled', 'answered', 'answered']);
});

test('syslogSink advises about framing and confirmation over TCP and TLS, and about neither over UDP', () => {
  const adviceOf = (config: Record<string, unknown>) =>
    syslogSink.advice?.(parseSettings(syslogSink, config)).join(' ');

  expect(adviceOf(tcp)).toMatch(/framing is octet_counting:.*framing: newline.*load balancer/);
  expect(adviceOf({ ...secure, framing: 'newline' })).toMatch(/framing is newline:/);
  expect(adviceOf({ ...tcp, confirm: 'window' })).not.toContain('load balancer');
  expect(adviceOf(udp)).toBe('');
  expect(adviceOf(relp)).toBe('');
  expect(adviceOf({ ...relp, max_message: 64_000 })).toContain('maxDataSize');
});

test('syslogSink.format puts the chosen format into a syslog message of its own settings', () => {
  const settings = parseSettings(syslogSink, {
    ...tcp,
    protocol: 'rfc3164',
    facility: 'audit',
    app_name: 'edge',
    hostname: 'gw-1',
    enterprise: 12_345,
    max_message: 4000,
  });
  const own = {
    type: 'syslog',
    protocol: 'rfc3164',
    facility: 'audit',
    app_name: 'edge',
    hostname: 'gw-1',
    enterprise: 12_345,
    max_message: 4000,
  };

  const cef = syslogSink.format?.(settings, { type: 'cef', vendor: 'Acme' });
  const plain = syslogSink.format?.(settings, {
    type: 'syslog',
    message: 'text',
    facility: 'kern',
  });

  expect(cef).toEqual({ ...own, message: { type: 'cef', vendor: 'Acme' } });
  expect(plain).toEqual({ ...own, message: 'text' });
});

test('syslogSink takes a timezone with rfc3164 only', () => {
  const flawOf = (config: Record<string, unknown>) =>
    syslogSink.flaw?.(parseSettings(syslogSink, { ...tcp, ...config })) ?? null;
  const zurich = { timezone: 'Europe/Zurich' };

  expect(flawOf({ ...zurich, protocol: 'rfc3164' })).toBeNull();
  expect(flawOf(zurich)).toMatch(/^timezone needs protocol: rfc3164/);
  expect(() => flawOf({ protocol: 'rfc3164', timezone: 'Zurich' })).toThrow('IANA time zone');
});

test('syslogSink.format leaves names to the format unless they are set', () => {
  const choice = syslogSink.format?.(parseSettings(syslogSink, tcp), { type: 'json' });

  expect(Object.keys(choice ?? {}).sort()).toEqual(
    ['facility', 'max_message', 'message', 'protocol', 'type'].sort(),
  );
});
