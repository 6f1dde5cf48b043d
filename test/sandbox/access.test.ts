// Getting in: tokens, keys, scopes, rate limits, TLS, and the endpoints themselves.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { AUDIT, ask, LOGS, OBJECTS, page, stillSandbox, tokenFor } from './client.ts';

const UNIFIED_TOKEN = '/v1/oauth/token';
const SERVICES_TOKEN = '/api/auth/v1/oauth/v2/token';

async function post(
  url: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
) {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form), headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});

describe('tokens', () => {
  it('unified: form parameters give a bearer with the requested scopes', async () => {
    await using sandbox = await stillSandbox();
    const client = { client_id: 'sandbox-client', client_secret: 'sandbox-secret' };
    const grant = { grant_type: 'client_credentials', scope: 'events:read' };

    const good = await post(sandbox.url + UNIFIED_TOKEN, { ...client, ...grant });
    const refused = await Promise.all([
      post(sandbox.url + UNIFIED_TOKEN, { ...client, ...grant, client_secret: 'wrong' }),
      post(sandbox.url + UNIFIED_TOKEN, { ...client, ...grant, scope: 'events:read everything' }),
      post(sandbox.url + UNIFIED_TOKEN, { ...client, ...grant, grant_type: 'password' }),
    ]);
    const sites = await ask(sandbox, '/v1/sites', String(good.body.access_token));

    expect(good).toMatchObject({
      status: 200,
      body: { token_type: 'Bearer', expires_in: 3600, scope: 'events:read' },
    });
    expect(refused.map(({ status }) => status)).toEqual([401, 400, 400]);
    expect(refused.map(({ body }) => Reflect.get(Object(body.error), 'code'))).toEqual([
      'invalid_client',
      'invalid_scope',
      'unsupported_grant_type',
    ]);
    expect(sites.status).toBe(403);
  });

  it('services: HTTP Basic and the scope URN give a bearer for 43200 seconds', async () => {
    const clientSecret = 's3cr:et/+ü';
    await using sandbox = await stillSandbox({ credentials: { clientSecret } });
    const grant = { grant_type: 'client_credentials', scope: 'urn:sandbox:api:public' };

    const good = await post(
      sandbox.url + SERVICES_TOKEN,
      grant,
      basic('sandbox-client', clientSecret),
    );
    const inForm = await post(sandbox.url + SERVICES_TOKEN, {
      ...grant,
      client_id: 'sandbox-client',
      client_secret: clientSecret,
    });
    const scopeless = await post(
      sandbox.url + SERVICES_TOKEN,
      { ...grant, scope: 'x' },
      basic('sandbox-client', clientSecret),
    );

    expect(good).toMatchObject({ status: 200, body: { token_type: 'Bearer', expires_in: 43_200 } });
    expect([inForm.status, scopeless.status]).toEqual([401, 400]);
    expect(inForm.body).toMatchObject({
      title: 'Unauthorized',
      status: 401,
      trace_id: expect.any(String),
    });
  });

  it('a token is good at its own API only, until it expires or is revoked', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({ now: () => nowMs, tokenLifetimeS: 60 });
    const [unified, services] = [await tokenFor(sandbox, AUDIT), await tokenFor(sandbox, LOGS)];

    const crossed = [await ask(sandbox, AUDIT, services), await ask(sandbox, LOGS, unified)];
    const fresh = [await ask(sandbox, AUDIT, unified), await ask(sandbox, LOGS, services)];
    nowMs += 60_000;
    const expired = await ask(sandbox, AUDIT, unified);
    const second = await tokenFor(sandbox, AUDIT);
    sandbox.control.revokeTokens();
    const revoked = await ask(sandbox, AUDIT, second);

    expect(crossed.map((reply) => reply.status)).toEqual([401, 401]);
    expect(fresh.map((reply) => reply.status)).toEqual([200, 200]);
    expect([expired.status, revoked.status]).toEqual([401, 401]);
  });

  it('the API key works at the unified API only; a rotated secret replaces the old one', async () => {
    await using sandbox = await stillSandbox();
    const { apiKey } = sandbox.credentials;
    const client = { grant_type: 'client_credentials', client_id: 'sandbox-client' };

    const replies = [await ask(sandbox, AUDIT, apiKey), await ask(sandbox, LOGS, apiKey)];
    sandbox.control.rotateSecret('another');
    const old = await post(sandbox.url + UNIFIED_TOKEN, {
      ...client,
      client_secret: 'sandbox-secret',
    });
    const fresh = await post(sandbox.url + UNIFIED_TOKEN, {
      ...client,
      client_secret: sandbox.credentials.clientSecret,
    });

    expect(replies.map((reply) => reply.status)).toEqual([200, 401]);
    expect([old.status, fresh.status]).toEqual([401, 200]);
  });
});

