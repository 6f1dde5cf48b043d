// Each fault shown to happen on the wire, and each rule setting shown to decide when.
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { FaultRule, Sandbox, SandboxFault } from '../../src/sandbox/sandbox.ts';
import {
  AUDIT,
  ask,
  LOGS,
  OBJECTS,
  POLICIES,
  page,
  stillSandbox,
  tokenFor,
  WEB,
} from './client.ts';

const TIMELINE = '/v1/mc/incidents/INC-30000/timeline';
const SITES = '/v1/sites';

async function under(path: string, fault: FaultRule['fault']): Promise<Sandbox & AsyncDisposable> {
  return stillSandbox({ faults: { rules: [{ path, fault }] } });
}

/** Reads an answer to wherever it ends; with `giveUp`, until the first bytes of its body. */
function raw(sandbox: Sandbox, path: string, token: string, giveUp?: AbortController) {
  const { promise, resolve } = Promise.withResolvers<{
    status: number;
    bytes: number;
    chunks: number;
    error: string;
  }>();
  let answered = false;
  const headers = { authorization: `Bearer ${token}` };
  const asked = request(
    `${sandbox.url}${path}`,
    { headers, ...(giveUp && { signal: giveUp.signal }) },
    (response) => {
      answered = true;
      let [bytes, chunks] = [0, 0];
      const status = response.statusCode ?? 0;
      const end = (error: string) => resolve({ status, bytes, chunks, error });
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.byteLength;
        chunks += 1;
        giveUp?.abort();
      });
      response.on('end', () => end(''));
      response.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.name));
    },
  );
  asked.on('error', (error: NodeJS.ErrnoException) => {
    if (!answered) resolve({ status: 0, bytes: 0, chunks: 0, error: error.code ?? error.name });
  });
  asked.end();
  return promise;
}

describe('status faults', () => {
  it.each([400, 401, 403, 404, 409, 410, 422, 429, 451, 500, 502, 503, 504])(
    '%i comes in each API’s own envelope',
    async (status) => {
      await using sandbox = await under('**', status);

      const unified = await ask(sandbox, AUDIT, 'any');
      const services = await ask(sandbox, LOGS, 'any');

      expect([unified.status, services.status]).toEqual([status, status]);
      expect(JSON.parse(unified.text)).toMatchObject({
        error: { code: expect.any(String), message: expect.any(String) },
        request_id: expect.any(String),
      });
      expect(JSON.parse(services.text)).toMatchObject({ status, trace_id: expect.any(String) });
    },
  );

  it.each<[Partial<Extract<SandboxFault, { kind: 'status' }>>, string | null]>([
    [{}, '1'],
    [{ retry_after: 2_592_000 }, '2592000'],
    [{ retry_as: 'absent' }, null],
    [{ retry_after: 'soon' }, 'soon'],
    [{ retry_after: 90, retry_as: 'date' }, 'Mon, 01 Jun 2026 00:01:30 GMT'],
    [{ retry_after: 90, retry_as: 'date', date_skew_s: 3600 }, 'Mon, 01 Jun 2026 01:01:30 GMT'],
  ])('429 with %j sends Retry-After %s', async (settings, expected) => {
    const fault: SandboxFault = { kind: 'status', status: 429, ...settings };
    const rules = [{ path: AUDIT, fault }];
    await using sandbox = await stillSandbox({
      now: () => Date.UTC(2026, 5, 1),
      faults: { rules },
    });

    const { headers } = await ask(sandbox, AUDIT, 'any');

    expect(headers.get('retry-after')).toBe(expected);
    const skewed = settings.date_skew_s === undefined ? '00:00:00' : '01:00:00';
    expect(headers.get('date')).toBe(`Mon, 01 Jun 2026 ${skewed} GMT`);
  });

  it('revoke_token: the token stays dead, a new one works', async () => {
    const rules: FaultRule[] = [{ path: AUDIT, times: 1, fault: 'revoke_token' }];
    await using sandbox = await stillSandbox({ faults: { rules } });
    const token = await tokenFor(sandbox, AUDIT);

    const statuses = [
      await ask(sandbox, AUDIT, token),
      await ask(sandbox, AUDIT, token),
      await ask(sandbox, AUDIT),
    ];

    expect(statuses.map((reply) => reply.status)).toEqual([401, 401, 200]);
  });
});

