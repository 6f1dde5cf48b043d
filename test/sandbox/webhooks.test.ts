// Webhooks as the sandbox sends them, at a real receiver: registered, signed, tried again, and gone
// wrong in each way that a fault script knows.
import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { describe, expect, it } from 'vitest';
import type { Sandbox, SandboxFault, SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { makeCa } from '../support/certificates.ts';
import { AUDIT, stillSandbox, tokenFor } from './client.ts';

const WEBHOOKS = '/v1/webhooks';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly atMs: number;
}

interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly received: readonly Received[];
}

/** A receiver that answers each delivery with the status that `answer` gives. */
async function receiver(
  answer: (at: number) => number | { status: number; retryAfter: string } = () => 204,
  tls?: { readonly cert: string; readonly key: string },
): Promise<Receiver> {
  const received: Received[] = [];
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { headers } = request;
      received.push({ headers, body: Buffer.concat(chunks).toString(), atMs: performance.now() });
      const given = answer(received.length - 1);
      const { status, retryAfter } =
        typeof given === 'number' ? { status: given, retryAfter: null } : given;
      response.writeHead(status, retryAfter === null ? {} : { 'retry-after': retryAfter }).end();
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}/hook`,
    received,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function register(
  sandbox: Sandbox,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; body: Record<string, unknown> }> {
  const authorization = `Bearer ${await tokenFor(sandbox, WEBHOOKS)}`;
  const response = await fetch(sandbox.url + WEBHOOKS, {
    method: 'POST',
    body: typeof body === 'string' ? body : JSON.stringify(body),
    headers: { authorization, 'content-type': 'application/json', ...headers },
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A sandbox that delivers every event to `target`, with a fault at the first. */
async function sandboxFor(target: Receiver, fault?: SandboxFault, options: SandboxOptions = {}) {
  const rules = fault === undefined ? [] : [{ path: '/webhooks/**', times: 1, fault }];
  const sandbox = await stillSandbox({ faults: { rules }, webhooks: { retryMs: 20 }, ...options });
  expect((await register(sandbox, { url: target.url, events: ['*'] })).status).toBe(201);
  return sandbox;
}

function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

describe('registration', () => {
  it('answers 201 with the target; a second one without a key is a second target', async () => {
    await using target = await receiver();
    await using sandbox = await stillSandbox();
    const requested = { url: target.url, events: ['incident.created'] };

    const [one, two] = [await register(sandbox, requested), await register(sandbox, requested)];

    expect(one).toMatchObject({ status: 201, body: { ...requested, status: 'active' } });
    expect(two.body.id).not.toBe(one.body.id);
  });

  it('under one Idempotency-Key is the same, and refused with another body', async () => {
    await using target = await receiver();
    await using sandbox = await stillSandbox();
    const requested = { url: target.url, events: ['*'] };
    const key = { 'idempotency-key': 'once' };

    const one = await register(sandbox, requested, key);
    const again = await register(sandbox, requested, key);
    const other = await register(sandbox, { ...requested, events: ['site.*'] }, key);
    sandbox.control.grow(AUDIT, 5);
    await expect.poll(() => target.received.length).toBe(5);

    expect(again).toEqual(one);
    expect(other).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
    expect(sandbox.ledger().deliveries()).toHaveLength(5);
  });

  it.each([
    ['{', 400, undefined],
    [{ events: ['*'] }, 422, 'url'],
    [{ url: 'ftp://127.0.0.1/x', events: ['*'] }, 422, 'url'],
    [{ url: 'http://127.0.0.1/x' }, 422, 'events'],
    [{ url: 'http://127.0.0.1/x', events: [] }, 422, 'events'],
    [{ url: 'http://127.0.0.1/x', events: [7] }, 422, 'events'],
  ])('of %j is refused with %i', async (body, status, field) => {
    await using sandbox = await stillSandbox();

    const reply = await register(sandbox, body);

    expect(reply.status).toBe(status);
    expect(Object(reply.body.error).field).toBe(field);
  });

  it('needs the scope, and POST', async () => {
    await using sandbox = await stillSandbox({ credentials: { unifiedScope: 'events:read' } });

    const { status } = await register(sandbox, { url: 'http://127.0.0.1/x', events: ['*'] });
    const got = await fetch(sandbox.url + WEBHOOKS, {
      headers: { authorization: `Bearer ${await tokenFor(sandbox, WEBHOOKS)}` },
    });

    expect([status, got.status, got.headers.get('allow')]).toEqual([403, 405, 'POST']);
  });
});

describe('deliveries', () => {
  it('report each requested audit event, signed over the body', async () => {
    await using target = await receiver();
    await using sandbox = await stillSandbox();
    await register(sandbox, { url: target.url, events: ['session.login', 'agent.*'] });

    sandbox.control.grow(AUDIT, 200);
    const requested = [...sandbox.ledger().list(AUDIT).records()].flatMap(({ index, id, text }) => {
      const { action } = JSON.parse(text);
      return index >= 40 && /^(session\.login|agent\..*)$/.test(action) ? [`${id} ${action}`] : [];
    });
    await expect.poll(() => target.received.length).toBe(requested.length);

    const reported = target.received.map(({ body, headers }) => {
      const { id, event, data } = JSON.parse(body);
      expect(headers['svc-event']).toBe(event);
      expect(headers['svc-signature']).toBe(signatureOf(body, sandbox.webhookSecret));
      expect(data).toHaveProperty('resource');
      return `${id} ${event}`;
    });
    expect(requested.length).toBeGreaterThan(20);
    expect(reported.toSorted()).toEqual(requested.toSorted());
    expect(new Set(target.received.map(({ headers }) => headers['svc-delivery'])).size).toBe(
      reported.length,
    );
    await expect
      .poll(() =>
        sandbox
          .ledger()
          .deliveries()
          .every(({ state }) => state === 'accepted'),
      )
      .toBe(true);
  });

  it('come again after growing waits, the same to the byte, until they are accepted', async () => {
    await using target = await receiver((at) => (at < 3 ? 500 : 200));
    await using sandbox = await sandboxFor(target);

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => sandbox.ledger().deliveries()[0]?.state).toBe('accepted');

    const { received } = target;
    expect(received).toHaveLength(4);
    expect(new Set(received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(received.map(({ headers }) => headers['svc-delivery'])).size).toBe(1);
    const waits = received.slice(1).map(({ atMs }, at) => atMs - (received[at]?.atMs ?? 0));
    for (const [at, leastMs] of [20, 40, 80].entries()) {
      expect(waits[at]).toBeGreaterThan(leastMs - 5);
    }
    expect(sandbox.ledger().deliveries()[0]).toMatchObject({ attempts: 4, answered: 200 });
  });

  it('wait as long as Retry-After says', async () => {
    await using target = await receiver((at) =>
      at === 0 ? { status: 503, retryAfter: '1' } : 200,
    );
    await using sandbox = await sandboxFor(target);

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(2);

    const [first, second] = target.received;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(990);
  });

  it('are signed with the secret of the moment, and over the time where one is sent', async () => {
    await using target = await receiver();
    const webhooks = { secret: 'first', timestampHeader: 'SVC-Timestamp' };
    await using sandbox = await sandboxFor(target, undefined, { webhooks });

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(1);
    sandbox.control.rotateWebhookSecret('second');
    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(2);

    const expected = target.received.map(({ body, headers }, at) =>
      signatureOf(`${headers['svc-timestamp']}.${body}`, at === 0 ? 'first' : 'second'),
    );
    expect(target.received.map(({ headers }) => headers['svc-signature'])).toEqual(expected);
    expect(sandbox.webhookSecret).toBe('second');
  });
});

it('an https target is reached where its authority is trusted, and only there', async () => {
  const { ca, server } = await makeCa();
  await using target = await receiver(undefined, server);
  await using trusting = await sandboxFor(target, undefined, { webhooks: { ca } });
  await using doubting = await sandboxFor(target, undefined, { webhooks: { retryMs: 20 } });

  trusting.control.grow(AUDIT, 1);
  doubting.control.grow(AUDIT, 1);
  await expect.poll(() => doubting.ledger().deliveries()[0]?.attempts).toBeGreaterThan(1);
  await expect.poll(() => trusting.ledger().deliveries()[0]?.state).toBe('accepted');

  expect(target.received).toHaveLength(1);
  expect(doubting.ledger().deliveries()[0]).toMatchObject({ answered: 0, state: 'waiting' });
});

describe('delivery faults', () => {
  it.each<[SandboxFault, { bodies: number; ids: number; deliveries: number }]>([
    [
      { kind: 'replayed', times: 2 },
      { bodies: 1, ids: 3, deliveries: 3 },
    ],
    [
      { kind: 'redelivered', times: 2 },
      { bodies: 1, ids: 1, deliveries: 3 },
    ],
    [
      { kind: 'storm', count: 300 },
      { bodies: 301, ids: 301, deliveries: 301 },
    ],
  ])('%j', async (fault, { bodies, ids, deliveries }) => {
    await using target = await receiver();
    await using sandbox = await sandboxFor(target, fault);

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(deliveries);

    const { received } = target;
    expect(new Set(received.map(({ body }) => body)).size).toBe(bodies);
    expect(new Set(received.map(({ headers }) => headers['svc-delivery'])).size).toBe(ids);
    for (const { body, headers } of received) {
      expect(headers['svc-signature']).toBe(signatureOf(body, sandbox.webhookSecret));
    }
    const kept = sandbox.ledger().deliveries();
    expect(kept.filter((delivery) => delivery.fault === fault.kind)).toHaveLength(deliveries - 1);
    expect(kept.every(({ genuine }) => genuine)).toBe(true);
  });

  it.each<SandboxFault>([{ kind: 'forged' }, { kind: 'unsigned' }])(
    '%j is refused once, the real one kept',
    async (fault) => {
      const secret = 'sandbox-webhook-secret';
      const genuine = ({ body, headers }: Received) =>
        headers['svc-signature'] === signatureOf(body, secret);
      await using target: Receiver = await receiver((at) => {
        const delivery = target.received[at];
        return delivery !== undefined && genuine(delivery) ? 204 : 401;
      });
      await using sandbox = await sandboxFor(target, fault);

      sandbox.control.grow(AUDIT, 1);
      await expect
        .poll(() =>
          sandbox
            .ledger()
            .deliveries()
            .map(({ state }) => state),
        )
        .toEqual(['accepted', 'given_up']);

      expect(target.received.filter(genuine)).toHaveLength(1);
      expect(target.received).toHaveLength(2);
      expect(sandbox.ledger().deliveries()[1]).toMatchObject({
        fault: fault.kind,
        genuine: false,
        answered: 401,
      });
    },
  );

  it('lost: never sent; late: sent after the time it says', async () => {
    await using target = await receiver();
    await using sandbox = await sandboxFor(target, { kind: 'lost' });

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => sandbox.ledger().deliveries()[0]?.state).toBe('lost');
    sandbox.control.setFaults({
      rules: [{ path: '/webhooks/*', times: 1, fault: { kind: 'late', by_s: 0.4 } }],
    });
    const beganMs = performance.now();
    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(1);

    expect((target.received[0]?.atMs ?? 0) - beganMs).toBeGreaterThan(390);
    expect(sandbox.control.faultCounts()).toMatchObject([{ fault: 'late', seen: 1, happened: 1 }]);
  });

  it('rules for requests leave deliveries alone, and the other way around', async () => {
    await using target = await receiver();
    await using sandbox = await sandboxFor(target);
    sandbox.control.setFaults({
      rules: [
        { path: '**', fault: 503 },
        { path: '**', fault: 'replayed' },
      ],
    });

    sandbox.control.grow(AUDIT, 1);
    await expect.poll(() => target.received.length).toBe(2);

    expect(sandbox.control.faultCounts()).toEqual([
      { path: '**', fault: 'status', seen: 0, happened: 0 },
      { path: '**', fault: 'replayed', seen: 1, happened: 1 },
    ]);
  });

  it('close ends waits and connections at once', async () => {
    await using target = await receiver(() => 500);
    const sandbox = await sandboxFor(target, undefined, { webhooks: { retryMs: 3_600_000 } });
    sandbox.control.grow(AUDIT, 3);
    await expect.poll(() => target.received.length).toBe(3);

    await sandbox.close();

    expect(
      sandbox
        .ledger()
        .deliveries()
        .map(({ state }) => state),
    ).toEqual(['waiting', 'waiting', 'waiting']);
  });
});