describe('rate limits', () => {
  it('count per token and path, show their state, and end with the window', async () => {
    let nowMs = Date.UTC(2026, 5, 1);
    const limits = [{ path: '**', requests: 2, per_s: 30 }];
    await using sandbox = await stillSandbox({ now: () => nowMs, faults: { limits } });
    const [token, other] = [await tokenFor(sandbox, AUDIT), await tokenFor(sandbox, AUDIT)];

    const replies = [];
    for (let n = 0; n < 3; n += 1) replies.push(await ask(sandbox, AUDIT, token));
    const elsewhere = [await ask(sandbox, AUDIT, other), await ask(sandbox, '/v1/sites', token)];
    nowMs += 30_000;
    const later = await ask(sandbox, AUDIT, token);

    expect(replies.map((reply) => reply.status)).toEqual([200, 200, 429]);
    expect(replies.map((reply) => reply.headers.get('x-ratelimit-remaining'))).toEqual([
      '1',
      '0',
      '0',
    ]);
    expect(replies[0]?.headers.get('x-ratelimit-limit')).toBe('2');
    expect(replies[2]?.headers.get('retry-after')).toBe('30');
    expect([...elsewhere, later].map((reply) => reply.status)).toEqual([200, 200, 200]);
  });

  it('services show theirs in the RateLimit header', async () => {
    await using sandbox = await stillSandbox();

    const { headers } = await ask(sandbox, LOGS);

    expect(headers.get('ratelimit')).toMatch(/^"api";r=\d+;t=\d+$/);
    expect(headers.has('x-ratelimit-limit')).toBe(false);
  });
});

describe('endpoints', () => {
  it('sites are filtered by status and region', async () => {
    await using sandbox = await stillSandbox();

    const { data } = await page(sandbox, '/v1/sites?region=eu-west&status=active');

    expect(data.map((site) => site.id)).toEqual(
      expect.arrayContaining(['site_dub01', 'site_par01', 'site_mad01']),
    );
    for (const site of data) expect(site).toMatchObject({ region: 'eu-west', status: 'active' });
  });

  it.each([
    '/v1/openapi.json',
    '/v1/mc/incidents/INC-20001/timeline',
    '/api/firewall/v1/ip-protocols',
    '/api/firewall/v1/icmp-types',
    '/api/firewall/v1/icmpv6-types',
    '/api/fleet/v1/companies/c-2',
    '/api/ticketing/v1/companies/c-2/tickets',
    '/api/ticketing/v1/companies/c-2/tickets/tkt-10004711/events',
  ])('%s answers with JSON', async (path) => {
    await using sandbox = await stillSandbox();

    const reply = await ask(sandbox, path);

    expect(reply.status).toBe(200);
    expect(Object.keys(JSON.parse(reply.text))).not.toHaveLength(0);
  });

  it('the deprecated endpoint says so in the form of RFC 9745', async () => {
    await using sandbox = await stillSandbox();

    const { headers } = await ask(sandbox, '/api/fleet/v1/companies/c-1/hosts');

    expect(headers.get('deprecation')).toMatch(/^@\d+$/);
    expect(headers.get('sunset')).toMatch(/GMT$/);
  });

  it('unknown paths, companies and methods are refused', async () => {
    await using sandbox = await stillSandbox();
    const token = await tokenFor(sandbox, OBJECTS);
    const headers = { authorization: `Bearer ${token}` };

    const replies = [
      await ask(sandbox, '/v1/nothing'),
      await ask(sandbox, OBJECTS.replace('c-1', 'c-9')),
      await fetch(sandbox.url + OBJECTS, { method: 'DELETE', headers }),
      await fetch(sandbox.url + OBJECTS),
    ];

    expect(replies.map((reply) => reply.status)).toEqual([404, 404, 405, 401]);
  });
});

