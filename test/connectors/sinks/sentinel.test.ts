// The sentinel sink against the scripted Azure Monitor: nothing arrives cut or without a column, no response leads to
// loss, and the token is requested only as often as needed.

import { expect, test } from 'vitest';
import { columnBytesMax, columns } from '../../../connectors/sinks/sentinel/rows.ts';
import { cloudOf } from '../../../connectors/sinks/sentinel/token.ts';
import { sentinelSink } from '../../../connectors/sinks/sentinel.ts';
import { deliver } from '../../contracts/deliver.ts';
import { sentinelConfig } from '../../contracts/receivers/sentinel.ts';
import { anEvent } from '../../support/an-event.ts';
import { type AzureOptions, azure, startAzureMonitor } from '../../support/azure-monitor.ts';
import type { HttpAnswer } from '../../support/http-receiver.ts';
import { openSink, parseSettings, someEvents, testTools } from '../../support/sink-opening.ts';

const never = new AbortController().signal;

async function withAzure(options: AzureOptions = {}, config: object = {}) {
  const service = await startAzureMonitor({ columns, ...options });
  const settings = { ...sentinelConfig(service.url), ...config };
  const opened = await openSink(sentinelSink, settings);
  const send = (events = someEvents(3)) => opened.sink.send(opened.batch(events), never);
  return { service, settings, opened, send };
}

test('a row has every column that the rule declares, and the event whole', async () => {
  const { service, opened } = await withAzure();
  const event = anEvent({ ocsf: { message: 'é 日本 🛡 "]\\', src_endpoint: { ip: '192.0.2.7' } } });

  await deliver(opened, [event, ...someEvents(2000, 1)], 1000);

  expect(service.silent).toEqual([]);
  expect(service.rows).toHaveLength(2001);
  expect(service.tokens).toBe(1);
  const [row] = service.rows;
  expect(row).toMatchObject({
    TimeGenerated: new Date(event.ocsf.time).toISOString(),
    EventUid: event.uid,
    EventMessage: expect.stringMatching(/ by Anna Schmidt from 192\.0\.2\.7 .* - é 日本 🛡 "\]\\$/),
    ActorUsername: 'Anna Schmidt',
    SrcIpAddr: '192.0.2.7',
    Stream: event.stream,
    Part: 1,
    Parts: 1,
  });
  expect(row?.Event).toEqual(JSON.parse(JSON.stringify(event.ocsf)));
});

const longText = `${'"🛡\\ x'.repeat(20_000)} end`;

test('an event with a column over 64 KB becomes a dead letter, and those beside it arrive', async () => {
  const { service, opened } = await withAzure();
  const events = [...someEvents(4), anEvent({ offset: 4, ocsf: { message: longText } })];

  const { refused } = await deliver(opened, events, 5);

  expect(refused).toEqual([
    {
      uid: events[4]?.uid,
      reason: expect.stringMatching(/^column Event\w* has more than 64 KB/),
      by: 'sink',
    },
  ]);
  expect(service.rows.map((row) => row.EventUid)).toEqual(events.slice(0, 4).map(({ uid }) => uid));
  expect(service.silent).toEqual([]);
});

test.each([
  ['text', longText],
  ['characters of two units', `x${'\u{1f512}'.repeat(40_000)}`],
  ['characters of two units at the other half', '\u{1f512}'.repeat(40_000)],
])('oversize: split writes %s in rows that put together are the event', async (_, message) => {
  const { service, opened } = await withAzure({}, { oversize: 'split' });
  const event = anEvent({ ocsf: { message } });

  const { refused } = await deliver(opened, [event, ...someEvents(2, 1)], 5);

  expect([refused, service.silent]).toEqual([[], []]);
  const parts = service.rows.filter((row) => row.EventUid === event.uid);
  expect(parts.length).toBeGreaterThan(1);
  expect(parts.map(({ Part, Parts }) => [Part, Parts])).toEqual(
    parts.map((_, i) => [i + 1, parts.length]),
  );
  for (const { Event } of parts) {
    expect(Buffer.byteLength(JSON.stringify(Event))).toBeLessThanOrEqual(columnBytesMax);
    expect(String(Event).isWellFormed()).toBe(true);
  }
  expect(JSON.parse(parts.map(({ Event }) => Event).join(''))).toEqual(
    JSON.parse(JSON.stringify(event.ocsf)),
  );
});

test('an event of more than a call is a dead letter, also where it is split', async () => {
  const { service, opened } = await withAzure({}, { oversize: 'split' });
  const event = anEvent({ ocsf: { message: 'x'.repeat(1_100_000) } });

  const { refused } = await deliver(opened, [event, ...someEvents(1, 1)], 2);

  expect(refused).toEqual([
    { uid: event.uid, reason: expect.stringContaining('bound of 1 MB'), by: 'sink' },
  ]);
  expect(service.rows).toHaveLength(1);
});

test('no call is over 1 MB, however large the batch', async () => {
  const { service, opened } = await withAzure();
  const events = Array.from({ length: 100 }, (_, offset) =>
    anEvent({ offset, ocsf: { message: 'm'.repeat(30_000) } }),
  );

  const { refused } = await deliver(opened, events, 100);

  expect(refused).toEqual([]);
  expect(service.rows.map((row) => row.EventUid)).toEqual(events.map(({ uid }) => uid));
  expect(service.requests.filter(({ body }) => body.length > 1_000_000)).toEqual([]);
});

test('a token is renewed before it expires, and requested again if it is rejected', async () => {
  const { service, send } = await withAzure();

  await send();
  service.endTokens();
  const refused = await send();
  const after = await send();

  expect(refused).toMatchObject({ outcome: 'retry', cause: { details: { status: 401 } } });
  expect(after).toEqual({ outcome: 'delivered' });
  expect(service.tokens).toBe(2);
});

test('a managed identity requests its token from the metadata service, with the resource of its cloud', async () => {
  const service = await startAzureMonitor();
  const url = `${service.url}/metadata/identity/oauth2/token`;
  const given = (client_id?: string) => ({
    managed_identity: { url, ...(client_id && { client_id }) },
  });
  const config = { ...sentinelConfig(service.url), authority: undefined };

  for (const auth of [given(), given(azure.identity)]) {
    const opened = await openSink(sentinelSink, { ...config, auth });
    const { refused } = await deliver(opened, someEvents(2), 2);
    expect(refused).toEqual([]);
  }
  const opened = await openSink(sentinelSink, { ...config, auth: given('another') });
  const answer = await opened.sink.send(opened.batch(someEvents(1)), never);

  expect(answer).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining('Identity not found') },
  });
});

