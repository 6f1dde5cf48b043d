// That the scripted Azure Monitor, Google SecOps and Datadog do what their documents say: what each refuses, and what it
// takes without a word though an analyst will miss it.
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { type AzureMonitor, azure, startAzureMonitor } from './azure-monitor.ts';
import { type DatadogIntake, datadogKey, startDatadogIntake } from './datadog-intake.ts';
import { type SecOps, startSecOps } from './google-secops.ts';

async function post(url: string, body: string | Buffer, headers: Record<string, string>) {
  const answer = await request(url, { method: 'POST', headers, body });
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    headers: answer.headers,
    said: text === '' ? null : JSON.parse(text),
  };
}

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

describe('Azure Monitor', () => {
  const grant = {
    grant_type: 'client_credentials',
    client_id: azure.clientId,
    client_secret: azure.clientSecret,
    scope: 'https://monitor.azure.com//.default',
  };
  const askToken = (service: AzureMonitor, more: object = {}, tenant: string = azure.tenant) =>
    post(
      `${service.url}/${tenant}/oauth2/v2.0/token`,
      new URLSearchParams({ ...grant, ...more }).toString(),
      form,
    );
  const path = `/dataCollectionRules/${azure.rule}/streams/${azure.stream}`;

  async function send(service: AzureMonitor, body: string | Buffer, more: object = {}) {
    const { said } = await askToken(service);
    const headers = { ...json, authorization: `Bearer ${said.access_token}`, ...more };
    return await post(`${service.url}${path}?api-version=2023-01-01`, body, headers);
  }

  test('gives a token for the secret and for the machine’s identity', async () => {
    const service = await startAzureMonitor();
    const metadata = `${service.url}/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://monitor.azure.com`;

    const bySecret = await askToken(service);
    const byIdentity = await request(metadata, { headers: { metadata: 'true' } });
    const withoutHeader = await request(metadata);

    expect(bySecret.said).toMatchObject({ token_type: 'Bearer', expires_in: 3599 });
    expect(await byIdentity.body.json()).toMatchObject({ expires_in: '3599' });
    expect([byIdentity.statusCode, withoutHeader.statusCode]).toEqual([200, 400]);
    expect(service.tokens).toBe(2);
  });

  test.each([
    [{ client_secret: 'wrong' }, 401, 'invalid_client'],
    [{ client_id: 'nobody' }, 400, 'unauthorized_client'],
    [{ scope: 'https://graph.microsoft.com/.default' }, 400, 'invalid_scope'],
    [{ grant_type: 'password' }, 400, 'unsupported_grant_type'],
  ])('gives no token for %j', async (more, status, error) => {
    const service = await startAzureMonitor();

    expect(await askToken(service, more)).toMatchObject({ status, said: { error } });
    expect(await askToken(service, {}, 'elsewhere')).toMatchObject({ status: 400 });
  });

  test('returns its rule to a reader with a token of the manager, which is not valid for events', async () => {
    const service = await startAzureMonitor({ isReader: true, columns: { Uid: 'string' } });
    const search = `${service.url}/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01`;
    const query = `resources | where type =~ 'microsoft.insights/datacollectionrules' and properties.immutableId =~ '${azure.rule}' | project id`;
    const [manager, monitor] = await Promise.all(
      [{ scope: 'https://management.azure.com/.default' }, {}].map(async (more) => ({
        ...json,
        authorization: `Bearer ${(await askToken(service, more)).said.access_token}`,
      })),
    );

    const found = await post(search, JSON.stringify({ query }), manager ?? json);
    const rule = await request(`${service.url}${found.said.data[0].id}?api-version=2023-03-11`, {
      headers: manager ?? json,
    });

    expect(await rule.body.json()).toMatchObject({
      properties: {
        immutableId: azure.rule,
        streamDeclarations: { [azure.stream]: { columns: [{ name: 'Uid', type: 'string' }] } },
      },
    });
    expect((await post(search, JSON.stringify({ query }), monitor ?? json)).status).toBe(401);
    const events = `${service.url}${path}?api-version=2023-01-01`;
    expect((await post(events, '[]', manager ?? json)).status).toBe(401);
  });

  test('accepts rows, and drops undeclared columns and values over 64 KB', async () => {
    const columns = {
      TimeGenerated: 'datetime',
      Uid: 'string',
      Port: 'int',
      Raw: 'dynamic',
    } as const;
    const service = await startAzureMonitor({ columns });
    const TimeGenerated = '2026-03-04T05:06:07.089Z';
    const rows = [
      { TimeGenerated, Uid: 'a', Port: 'http', Raw: { b: 1 }, Other: 'x' },
      { TimeGenerated: 'soon', Uid: 'é'.repeat(40_000), Port: 443 },
    ];

    const answer = await send(service, gzipSync(JSON.stringify(rows)), {
      'content-encoding': 'gzip',
    });

    expect([answer.status, answer.said]).toEqual([204, null]);
    expect(service.rows).toEqual([
      { TimeGenerated, Uid: 'a', Port: null, Raw: { b: 1 } },
      { TimeGenerated: null, Uid: 'é'.repeat(32_768), Port: 443 },
    ]);
    expect(service.silent).toEqual(['column Other is not declared', 'column Uid is cut']);
  });

  test('answers 204 to a body that is no array, and stores nothing', async () => {
    const service = await startAzureMonitor();

    const { status } = await send(service, '{"Uid":"a"}');

    expect([status, service.rows, service.silent]).toEqual([204, [], ['the body is no array']]);
  });

  test('refuses a call above 1 MB uncompressed, however small it is on the wire', async () => {
    const service = await startAzureMonitor();
    const body = JSON.stringify([{ Text: 'x'.repeat(1_000_000) }]);

    const answer = await send(service, gzipSync(body), { 'content-encoding': 'gzip' });

    expect(answer).toMatchObject({
      status: 413,
      said: { error: { code: 'ContentLengthLimitExceeded' } },
    });
  });

  test('refuses without a token, with one that has ended, another rule or stream, and no JSON', async () => {
    const service = await startAzureMonitor();
    const { said } = await askToken(service);
    const ask = async (to: string, body = '[]') => {
      const headers = { ...json, authorization: `Bearer ${said.access_token}` };
      return (await post(`${service.url}${to}?api-version=2023-01-01`, body, headers)).status;
    };

    const statuses = [
      await ask(path, 'no json'),
      await ask('/dataCollectionRules/dcr-0/streams/Custom-Sluice'),
      await ask(`/dataCollectionRules/${azure.rule}/streams/Custom-Other`),
    ];
    service.endTokens();

    expect(statuses).toEqual([400, 404, 400]);
    expect(await ask(path)).toBe(401);
    expect((await post(`${service.url}${path}`, '[]', json)).status).toBe(400);
  });

  test('is forbidden until the role is effective, and requests a wait', async () => {
    const service = await startAzureMonitor({ callsBeforeRole: 1 });
    service.throttle(1, 30);

    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await send(service, '[{"Uid":"a"}]'));

    expect(answers.map(({ status }) => status)).toEqual([403, 429, 204]);
    expect(answers[1]?.headers['retry-after']).toBe('30');
  });
});