describe('body faults', () => {
  it.each<[SandboxFault['kind'], number, string, RegExp]>([
    ['html', 200, 'text/html; charset=utf-8', /^<!doctype html>/],
    ['empty_object', 200, 'application/json', /^\{\}$/],
    ['error_in_200', 200, 'application/json', /^\{"error":\{"code":"internal"/],
    ['cut_json', 200, 'application/json', /^\{"data":\[\{.*[^}]$/],
  ])('%s', async (kind, status, type, text) => {
    await using sandbox = await under(AUDIT, kind);

    const reply = await ask(sandbox, AUDIT);

    expect([reply.status, reply.headers.get('content-type')]).toEqual([status, type]);
    expect(reply.text).toMatch(text);
  });

  it('empty_body and redirect have no body; a redirect names its target', async () => {
    await using sandbox = await under(AUDIT, 'empty_body');
    const empty = await ask(sandbox, AUDIT);
    sandbox.control.setFaults({
      rules: [{ path: AUDIT, fault: { kind: 'redirect', to: 'http://127.0.0.1:1/x' } }],
    });
    const redirect = await ask(sandbox, AUDIT);

    expect([empty.status, empty.text]).toEqual([200, '']);
    expect([redirect.status, redirect.text, redirect.headers.get('location')]).toEqual([
      302,
      '',
      'http://127.0.0.1:1/x',
    ]);
  });

  it.each<[Extract<SandboxFault, { kind: 'wrong_shape' }>['shape'], RegExp]>([
    ['array', /^\[\{"id"/],
    ['data_object', /^\{"data":\{"items":\[/],
    ['data_null', /^\{"data":null,"next_cursor":/],
    ['data_missing', /^\{"next_cursor":"/],
    ['next_missing', /^\{"data":\[.*\}\]\}$/],
    ['next_number', /,"next_cursor":17\}$/],
  ])('wrong_shape %s is JSON of that shape', async (shape, text) => {
    await using sandbox = await under(AUDIT, { kind: 'wrong_shape', shape });

    const reply = await ask(sandbox, `${AUDIT}?limit=5`);

    expect(() => JSON.parse(reply.text)).not.toThrow();
    expect(reply.text).toMatch(text);
  });

  it('expires_in is replaced or left out', async () => {
    await using sandbox = await stillSandbox();
    const tokenPath = '/v1/oauth/token';
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: sandbox.credentials.clientId,
      client_secret: sandbox.credentials.clientSecret,
    });
    const seen: unknown[] = [];
    for (const value of ['3600', 0, -1, null, 'missing']) {
      sandbox.control.setFaults({
        rules: [{ path: tokenPath, fault: { kind: 'expires_in', value } }],
      });
      const response = await fetch(`${sandbox.url}${tokenPath}`, { method: 'POST', body: form });
      seen.push(((await response.json()) as { expires_in?: unknown }).expires_in);
    }

    expect(seen).toEqual(['3600', 0, -1, null, undefined]);
  });

  it('invalid_client refuses good credentials', async () => {
    await using sandbox = await under('/v1/oauth/token', 'invalid_client');

    const response = await fetch(`${sandbox.unifiedBaseUrl}/oauth/token`, { method: 'POST' });

    expect(response.status).toBe(401);
    expect(await response.text()).toContain('"code":"invalid_client"');
  });
});

describe('list faults', () => {
  it('expired_cursor refuses a cursor and leaves the first page alone', async () => {
    await using sandbox = await under(AUDIT, 'expired_cursor');

    const first = await page(sandbox, `${AUDIT}?limit=5`);
    const next = await ask(sandbox, `${AUDIT}?limit=5&cursor=${first.next_cursor}`);

    expect(next.status).toBe(422);
    expect(JSON.parse(next.text).error.field).toBe('cursor');
  });

  it('cursor_ignored serves the first page again', async () => {
    await using sandbox = await under(AUDIT, 'cursor_ignored');

    const first = await page(sandbox, `${AUDIT}?limit=5`);
    const next = await page(sandbox, `${AUDIT}?limit=5&cursor=${first.next_cursor}`);

    expect(next.data).toEqual(first.data);
  });

  it('loop leads back to the first page', async () => {
    await using sandbox = await stillSandbox({
      faults: { rules: [{ path: AUDIT, after: 2, fault: 'loop' }] },
    });
    const firsts: unknown[] = [];

    let cursor: string | null | undefined = null;
    for (let n = 0; n < 5; n += 1) {
      const reply = await page(
        sandbox,
        `${AUDIT}?limit=5${cursor === null ? '' : `&cursor=${cursor}`}`,
      );
      firsts.push(reply.data[0]?.id);
      cursor = reply.next_cursor;
    }

    expect(firsts.map((id) => Number(String(id).slice(4)))).toEqual([0, 5, 10, 0, 0]);
  });

  it('short ends a list early, total still reported', async () => {
    await using sandbox = await under('**', { kind: 'short', keep: 2 });

    const cursor = await page(sandbox, `${AUDIT}?limit=5`);
    const offset = await page(sandbox, `${OBJECTS}?limit=5`);

    expect([cursor.data.length, cursor.next_cursor]).toEqual([2, null]);
    expect([offset.data.length, offset.total]).toEqual([2, 132]);
  });

  it.each([0, '132', null, 7])('wrong_total says %j', async (total) => {
    await using sandbox = await under(OBJECTS, { kind: 'wrong_total', total });

    const reply = await page(sandbox, `${OBJECTS}?limit=5`);

    expect(reply.total).toBe(total);
    expect(reply.data).toHaveLength(5);
  });

  it('extra_field: each record has a member it never had', async () => {
    await using sandbox = await under(OBJECTS, 'extra_field');

    const { data } = await page(sandbox, OBJECTS);

    expect(data.every((object) => object.schema_version === '2.1')).toBe(true);
  });

  it('short with its total agreed looks like the whole list', async () => {
    await using sandbox = await under(OBJECTS, { kind: 'short', keep: 2, total: true });

    const reply = await page(sandbox, OBJECTS);

    expect([reply.data.length, reply.total]).toEqual([2, 2]);
  });

  it('shifted: a record at the border of two offset pages is not in either', async () => {
    await using sandbox = await under(OBJECTS, 'shifted');
    const ids = sandbox
      .ledger()
      .firewall('c-1')
      .objects.map(({ id }) => id);

    const first = await page(sandbox, `${OBJECTS}?limit=10&offset=0`);
    const second = await page(sandbox, `${OBJECTS}?limit=10&offset=10`);

    const read = [...first.data, ...second.data].map(({ id }) => id);
    expect(read).toEqual([...ids.slice(0, 10), ...ids.slice(11, 21)]);
  });

  it('altered and missing_record: a timeline rewritten, or shrunk, at one reading', async () => {
    const rules: FaultRule[] = [
      { path: TIMELINE, after: 1, times: 1, fault: { kind: 'altered', record: 1, field: 'entry' } },
      { path: TIMELINE, times: 1, after: 1, fault: 'missing_record' },
    ];
    await using sandbox = await stillSandbox({ faults: { rules } });
    const token = await tokenFor(sandbox, TIMELINE);
    const read = async () => (await page(sandbox, TIMELINE, token)).data;

    const [whole, rewritten] = [await read(), await read()];
    const [shrunk, last] = [await read(), await read()];

    expect(whole.length).toBeGreaterThan(1);
    expect(rewritten).toEqual(whole.with(1, { ...whole[1], entry: 'altered' }));
    expect(shrunk).toEqual(whole.slice(1));
    expect(last).toEqual(whole);
  });

  it('an object flaps if every other reading is altered', async () => {
    const host = '/api/fleet/v1/hosts/host-zrh01';
    const fault: SandboxFault = { kind: 'altered', field: 'status', value: 'unreachable' };
    await using sandbox = await stillSandbox({
      faults: { rules: [{ path: host, every: 2, fault }] },
    });
    const token = await tokenFor(sandbox, host);
    const seen: string[] = [];

    for (let n = 0; n < 4; n += 1) {
      seen.push(JSON.parse((await ask(sandbox, host, token)).text).status);
    }

    expect(seen).toEqual(['online', 'unreachable', 'online', 'unreachable']);
  });

  it('renamed_field and volatile_field: another schema from some request on', async () => {
    const rules: FaultRule[] = [
      {
        path: SITES,
        after: 1,
        times: 1,
        fault: { kind: 'renamed_field', field: 'status', to: 'state' },
      },
      { path: SITES, fault: 'volatile_field', after: 1 },
    ];
    let nowMs = Date.UTC(2026, 5, 1);
    await using sandbox = await stillSandbox({ faults: { rules }, now: () => nowMs });
    const token = await tokenFor(sandbox, SITES);
    const read = async () => (await page(sandbox, SITES, token)).data[0];

    const [before, renamed] = [await read(), await read()];
    const volatile = await read();
    nowMs += 1_000;
    const later = await read();

    expect(Object.keys(before ?? {})).toContain('status');
    expect(renamed).toMatchObject({ state: before?.status });
    expect(Object.keys(renamed ?? {})).not.toContain('status');
    expect(volatile).toEqual({ ...before, last_seen: '2026-06-01T00:00:00.000Z' });
    expect(later).toEqual({ ...before, last_seen: '2026-06-01T00:00:01.000Z' });
  });

  it('one parent of many can be forbidden, or gone', async () => {
    const of = (id: string) => `/api/ticketing/v1/companies/c-1/tickets/${id}/events`;
    const rules: FaultRule[] = [
      { path: of('tkt-4712'), fault: 403 },
      { path: of('tkt-4713'), fault: 404 },
    ];
    await using sandbox = await stillSandbox({ faults: { rules } });
    const ids = ['tkt-4711', 'tkt-4712', 'tkt-4713', 'tkt-4714'];

    const replies = await Promise.all(ids.map((id) => ask(sandbox, of(id))));

    expect(replies.map(({ status }) => status)).toEqual([200, 403, 404, 200]);
  });

  it('a policy can be listed while its detail is 404, and a company be forbidden', async () => {
    await using sandbox = await stillSandbox();
    sandbox.control.setFaults({ rules: [{ path: `${POLICIES}/pol-2`, fault: 404 }] });
    const listed = await page(sandbox, POLICIES);
    const detail = await ask(sandbox, `${POLICIES}/pol-2`);
    sandbox.control.setFaults({ rules: [{ path: '/api/*/v1/companies/c-1/**', fault: 403 }] });
    const forbidden = [
      await ask(sandbox, OBJECTS),
      await ask(sandbox, OBJECTS.replace('c-1', 'c-2')),
    ];

    expect(listed.data.map((policy) => policy.id)).toContain('pol-2');
    expect(detail.status).toBe(404);
    expect(forbidden.map((reply) => reply.status)).toEqual([403, 200]);
  });
});

describe('wire faults', () => {
  it('truncated: half the body comes, then the connection ends', async () => {
    await using sandbox = await under(AUDIT, 'truncated');
    const cut = await raw(sandbox, AUDIT, await tokenFor(sandbox, AUDIT));
    sandbox.control.setFaults({});
    const whole = await raw(sandbox, AUDIT, await tokenFor(sandbox, AUDIT));

    expect(cut).toMatchObject({ status: 200, error: 'ECONNRESET' });
    expect(cut.bytes).toBe(Math.floor(whole.bytes / 2));
  });

  it('reset: the connection is reset without an answer', async () => {
    await using sandbox = await under(AUDIT, 'reset');

    const cut = await raw(sandbox, AUDIT, 'any');

    expect(cut).toMatchObject({ status: 0, bytes: 0, error: 'ECONNRESET' });
  });

  it('hang: nothing comes, or half a body, until the client gives up', async () => {
    await using sandbox = await under(AUDIT, 'hang');
    const token = await tokenFor(sandbox, AUDIT);

    const giveUp = new AbortController();
    const asked = raw(sandbox, AUDIT, token, giveUp);
    await expect.poll(() => sandbox.control.requests()[AUDIT]?.requests).toBe(1);
    giveUp.abort();
    const silent = await asked;
    sandbox.control.setFaults({
      rules: [{ path: AUDIT, fault: { kind: 'hang', where: 'mid_body' } }],
    });
    const half = await raw(sandbox, AUDIT, token, new AbortController());

    expect(silent).toMatchObject({ status: 0, bytes: 0, error: 'ABORT_ERR' });
    expect(half).toMatchObject({ status: 200, error: 'ECONNRESET' });
    expect(half.bytes).toBeGreaterThan(0);
  });

  it('slow: the whole body trickles in many pieces; delay: it comes whole', async () => {
    await using sandbox = await under(AUDIT, { kind: 'slow', over_ms: 200 });
    const token = await tokenFor(sandbox, AUDIT);

    const slow = await raw(sandbox, `${AUDIT}?limit=3`, token);
    sandbox.control.setFaults({ rules: [{ path: AUDIT, fault: { kind: 'delay', ms: 5 } }] });
    const delayed = await raw(sandbox, `${AUDIT}?limit=3`, token);

    expect(slow).toMatchObject({ status: 200, bytes: delayed.bytes, error: '' });
    expect(slow.chunks).toBeGreaterThan(1);
    expect(delayed).toMatchObject({ chunks: 1, error: '' });
  });

  it('huge: the body is as long as the script says', async () => {
    await using sandbox = await under(AUDIT, { kind: 'huge', bytes: 5_000_000 });

    const huge = await raw(sandbox, AUDIT, await tokenFor(sandbox, AUDIT));

    expect(huge).toMatchObject({ status: 200, error: '' });
    expect(huge.bytes).toBeGreaterThan(5_000_000);
  });

  it('close ends hanging and slow answers at once', async () => {
    const sandbox = await under('**', 'hang');
    const hanging = raw(sandbox, AUDIT, 'any');
    await expect.poll(() => sandbox.control.requests()[AUDIT]?.requests).toBe(1);

    await sandbox.close();

    expect(await hanging).toMatchObject({ error: 'ECONNRESET' });
  });
});

describe('fault rules', () => {
  it('after, every and times decide the turn', async () => {
    const rules: FaultRule[] = [{ path: AUDIT, after: 1, every: 2, times: 2, fault: 503 }];
    await using sandbox = await stillSandbox({ faults: { rules } });
    const token = await tokenFor(sandbox, AUDIT);
    const statuses: number[] = [];

    for (let n = 0; n < 8; n += 1) statuses.push((await ask(sandbox, AUDIT, token)).status);

    expect(statuses).toEqual([200, 200, 503, 200, 503, 200, 200, 200]);
    expect(sandbox.control.faultCounts()).toEqual([
      { path: AUDIT, fault: 'status', seen: 8, happened: 2 },
    ]);
  });

  it('probability draws the same from the same seed', async () => {
    const rules: FaultRule[] = [{ path: AUDIT, probability: 0.5, fault: 503 }];
    const runs = await Promise.all(
      [1, 1, 2].map(async (seed) => {
        await using sandbox = await stillSandbox({ seed, faults: { rules } });
        const token = await tokenFor(sandbox, AUDIT);
        const statuses: number[] = [];
        for (let n = 0; n < 24; n += 1) statuses.push((await ask(sandbox, AUDIT, token)).status);
        return statuses.join();
      }),
    );

    expect(runs[0]).toBe(runs[1]);
    expect(runs[0]).not.toBe(runs[2]);
    expect(runs[0]).toContain('503');
    expect(runs[0]).toContain('200');
  });

  it('only, the path pattern and the order of rules choose the rule', async () => {
    const rules: FaultRule[] = [
      { path: '/api/logs/v1/companies/*/web', only: 'following', fault: 500 },
      { path: '/api/logs/**', fault: 503 },
    ];
    await using sandbox = await stillSandbox({ faults: { rules } });

    const replies = await Promise.all(
      [WEB, `${WEB}?offset=10`, LOGS, OBJECTS].map((path) => ask(sandbox, path)),
    );

    expect(replies.map((reply) => reply.status)).toEqual([503, 500, 503, 200]);
  });
});