test.each([
  ['https://login.microsoftonline.com', 'monitor.azure.com', 'management.azure.com'],
  ['https://login.microsoftonline.us', 'monitor.azure.us', 'management.usgovcloudapi.net'],
  ['https://login.chinacloudapi.cn', 'monitor.azure.cn', 'management.chinacloudapi.cn'],
])('authority %s gives tokens for %s and %s', (authority, monitor, manager) => {
  expect(cloudOf(authority)).toEqual({
    monitor: { resource: `https://${monitor}`, scope: `https://${monitor}//.default` },
    manager: { resource: `https://${manager}`, scope: `https://${manager}/.default` },
  });
});

test('a role that is not effective yet is waited for, and reported', async () => {
  const { service, send } = await withAzure({ callsBeforeRole: 2 });

  const answers = [await send(), await send(), await send()];

  expect(answers.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'delivered']);
  expect(answers[0]).toMatchObject({
    cause: { next: expect.stringContaining('Monitoring Metrics Publisher') },
  });
  expect(service.tokens).toBe(1);
});

test('429 waits as long as Azure says', async () => {
  const { service, send } = await withAzure();
  service.throttle(1, 7);

  expect(await send()).toMatchObject({ outcome: 'retry', afterMs: 7000 });
});

test.each([
  [{ auth: { client_secret: 'wrong-secret-value' } }, 'Invalid client secret', 'retry'],
  [{ auth: { client_id: 'nobody' } }, 'not found', 'retry'],
  [{ auth: { tenant_id: 'elsewhere' } }, 'AADSTS90002', 'retry'],
  [{ dcr_immutable_id: `dcr-${'0'.repeat(32)}` }, 'dcr_immutable_id', 'refused'],
  [{ stream_name: 'Custom-Other' }, 'stream_name', 'refused'],
])(
  '%j makes no dead letters, and names the setting to correct',
  async (wrong, reported, outcome) => {
    const service = await startAzureMonitor();
    const right = sentinelConfig(service.url);
    const auth = { ...right.auth, ...('auth' in wrong && wrong.auth) };
    const config = { ...right, ...wrong, auth };
    const opened = await openSink(sentinelSink, config);

    const answer = await opened.sink.send(opened.batch(someEvents(2)), never);

    expect(answer).toMatchObject({ outcome, cause: { code: 'sink_refused' } });
    if (answer.outcome === 'refused') expect(answer.scope).toBe('sink');
    if (answer.outcome !== 'refused' && answer.outcome !== 'retry') throw new Error('it was taken');
    expect(`${answer.cause.message} ${answer.cause.next}`).toContain(reported);
    expect(`${answer.cause.message} ${answer.cause.next}`).not.toContain(auth.client_secret);
    const probing = sentinelSink.probe(parseSettings(sentinelSink, config), testTools(), never);
    await expect(probing).rejects.toMatchObject({ code: 'sink_refused' });
  },
);

const page: HttpAnswer = {
  answer: 'reply',
  status: 200,
  headers: { 'content-type': 'text/html' },
  body: '<html><title>Sign in</title>',
};

test.each([
  [page, 'refused'],
  [{ answer: 'reply', status: 200, body: '' }, 'refused'],
  [{ answer: 'reply', status: 302, headers: { location: '/login' } }, 'refused'],
  [{ answer: 'cut' }, 'retry'],
  [{ answer: 'reset' }, 'retry'],
  [{ answer: 'reply', status: 503 }, 'retry'],
] satisfies [HttpAnswer, string][])('%j is no delivery', async (how, outcome) => {
  const { service, send } = await withAzure();
  service.interfere(({ path }, pass) => (path.startsWith('/dataCollection') ? how : pass()));

  expect(await send()).toMatchObject({ outcome });
  expect(service.rows).toEqual([]);
});