describe('startSandbox', () => {
  it('says which port it could not have', async () => {
    await using sandbox = await stillSandbox();

    await expect(startSandbox({ port: sandbox.port })).rejects.toThrow(
      `port ${sandbox.port} of 127.0.0.1`,
    );
  });

  it('serves https, and refuses a client below its TLS version', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-sandbox-'));
    const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
    execFileSync(
      'openssl',
      [
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '1',
        '-subj',
        '/CN=127.0.0.1',
        '-addext',
        'subjectAltName=IP:127.0.0.1',
        '-keyout',
        key,
        '-out',
        cert,
      ],
      { stdio: 'ignore' },
    );
    const pems = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
    rmSync(dir, { recursive: true });
    await using sandbox = await stillSandbox({ tls: { ...pems, minVersion: 'TLSv1.3' } });
    const status = (maxVersion: 'TLSv1.2' | 'TLSv1.3') =>
      new Promise((resolve) => {
        get(
          `${sandbox.unifiedBaseUrl}/sites`,
          { ca: pems.cert, maxVersion, agent: false },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        ).on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
      });

    const seen = [await status('TLSv1.3'), await status('TLSv1.2')];

    expect(sandbox.url).toMatch(/^https:/);
    expect(seen).toEqual([401, 'EPROTO']);
  });
});

describe('control endpoints', () => {
  it('have the same effect over HTTP as the methods', async () => {
    await using sandbox = await stillSandbox();
    const control = async (method: string, call: string, body?: string) => {
      const response = await fetch(`${sandbox.url}/_sandbox/${call}`, {
        method,
        ...(body !== undefined && { body }),
      });
      return { status: response.status, text: await response.text() };
    };

    const grown = await control('POST', `grow?path=${AUDIT}&count=5`);
    const trimmed = await control('POST', `trim?path=${AUDIT}&keep=30`);
    const script = await control('POST', 'faults', `rules: [{ path: ${AUDIT}, fault: 503 }]`);
    const faulty = await ask(sandbox, AUDIT);
    const counts = await control('GET', 'faults');
    const cleared = await control('DELETE', 'faults');
    const changed = await control(
      'POST',
      'firewall?company=c-1',
      '{"kind":"object","op":"add","id":"obj-x"}',
    );
    const revoked = await control('POST', 'tokens/revoke');
    const rotated = await control('POST', 'secret?value=fresh');
    const ledger = await control('GET', 'ledger');
    const ids = await control('GET', `ledger/ids?path=${AUDIT}`);
    const record = await control('GET', `ledger/record?path=${AUDIT}&id=evt_000000044`);
    const firewall = await control('GET', 'ledger/firewall?company=c-1');
    const requests = await control('GET', 'requests');

    for (const reply of [grown, trimmed, script, cleared, changed, revoked, rotated])
      expect(reply.status).toBe(200);
    expect(faulty.status).toBe(503);
    expect(JSON.parse(counts.text)).toEqual([
      { path: AUDIT, fault: 'status', seen: 1, happened: 1 },
    ]);
    expect(JSON.parse(changed.text)).toMatchObject({ kind: 'object', op: 'add', id: 'obj-x' });
    expect(sandbox.credentials.clientSecret).toBe('fresh');
    expect(JSON.parse(ledger.text).lists[0]).toEqual({
      path: AUDIT,
      size: 45,
      first: 15,
      first_id: 'evt_000000000',
      last_id: 'evt_000000044',
    });
    expect(ids.text.trimEnd().split('\n')).toHaveLength(45);
    expect(record.text).toBe(sandbox.ledger().list(AUDIT).textAt(44));
    expect(JSON.parse(firewall.text).changes).toHaveLength(1);
    expect(JSON.parse(requests.text)[AUDIT]).toMatchObject({ requests: 1, statuses: { 503: 1 } });
  });

  it.each([
    [
      'POST',
      'faults',
      'rules: [{ path: x, fault: nonsense }]',
      400,
      'body:1:17: path must be a path',
    ],
    ['POST', 'grow?path=/nowhere&count=5', '', 400, 'no growing list at /nowhere'],
    ['POST', `grow?path=${AUDIT}&count=many`, '', 400, 'count must be a number'],
    [
      'POST',
      'firewall?company=c-1',
      '{"kind":"rule","op":"remove","id":"nope"}',
      400,
      'there is no rule nope',
    ],
    ['POST', 'firewall?company=c-1', '{"kind":"x"}', 400, 'kind must be one of'],
    ['GET', `ledger/record?path=${AUDIT}&id=evt_000000999`, undefined, 404, 'no such record'],
    ['GET', 'nothing', undefined, 404, 'control calls: GET faults'],
  ])('%s %s with a mistake says which', async (method, call, body, status, message) => {
    await using sandbox = await stillSandbox();

    const response = await fetch(`${sandbox.url}/_sandbox/${call}`, {
      method,
      ...(body !== undefined && { body }),
    });

    expect(response.status).toBe(status);
    expect(await response.text()).toContain(message);
  });
});
