import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  tokenUrl,
  upstreamFields,
  upstreamFlaws,
  upstreamTls,
} from '../../src/upstream/settings.ts';

const schema = z.strictObject(upstreamFields);
const auth = { client_id: 'a', client_secret: 'b', scope: 'events:read' };

function parse(more: Record<string, unknown> = {}) {
  return schema.parse({ api: 'unified', base_url: 'https://api.example.com/v1', auth, ...more });
}

describe('upstreamFields', () => {
  test('the contract’s two examples', () => {
    const edge = parse({
      allow_http: false,
      tls: { ca_file: 'ca.pem', min_version: 'TLSv1.3' },
      throttle: [{ path: '/audit/events', requests: 60, per: '1m' }],
    });
    const ops = parse({
      api: 'services',
      base_url: 'https://svc.example.com/',
      auth: { ...auth, scope: 'urn:vendor:api:public' },
      companies: ['c-1', 'c-2'],
    });

    expect([upstreamFlaws(edge), upstreamFlaws(ops)]).toEqual([[], []]);
    expect(edge.throttle).toEqual([{ path: '/audit/events', requests: 60, per: 60_000 }]);
    expect(edge).toMatchObject({ timeout: 60_000, max_body: 67_108_864, rate_limit_pause: 30_000 });
    expect(tokenUrl(edge)).toBe('https://api.example.com/v1/oauth/token');
    expect(tokenUrl(ops)).toBe('https://svc.example.com/api/auth/v1/oauth/v2/token');
  });

  test('A22: TLS 1.3 is the least for unified and 1.2 for services, unless the config says otherwise', () => {
    expect(upstreamTls(parse()).min_version).toBe('TLSv1.3');
    expect(upstreamTls(parse({ api: 'services' })).min_version).toBe('TLSv1.2');
    expect(upstreamTls(parse({ tls: { min_version: 'TLSv1.2' } })).min_version).toBe('TLSv1.2');
  });

  test.each([
    [{ base_url: 'api.example.com' }],
    [{ base_url: 'ftp://api.example.com' }],
    [{ base_url: 'https://user:pass@api.example.com' }],
    [{ base_url: 'https://api.example.com/v1?key=1' }],
    [{ companies: ['..'] }],
    [{ companies: ['a', 'a'] }],
    [{ throttle: [{ path: 'audit', requests: 1, per: '1m' }] }],
    [{ throttle: [{ path: '/audit', requests: 0, per: '1m' }] }],
    [{ throttle: [{ path: '/audit', requests: 1, per: '0s' }] }],
    [{ timeout: '0s' }],
    [{ unknown: 1 }],
  ])('refuses %j', (more) => {
    expect(() => parse(more)).toThrow();
  });

  test('credentials never show when settings are printed', () => {
    expect(JSON.stringify(parse({ auth: { ...auth, client_secret: 'hush-hush' } }))).not.toContain(
      'hush',
    );
  });
});

describe('upstreamFlaws', () => {
  test.each([
    ['http://127.0.0.1:8080', true],
    ['http://localhost:8080/v1', true],
    ['http://[::1]:8080', true],
    ['http://api.example.com', false],
    ['http://127.0.0.1.evil.example', false],
    ['http://localhost.evil.example', false],
    ['http://10.0.0.1', false],
    ['HTTP://api.example.com', false],
    ['http://2130706433:8080', true],
  ])('%s with allow_http: %s', (base_url, accepted) => {
    expect(upstreamFlaws(parse({ base_url, allow_http: true })).length === 0).toBe(accepted);
    expect(upstreamFlaws(parse({ base_url }))).toEqual([expect.stringMatching(/https:\/\//)]);
  });

  test('a plain token_url is refused as well', () => {
    const settings = parse({ auth: { ...auth, token_url: 'http://idp.example/token' } });

    expect(upstreamFlaws(settings)).toEqual([expect.stringMatching(/https:\/\//)]);
  });

  test.each([
    [{ client_id: 'a' }, 'client_secret'],
    [{ client_secret: 'a' }, 'client_id'],
    [{}, 'api_key'],
    [{ ...auth, api_key: 'k' }, 'not both'],
  ])('auth %j', (auth, words) => {
    expect(upstreamFlaws(parse({ auth }))).toEqual([expect.stringContaining(words)]);
  });

  test('the services API needs its scope', () => {
    const settings = parse({ api: 'services', auth: { client_id: 'a', client_secret: 'b' } });

    expect(upstreamFlaws(settings)).toEqual([expect.stringContaining('auth.scope')]);
    expect(upstreamFlaws(parse({ auth: { api_key: 'k' } }))).toEqual([]);
  });
});
