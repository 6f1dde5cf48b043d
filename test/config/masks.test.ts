// Masks in a config: a mask that would have no effect, or that another way bypasses, is refused.

import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { aConfig, configEnv, flawLines } from './config-text.ts';

const sinks =
  '  screen: { type: stdout }\n' +
  '  raw: { type: stdout, format: { type: json, raw_data: true } }\n' +
  '  post: { type: http, url: "http://127.0.0.1:1/", format: { type: json, schema: original } }\n' +
  '  vault: { type: archive, location: ./a, signing_key: "${file:/k}" }';
const sources =
  '  audit: { type: audit_events, upstream: edge }\n  fw: { type: firewall, upstream: ops }';
const env = configEnv(
  {},
  { '/k': 'PRIVATE+KEY+sluice+00000000+AAAA', '/mask': 'a secret key of masks\n' },
);

function reported(routes: string, key = 'mask: { key: "${file:/mask}" }', archive = ''): string {
  const top = `${key}\nroutes:\n${routes}`;
  const text = aConfig({ sources, sinks: sinks.replace('}"}', `}"${archive} }`), top });
  return flawLines(text.replace('"${file:/k}" }', `"\${file:/k}"${archive} }`), env)
    .filter((line) => !line.includes('signing_key'))
    .join('\n');
}

const masks = (mask: string, more = '') =>
  `  - { from: [audit], to: [screen], mask: { ${mask} }${more} }`;

test('a right mask is accepted, and each route has the key', () => {
  const text = aConfig({
    sources,
    top: `mask: { key: "\${file:/mask}" }\nroutes:\n${masks('actor.user.email_addr: hash')}`,
  });
  const { routes } = parseConfig(text, 'c.yaml', env);

  expect(routes[0]?.mask).toEqual({ 'actor.user.email_addr': 'hash' });
  expect(routes[0]?.maskKey?.reveal()).toBe('a secret key of masks');
});

test.each([
  ['actor.user.email_addr: sha1', 'expected one of hash, domain, last4, network, found "sha1"'],
  ['actor.user.emal_addr: hash', 'did you mean email_addr'],
  ['severity_id: hash', 'severity_id is a number, and only a text is masked'],
  ['actor.user: hash', 'actor.user is an object, and only a text is masked'],
  ['metadata.uid: hash', 'metadata.uid identifies the event'],
  ['metadata.tenant_uid: hash', 'metadata.tenant_uid identifies the event'],
])('the mask %s is refused', (mask, what) => {
  expect(reported(masks(mask))).toContain(what);
});

test('a path that is masked and redacted is refused, also one above it', () => {
  const mask = 'actor.user.email_addr: domain';
  expect(reported(masks(mask, ', redact: [actor.user.email_addr]'))).toContain(
    'is masked, and redact removes',
  );
  expect(reported(masks(mask, ', redact: [actor.user]'))).toContain(
    'is masked, and redact removes',
  );
  expect(reported(masks(mask, ', redact: [src_endpoint.ip]'))).toBe('');
});

test('hash without a key is refused; other masks need none', () => {
  expect(reported(masks('actor.user.name: hash'), '')).toContain('the mask hash needs a key');
  expect(reported(masks('actor.user.name: last4'), '')).toBe('');
});

test('a sink that writes records as sent is refused on a masked route', () => {
  for (const sink of ['raw', 'post']) {
    const route = `  - { from: [audit], to: [${sink}], mask: { actor.user.name: last4 } }`;
    expect(reported(route)).toContain(`the sink ${sink} writes records as upstream sent them`);
  }
});

test('an archive on a masked route is refused, and beside one it needs accept_unmasked', () => {
  const on = '  - { from: [audit], to: [vault], mask: { actor.user.name: last4 } }';
  const beside = `${masks('actor.user.name: last4')}\n  - { from: [audit], to: [vault] }`;
  const apart = `${masks('actor.user.name: last4')}\n  - { from: [fw], to: [vault] }`;

  expect(reported(on)).toContain('so it gets whole pages and no field can be removed or masked');
  expect(reported(beside)).toContain('set accept_unmasked: true');
  expect(reported(beside, undefined, ', accept_unmasked: true')).toBe('');
  expect(reported(apart)).toBe('');
});

test('a mask after a route that passes everything is refused', () => {
  const plain = '  - { from: [audit], to: [screen] }';
  expect(reported(`${plain}\n${masks('actor.user.name: last4')}`)).toContain(
    'routes[0] passes every event from audit to screen first',
  );
  expect(
    reported(`${masks('actor.user.name: last4', ", where: 'event.severity_id > 2'")}\n${plain}`),
  ).toBe('');
});

test('a route whose filter has no value here does not hide a mask', () => {
  const filtered = '  - { from: [audit], to: [screen], where: "${env:FILTER}" }\n';
  const routes = `routes:\n${filtered}${masks('actor.user.email_addr: domain')}`;
  const without = { ...env, placeholders: 'all' } as const;

  expect(flawLines(aConfig({ sources, top: routes }), without)).toEqual([]);
});
