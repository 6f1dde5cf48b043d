// The google_secops sink against the scripted instance, with its tokens, its bounds and its model.

import { describe, expect, test, vi } from 'vitest';
import { googleSecOpsSink } from '../../../connectors/sinks/google-secops.ts';
import { Secret } from '../../../src/contracts/secret.ts';
import { systemClock } from '../../../src/tools/clock.ts';
import { anEvent } from '../../support/an-event.ts';
import { type SecOps, type SecOpsOptions, startSecOps } from '../../support/google-secops.ts';
import type { HttpAnswer } from '../../support/http-receiver.ts';
import {
  type OpeningWishes,
  openSink,
  parseSettings,
  someEvents,
  testTools,
} from '../../support/sink-opening.ts';
import { afterThisTest } from '../../support/temp.ts';

const never = new AbortController().signal;
const settingsFor = ({ url, instance, serviceAccount }: SecOps) => {
  const [, project, , location, , id] = instance.split('/');
  const credentials = JSON.stringify(serviceAccount);
  return { url, project, location, instance: id, credentials };
};

async function opened(
  options: SecOpsOptions = {},
  config: object = {},
  wishes: OpeningWishes = {},
) {
  const service = await startSecOps(options);
  const settings = { ...settingsFor(service), ...config };
  const { sink, batch, format } = await openSink(googleSecOpsSink, settings, wishes);
  const send = (events = someEvents(2)) => sink.send(batch(events), never);
  const imports = () => service.requests.filter(({ path }) => path.endsWith(':import'));
  return { service, send, format, imports };
}