test.each([
  [page],
  [{ answer: 'reply', status: 200, body: '{"access_token":"a\\nb","expires_in":9}' }],
] satisfies [HttpAnswer][])('%j gives no token', async (how) => {
  const { service, send } = await withAzure();
  service.interfere(() => how);

  expect(await send()).toMatchObject({
    outcome: 'retry',
    cause: { message: expect.stringContaining('without a token') },
  });
});

test('probe passes where the identity may write, and leaves no row', async () => {
  const { service, settings } = await withAzure();

  await sentinelSink.probe(parseSettings(sentinelSink, settings), testTools(), never);

  expect(service.rows).toEqual([]);
});

test('check lists the columns that the rule must declare', () => {
  const settings = parseSettings(sentinelSink, sentinelConfig('https://azure.example'));

  expect(sentinelSink.advice?.(settings).join()).toMatch(
    /TimeGenerated \(datetime\).*Event \(dynamic\)/,
  );
  expect(
    sentinelSink.flaw?.(
      parseSettings(sentinelSink, { ...sentinelConfig('https://a'), compression: 'zstd' }),
    ),
  ).toContain('gzip');
});

async function inspected(options: AzureOptions, config: object = {}) {
  const { service, settings } = await withAzure(options);
  const resource_manager = service.url;
  const parsed = parseSettings(sentinelSink, { ...settings, resource_manager, ...config });
  const look = () => sentinelSink.inspect?.(parsed, testTools(), never);
  return { service, look };
}

test('check compares its columns with those that the rule declares, where it may read it', async () => {
  const { look, service } = await inspected({ isReader: true });

  expect(await look()).toEqual({
    summary: `${azure.rule} declares all 18 columns of ${azure.stream}`,
    isSeen: true,
  });
  expect(service.tokens).toBe(1);
});

test('check fails for columns that the rule does not declare or keeps as something else', async () => {
  const { Event: _, ...others } = columns;
  const { look } = await inspected({
    isReader: true,
    columns: { ...others, Parts: 'long', Part: 'boolean', EventUid: 'dynamic' },
  });

  await expect(look()).rejects.toMatchObject({
    code: 'sink_refused',
    message: `the data collection rule ${azure.rule} drops fields that ${azure.stream} does not declare: Part (int, and not boolean), Event (dynamic)`,
    next: expect.stringContaining('streamDeclarations'),
  });
});

test('check fails for a stream that the rule does not declare', async () => {
  const { look } = await inspected({ isReader: true }, { stream_name: 'Custom-Other' });

  await expect(look()).rejects.toThrow('does not declare the stream Custom-Other');
});

const other = '{"properties":{"immutableId":"dcr-other"}}';

test.each<[string, AzureOptions, ((path: string) => HttpAnswer | null)?]>([
  ['may read no such rule', {}],
  [
    'answered 403: it may not',
    { isReader: true },
    (path) => {
      const error = { code: 'AuthorizationFailed', message: 'it may not' };
      const refusal = { answer: 'reply', status: 403, body: JSON.stringify({ error }) } as const;
      return path.startsWith('/subscriptions/') ? refusal : null;
    },
  ],
  ['no JSON object', { isReader: true }, (path) => (path.startsWith('/providers/') ? page : null)],
  ['no JSON object', { isReader: true }, (path) => (path.startsWith('/subscr') ? page : null)],
  [
    'not this rule',
    { isReader: true },
    (path) => (path.startsWith('/subscr') ? { answer: 'reply', status: 200, body: other } : null),
  ],
  ['without a token', { isReader: true }, (path) => (path.includes('/token') ? page : null)],
  ['', { isReader: true }, () => ({ answer: 'cut' })],
])('check says that the rule could not be seen: %s', async (why, options, how) => {
  const { service, look } = await inspected(options);
  service.interfere(({ path }, pass) => how?.(path) ?? pass());

  const seen = await look();

  expect(seen).toMatchObject({ isSeen: false, summary: expect.stringContaining(why) });
  expect(seen?.summary).toMatch(/could not be seen/);
});

test.each([
  ['managed_identity', null],
  [{ managed_identity: {} }, null],
  [{ tenant_id: 't', client_id: 'c', client_secret: 's' }, null],
  [{ tenant_id: 't', client_id: 'c' }, 'auth needs'],
  [{ managed_identity: {}, client_secret: 's' }, 'auth needs'],
  [{}, 'auth needs'],
])('auth %j is judged', (auth, flaw) => {
  const config = { ...sentinelConfig('https://azure.example'), auth };

  const judged = sentinelSink.flaw?.(parseSettings(sentinelSink, config));

  if (flaw === null) expect(judged).toBeNull();
  else expect(judged).toContain(flaw);
});