describe('Google SecOps', () => {
  const now = () => Math.floor(Date.now() / 1000);

  function assertion(
    service: SecOps,
    claims: object = {},
    key = service.serviceAccount.private_key,
  ) {
    const { client_email, token_uri } = service.serviceAccount;
    const scope = 'https://www.googleapis.com/auth/cloud-platform';
    const usual = { iss: client_email, aud: token_uri, scope, iat: now(), exp: now() + 3600 };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const signed = `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ ...usual, ...claims })}`;
    const signature = sign('RSA-SHA256', Buffer.from(signed), createPrivateKey(key ?? ''));
    return `${signed}.${signature.toString('base64url')}`;
  }

  async function askToken(service: SecOps, jwt = assertion(service)) {
    const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
    const body = new URLSearchParams({ grant_type, assertion: jwt }).toString();
    return await post(`${service.url}/token`, body, form);
  }

  async function importUdm(service: SecOps, events: readonly object[], instance?: string) {
    const { said } = await askToken(service);
    const headers = { ...json, authorization: `Bearer ${said.access_token}` };
    const url = `${service.url}/v1/${instance ?? service.instance}/events:import`;
    const body = { inline_source: { events: events.map((udm) => ({ udm })) } };
    return await post(url, JSON.stringify(body), headers);
  }

  const metadata = {
    event_timestamp: '2026-03-04T05:06:07.089Z',
    event_type: 'GENERIC_EVENT',
    product_log_id: 'u1',
  };

  test('gives a token for an assertion that the account’s key has signed', async () => {
    const service = await startSecOps();

    const answer = await askToken(service);

    expect(answer).toMatchObject({ status: 200, said: { token_type: 'Bearer', expires_in: 3599 } });
  });

  test('gives none for another key, account, audience, scope or time', async () => {
    const service = await startSecOps();
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const wrong = [
      assertion(service, {}, privateKey),
      assertion(service, { iss: 'other@acme.iam.gserviceaccount.com' }),
      assertion(service, { aud: 'https://elsewhere.example/token' }),
      assertion(service, { scope: 'email' }),
      assertion(service, { iat: now() - 7200, exp: now() - 3600 }),
      assertion(service, { exp: now() + 7200 }),
      'nonsense',
    ];

    const answers = await Promise.all(wrong.map((jwt) => askToken(service, jwt)));

    expect(answers.map(({ status }) => status)).toEqual(wrong.map(() => 400));
    expect(service.tokens).toBe(0);
  });

  test('takes UDM events in either spelling', async () => {
    const service = await startSecOps();
    const principal = { user: { userid: 'anna' }, ip: ['203.0.113.7'] };

    const answer = await importUdm(service, [{ metadata, principal }]);

    expect(answer).toMatchObject({ status: 200, said: {} });
    expect(service.events).toMatchObject([{ metadata: { productLogId: 'u1' }, principal }]);
  });

  test.each([
    ['without a time', { metadata: { event_type: 'GENERIC_EVENT' } }],
    ['of a type there is not', { metadata: { ...metadata, event_type: 'POLICY_CHANGE' } }],
    ['with a name there is not', { metadata: { ...metadata, uid: 'u1' } }],
    ['with one address for a list', { metadata, principal: { ip: '203.0.113.7' } }],
    ['of a type that wants more', { metadata: { ...metadata, event_type: 'USER_LOGIN' } }],
    ['with a severity there is not', { metadata, security_result: [{ severity: 'FATAL' }] }],
  ])('refuses a request with an event %s, the others too', async (_, event) => {
    const service = await startSecOps();

    const answer = await importUdm(service, [{ metadata }, event]);

    expect(answer).toMatchObject({ status: 400, said: { error: { status: 'INVALID_ARGUMENT' } } });
    expect(service.events).toEqual([]);
  });

  test('rejects oversize, another instance, a missing right and a missing token', async () => {
    const service = await startSecOps({ requestBytesMax: 1000, tooLarge: 413 });
    const large = { metadata: { ...metadata, description: 'x'.repeat(1000) } };

    const statuses = [
      (await importUdm(service, [large])).status,
      (await importUdm(service, [], 'projects/p/locations/eu/instances/i')).status,
    ];
    service.permit(false);
    statuses.push((await importUdm(service, [])).status);
    statuses.push(
      (await post(`${service.url}/v1/${service.instance}/events:import`, '{}', json)).status,
    );

    expect(statuses).toEqual([413, 403, 403, 401]);
  });

  test('takes raw logs, base64', async () => {
    const service = await startSecOps();
    const { said } = await askToken(service);
    const log = {
      data: Buffer.from('a line').toString('base64'),
      log_entry_time: '2026-03-04T05:06:07Z',
    };

    const answer = await post(
      `${service.url}/v1alpha/${service.instance}/logTypes/OCSF/logs:import`,
      JSON.stringify({ inline_source: { logs: [log], forwarder: 'f' } }),
      { ...json, authorization: `Bearer ${said.access_token}` },
    );

    expect(answer.status).toBe(200);
    expect(service.logs).toMatchObject([{ logType: 'OCSF', data: 'a line' }]);
  });
});