describe('google_secops', () => {
  test('sends UDM events, with the uid and the whole event, for one token', async () => {
    const { service, send } = await opened();
    const event = anEvent();

    expect(await send([event])).toEqual({ outcome: 'delivered' });
    expect(await send()).toEqual({ outcome: 'delivered' });

    expect(service.tokens).toBe(1);
    expect(service.events[0]).toEqual({
      metadata: {
        eventTimestamp: '2026-03-04T05:06:07.089Z',
        eventType: 'USER_RESOURCE_UPDATE_CONTENT',
        vendorName: 'sluice',
        productName: 'sluice',
        productLogId: event.uid,
        productEventType: 'policy.update',
        description:
          'API Activity: policy.update by Anna Schmidt from 203.0.113.7 on Default policy, Success - Policy updated',
      },
      principal: {
        user: {
          userid: 'usr-17',
          userDisplayName: 'Anna Schmidt',
          emailAddresses: ['anna.schmidt@example.com'],
        },
        ip: ['203.0.113.7'],
      },
      target: {
        resource: { name: 'Default policy', productObjectId: 'pol-9', resourceSubtype: 'policy' },
      },
      securityResult: [{ severity: 'INFORMATIONAL', summary: 'Success' }],
      additional: {
        class_name: 'API Activity',
        activity_name: 'Update',
        status: 'Success',
        target_type: 'policy',
        target_uid: 'pol-9',
        target_name: 'Default policy',
        actor_kind: 'user',
        ocsf: JSON.parse(JSON.stringify(event.ocsf)),
      },
    });
  });

  test('sends an event of which it knows little as one that is always taken', async () => {
    const { service, send } = await opened();
    const bare = { actor: {}, resources: [], src_endpoint: {} };

    await send([
      anEvent({ ocsf: bare }),
      anEvent({ ocsf: { ...bare, class_uid: 4001, severity_id: 99, time: 8.64e15 } }),
    ]);

    const [, other] = service.events;
    expect(service.events.map(({ metadata }) => metadata.eventType)).toEqual([
      'GENERIC_EVENT',
      'GENERIC_EVENT',
    ]);
    expect(other?.metadata.eventTimestamp).toBe('2026-03-04T05:06:37.000Z');
  });

  test('sends raw logs of a log type, as the format writes them', async () => {
    const { service, send, format } = await opened({}, { log_type: 'OCSF' }, { format: 'cef' });
    const event = anEvent();

    expect(await send([event])).toEqual({ outcome: 'delivered' });

    expect(service.logs).toEqual([
      { logType: 'OCSF', data: format.encode(event), logEntryTime: '2026-03-04T05:06:07.089Z' },
    ]);
  });

  test.each([400, 413] as const)(
    'learns from a %d how much is taken at a time',
    async (tooLarge) => {
      const { service, send, imports } = await opened({ requestBytesMax: 10_000, tooLarge });

      expect(await send(someEvents(32))).toEqual({ outcome: 'delivered' });
      const before = imports().length;
      expect(await send(someEvents(32, 32))).toEqual({ outcome: 'delivered' });

      expect(service.events).toHaveLength(64);
      const later = imports().slice(before);
      expect(later.every(({ body }) => body.length <= 10_000)).toBe(true);
    },
  );

  test('refuses the event that is too large by itself, and the one that is invalid', async () => {
    const { service, send } = await opened({
      requestBytesMax: 10_000,
      refuses: (body) => body.includes('not this'),
    });
    const large = anEvent({ offset: 3, ocsf: { message: 'x'.repeat(10_000) } });
    const invalid = anEvent({ offset: 5, ocsf: { message: 'not this' } });
    const events = someEvents(8).map((event, i) => (i === 3 ? large : i === 5 ? invalid : event));

    const answer = await send(events);

    expect(answer).toMatchObject({
      outcome: 'partly',
      refused: [{ uid: large.uid }, { uid: invalid.uid }],
      again: [],
    });
    expect(service.events).toHaveLength(6);
  });

  test('keeps its token although the clock jumps', async () => {
    let offsetMs = 0;
    const clock = { ...systemClock(), now: () => Date.now() + offsetMs };
    const { service, send } = await opened({}, {}, { tools: testTools(clock) });
    await send();
    offsetMs = 7_200_000;

    expect(await send()).toEqual({ outcome: 'delivered' });
    expect(service.tokens).toBe(1);
  });

  test('requests another token after one has expired, and never prints it', async () => {
    const { service, send } = await opened();
    await send();
    service.endTokens();

    const answer = await send();

    expect(answer).toMatchObject({ outcome: 'retry' });
    expect(JSON.stringify(answer)).not.toContain('ya29');
    expect(await send()).toEqual({ outcome: 'delivered' });
  });

  test('names the missing right, and resumes once it is granted', async () => {
    const { service, send } = await opened();
    service.permit(false);

    expect(await send()).toMatchObject({
      scope: 'sink',
      cause: { next: expect.stringContaining('chronicle.events.import') },
    });
    service.permit(true);
    expect(await send()).toEqual({ outcome: 'delivered' });
  });

  test.each<[string, HttpAnswer, object]>([
    ['HTML for none', { answer: 'reply', status: 200, body: '<html></html>' }, { scope: 'sink' }],
    ['half of one for none', { answer: 'reply', status: 200, body: '{"a' }, { scope: 'sink' }],
    [
      '400 of a proxy for the sink',
      { answer: 'reply', status: 400, body: 'no' },
      { scope: 'sink' },
    ],
    ['404 for the sink', { answer: 'reply', status: 404, body: '{}' }, { scope: 'sink' }],
    ['429 for later', { answer: 'reply', status: 429, body: '{}' }, { outcome: 'retry' }],
    ['503 for later', { answer: 'reply', status: 503 }, { outcome: 'retry' }],
    ['a cut one for later', { answer: 'cut' }, { outcome: 'retry' }],
  ])('takes an answer of %s', async (_what, answer, meaning) => {
    const { service, send } = await opened();
    service.interfere(({ path }, pass) => (path === '/token' ? pass() : answer));

    expect(await send()).toMatchObject(meaning);
  });

  test.each(['not json', '{}', '{"client_email":"a","private_key":"sEcReT"}'])(
    'stops at invalid credentials, and does not print them: %s',
    async (credentials) => {
      const { send } = await opened({}, { credentials });

      const answer = await send();

      expect(answer).toMatchObject({ scope: 'sink', cause: { code: 'sink_refused' } });
      expect(JSON.stringify(answer)).not.toContain('sEcReT');
    },
  );

  test('runs the command of its credentials before each token request, and not for each batch', async () => {
    const refresh = vi.spyOn(Secret.prototype, 'refresh');
    afterThisTest(() => refresh.mockRestore());
    const { send } = await opened();

    await send();
    await send();

    expect(refresh).toHaveBeenCalledTimes(1);
  });

  test('stops if the token endpoint does not accept the key', async () => {
    const one = await startSecOps();
    const other = await startSecOps();
    const key = { ...one.serviceAccount, private_key: other.serviceAccount.private_key };
    const { send } = await opened({}, { ...settingsFor(one), credentials: JSON.stringify(key) });

    expect(await send()).toMatchObject({
      scope: 'sink',
      cause: { message: expect.stringContaining('Invalid JWT Signature') },
    });
  });

  test('is tried out without an event', async () => {
    const service = await startSecOps();
    const probe = () =>
      googleSecOpsSink.probe(
        parseSettings(googleSecOpsSink, settingsFor(service)),
        testTools(),
        never,
      );

    await probe();
    service.permit(false);
    await expect(probe()).rejects.toMatchObject({ code: 'sink_refused' });
    expect(service.events).toEqual([]);
  });
});