describe('Datadog', () => {
  const send = (intake: DatadogIntake, body: string, headers: Record<string, string> = {}) =>
    post(`${intake.url}/api/v2/logs`, body, { ...json, 'dd-api-key': datadogKey, ...headers });

  test('accepts logs, cuts one above 1 MB and stamps an old one again, all with 202', async () => {
    const intake = await startDatadogIntake();
    const date = Date.now() - 60_000;
    const logs = [
      { message: 'a', date },
      { message: 'x'.repeat(1_000_001), date },
      { message: 'b', date: date - 18 * 3600 * 1000 },
    ];

    const { status } = await send(intake, JSON.stringify(logs));

    expect(status).toBe(202);
    expect(intake.logs.map(({ isCut, time }) => [isCut, time])).toEqual([
      [false, date],
      [true, null],
      [false, null],
    ]);
  });

  test('rejects a missing key, another key, oversize, too many logs and bodies that are no logs', async () => {
    const intake = await startDatadogIntake();
    const large = JSON.stringify([{ message: 'x'.repeat(5_000_000) }]);
    const many = JSON.stringify(Array.from({ length: 1001 }, () => ({ message: 'a' })));

    const answers = [
      await post(`${intake.url}/api/v2/logs`, '[]', json),
      await send(intake, '[]', { 'dd-api-key': 'other' }),
      await send(intake, large),
      await send(intake, many),
      await send(intake, '[1]'),
      await send(intake, '{'),
    ];

    expect(answers.map(({ status }) => status)).toEqual([401, 403, 413, 413, 400, 400]);
    expect(intake.logs).toEqual([]);
  });
});
