// Deliveries over real HTTP into a real spool: which are stored and which are dropped, that no delivery is acknowledged
// before it is stored, and the effect of a hostile client on the others.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Append, Spool } from '../../src/contracts/spool.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { aSpool } from '../list/reading.ts';
import { answerWith, madeUpList, pagination } from '../support/made-up-list.ts';
import { afterThisTest, waitUntil } from '../support/temp.ts';
import { deliver, headersFor, listening, planned } from './listening.ts';

test('a delivery is held byte for byte, once for its id and body', async () => {
  const { url, held, counts } = await listening();
  const body = ' {"id": "evt-1",  "n": 1.00 }\n';

  const answers = [
    await deliver(url, { id: 'a', body }),
    await deliver(url, { id: 'a', body }),
    await deliver(url, { id: 'a', body: '{"id":"evt-2"}' }),
    await deliver(url, { id: 'b', body }),
    await deliver(url, { id: null, body }),
    await deliver(url, { id: null, body }),
  ];

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
  const records = await held();
  expect(records.map(({ text }) => text)).toEqual([
    body.trim(),
    '{"id":"evt-2"}',
    body.trim(),
    body.trim(),
  ]);
  expect(new Set(records.map(({ uid }) => uid)).size).toBe(4);
  expect(counts()).toEqual({ taken: 4, repeated: 2 });
});

test('an array of objects is one event each, with the id of the delivery and a number', async () => {
  const spool = await aSpool();
  const { url, held, counts } = await listening({ spool });
  const [one, two] = ['{"id":"evt-1", "n": 1.00}', '{"id":"evt-2"}'];
  const body = ` [ ${one} ,\n${two}]\n`;
  const again = `[${one},${one}]`;

  for (const given of [body, body, again]) {
    expect(await deliver(url, { id: 'a', body: given })).toMatchObject({ status: 200 });
  }
  for (const whole of ['[]', '[1,2]', `[${one},3]`]) {
    expect(await deliver(url, { id: 'w', body: whole })).toMatchObject({ status: 200 });
  }

  const records = await held();
  expect(records.map(({ text }) => text)).toEqual([
    one,
    two,
    one,
    one,
    '[]',
    '[1,2]',
    `[${one},3]`,
  ]);
  expect(new Set(records.map(({ uid }) => uid)).size).toBe(7);
  expect(counts()).toEqual({ taken: 5, repeated: 1 });
  const deliveries: unknown[] = [];
  for (const { context } of await spool.read(0, 1 << 20)) deliveries.push(context.delivery);
  expect(deliveries.slice(0, 5)).toEqual([
    { id: 'a', event: 'incident.created', number: 1 },
    { id: 'a', event: 'incident.created', number: 2 },
    { id: 'a', event: 'incident.created', number: 1 },
    { id: 'a', event: 'incident.created', number: 2 },
    { id: 'w', event: 'incident.created' },
  ]);
});

test('deliveries stored before a restart are known after it', async () => {
  const spool = await aSpool();
  const first = await listening({ spool });
  await deliver(first.url, { id: 'a', body: '{"n":1}' });
  await first.polling.stop();

  const second = await listening({ spool });
  await deliver(second.url, { id: 'a', body: '{"n":1}' });
  await deliver(second.url, { id: 'b', body: '{"n":1}' });

  expect(second.counts()).toEqual({ repeated: 1, taken: 1 });
  expect(await second.held()).toHaveLength(2);
});

test.for([
  ['without a signature', { secret: null }, 401],
  ['signed by somebody else', { secret: 'else' }, 401],
  ['no JSON', { body: '{' }, 400],
  ['a form', { headers: { 'content-type': 'text/plain' } }, 415],
  ['too long', { body: JSON.stringify('x'.repeat(1_100_000)) }, 413],
] as const)('%s: refused, and nothing is held', async ([, sent, status]) => {
  const { url, held } = await listening();

  expect(await deliver(url, sent)).toMatchObject({ status });
  expect(await deliver(url)).toMatchObject({ status: 200 });
  expect(await held()).toHaveLength(1);
});

test('no other path and no other method is taken', async () => {
  const { url } = await listening();

  const [elsewhere, got] = [await fetch(`${url}/x`, { method: 'POST' }), await fetch(url)];

  expect([elsewhere.status, got.status, got.headers.get('allow')]).toEqual([404, 405, 'POST']);
});

test('a body without a length is cut off where it is too long', async () => {
  const { url } = await listening();
  const pieces = new ReadableStream({
    pull: (controller) => controller.enqueue(Buffer.alloc(65_536, 'x')),
  });
  const headers = headersFor({ body: '' });

  const answer = await fetch(url, { method: 'POST', headers, body: pieces, duplex: 'half' }).then(
    ({ status }) => status,
    () => 'cut',
  );

  expect([413, 'cut']).toContain(answer);
});

/** The real spool, whose appends go through `around`. */
async function spoolWith(
  configEnv: (append: () => Promise<number>, entry: Append) => Promise<number>,
) {
  const spool = await aSpool();
  return new Proxy(spool, {
    get: (target, key) => {
      if (key === 'append') return (entry: Append) => configEnv(() => target.append(entry), entry);
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

test('a delivery that cannot be stored is not acknowledged, and is accepted when it comes again', async () => {
  let isBroken = true;
  const spool = await spoolWith((append) =>
    isBroken ? Promise.reject(new Error('no disk')) : append(),
  );
  const { url, held } = await listening({ spool });

  const refused = await deliver(url, { id: 'a', body: '{}' });
  isBroken = false;
  const taken = await deliver(url, { id: 'a', body: '{}' });

  expect(refused).toEqual({ status: 503, retryAfter: '10' });
  expect(taken.status).toBe(200);
  expect(await held()).toHaveLength(1);
});

test('a spool without room has them come again, at once after the first', async () => {
  const spool = await aSpool();
  const room = Promise.withResolvers<void>();
  let [isFull, asked] = [false, 0];
  const full = new Proxy(spool, {
    get: (target, key) => {
      if (key === 'room' && isFull) {
        asked += 1;
        return () => room.promise;
      }
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  }) as Spool;
  const { url } = await listening({ spool: full });

  isFull = true;
  const first = await deliver(url);
  const second = await deliver(url);
  isFull = false;
  room.resolve();
  await waitUntil(async () => (await deliver(url)).status === 200, { what: () => 'room' });

  expect([first, second]).toEqual([
    { status: 503, retryAfter: '10' },
    { status: 503, retryAfter: '10' },
  ]);
  expect(asked, 'waits for room').toBe(1);
});

test('at a stop those under way are stored or rejected for a retry', async () => {
  const begun = Promise.withResolvers<void>();
  const disk = Promise.withResolvers<void>();
  const spool = await spoolWith(async (append) => {
    begun.resolve();
    await disk.promise;
    return await append();
  });
  const { url, polling, held } = await listening({ spool });

  const first = deliver(url, { body: '{"n":1}' });
  await begun.promise;
  const second = deliver(url, { body: '{"n":2}' });
  await waitUntil(() => polling.state[0]?.deliveries !== undefined, { what: () => 'deliveries' });
  const stopped = polling.stop();
  await new Promise((resolve) => setTimeout(resolve, 200));
  disk.resolve();

  expect((await first).status).toBe(200);
  expect((await second).status).toBe(503);
  await stopped;
  await expect(deliver(url)).rejects.toThrow();
  expect(await held()).toHaveLength(1);
});

test('five hundred at once cost a few transactions', async () => {
  let appends = 0;
  const spool = await spoolWith(async (append) => {
    appends += 1;
    // As a disk may take that long.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return await append();
  });
  const { url, held } = await listening({ spool });

  const answers = await Promise.all(Array.from({ length: 500 }, () => deliver(url)));

  expect(answers.every(({ status }) => status === 200)).toBe(true);
  expect(await held()).toHaveLength(500);
  expect(appends).toBeLessThan(100);
});

/** Connects, says what is to be said, and stays. */
async function stranger(port: number, words = ''): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  afterThisTest(() => void socket.destroy());
  await once(socket, 'connect');
  if (words !== '') socket.write(words);
  return socket;
}

test('a delivery without a type is accepted where it is signed; one with two hosts is not', async () => {
  const { port, held } = await listening();
  const body = '{"id":"evt-1"}';
  const ask = async (lines: readonly string[]) => {
    const signature = `svc-signature: ${headersFor({ body })['svc-signature']}`;
    const head = ['POST /webhooks HTTP/1.1', ...lines, `content-length: ${body.length}`];
    const socket = await stranger(port);
    const { promise, resolve } = Promise.withResolvers<string>();
    socket.on('data', (bytes) => resolve(String(bytes).split('\r\n')[0] ?? ''));
    const close = 'connection: close';
    socket.write([...head, signature, close, '', body].join('\r\n'));
    return await promise;
  };

  const type = 'content-type: application/json';
  expect(await ask(['host: x', type, 'host: y'])).toBe('HTTP/1.1 400 Bad Request');
  expect(await ask(['host: x', type, 'host: x'])).toBe('HTTP/1.1 400 Bad Request');
  expect(await held()).toEqual([]);
  expect(await ask(['host: x', 'content-type: text/plain'])).toMatch(/^HTTP\/1.1 415/);
  expect(await ask(['host: x'])).toBe('HTTP/1.1 200 OK');
  expect(await held()).toHaveLength(1);
});

test('thousands of silent clients keep no other client out', async () => {
  const { url, port, held } = await listening();
  // Both ends of each are this process's, of whose descriptors there may be few.
  const silent = 2_000;
  for (let n = 0; n < silent; n += 100) {
    await Promise.all(Array.from({ length: 100 }, () => stranger(port)));
    expect((await deliver(url)).status).toBe(200);
  }
  expect(await held()).toHaveLength(silent / 100);
});

test('endless bodies keep no other client out, whatever their size so far', async () => {
  const { url, port, held } = await listening();
  const head = [
    'POST /webhooks HTTP/1.1',
    'host: x',
    'content-type: application/json',
    `svc-signature: sha256=${'0'.repeat(64)}`,
    'content-length: 1048576',
    '',
    '"',
  ].join('\r\n');

  const slow = await Promise.all(
    Array.from({ length: 60 }, () => stranger(port, head + 'x'.repeat(1_000_000))),
  );

  expect((await deliver(url)).status).toBe(200);
  // More than is read at a time of all of them: the oldest had to go.
  await waitUntil(() => slow.some(({ closed, readableEnded }) => closed || readableEnded), {
    what: () => 'one of the slow to be ended',
  }).catch(() => expect.unreachable('all of them stayed'));
  expect(await held()).toHaveLength(1);
});

test('two sources share an address, each with its path and secret', async () => {
  const { listen, polling, held } = await listening({
    sources: (listen) => [
      planned('a', { listen, path: '/a', secret: 'of a' }),
      planned('b', { listen, path: '/b', secret: ['of b', 'also b'] }),
    ],
  });

  const answers = [
    await deliver(`http://${listen}/a`, { secret: 'of a' }),
    await deliver(`http://${listen}/b`, { secret: 'also b' }),
    await deliver(`http://${listen}/b`, { secret: 'of a' }),
  ];
  await polling.stop(['a']);
  await polling.remove(['a']);
  const after = [
    await deliver(`http://${listen}/a`, { secret: 'of a' }),
    await deliver(`http://${listen}/b`, { secret: 'of b' }),
  ];

  expect(answers.map(({ status }) => status)).toEqual([200, 200, 401]);
  expect(after.map(({ status }) => status)).toEqual([404, 200]);
  expect(await held()).toHaveLength(3);
});

test('a secret by a command is read again after a wrong signature, by one delivery at a time', async () => {
  let value = 'old';
  const runs: PromiseWithResolvers<void>[] = [];
  const { url, counts } = await listening({
    sources: (listen) => {
      const plan = planned('hooks', { listen });
      const [stream] = plan.streams;
      const [secret] = stream.rules.secrets;
      secret?.bind(
        () => value,
        '${exec:helper}',
        () => {
          const run = Promise.withResolvers<void>();
          runs.push(run);
          return run.promise;
        },
      );
      return [plan];
    },
  });
  const first = deliver(url, { secret: 'new' });
  await waitUntil(() => runs.length === 1 || counts().forged === 1, {
    what: () => 'the command to run',
  });
  const second = await deliver(url, { secret: 'new' });
  value = 'new';
  runs[0]?.resolve();

  expect([(await first).status, second.status, second.retryAfter]).toEqual([200, 503, '30']);
  expect(counts()).toMatchObject({ taken: 1, no_secret: 1 });
});

test('another secret is taken up with the address kept open', async () => {
  const { url, listen, polling } = await listening();
  const seen: (number | string)[] = [];
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      seen.push(await deliver(url, { secret: 'new' }).then((a) => a.status, String));
    }
  })();

  await waitUntil(() => seen.includes(401), { what: () => 'a refusal' });
  await polling.stop(['hooks']);
  polling.add([planned('hooks', { listen, secret: 'new' })]);
  await polling.remove([]);
  polling.start();
  await waitUntil(() => seen.includes(200), { what: () => 'the new secret to be taken' });
  isOver = true;
  await asking;

  expect(seen.filter((one) => one !== 200 && one !== 401 && one !== 503)).toEqual([]);
});

test('an address that is in use is reported, and used once it is free', async () => {
  const { listen, polling: first, url } = await listening();
  const spool = await aSpool();
  const other = listening({ spool, sources: () => [planned('hooks', { listen })] });
  const { polling } = await other;

  expect(polling.state[0]).toMatchObject({
    state: 'retrying',
    error: { code: 'config_invalid', message: expect.stringContaining('listens there already') },
  });
  await first.stop();
  polling.retryNow('hooks');
  await waitUntil(() => polling.state[0]?.error === null, { what: () => 'the address' });
  expect((await deliver(url)).status).toBe(200);
});

test('signatures that are wrong again and again are reported, until one is right', async () => {
  const { url, polling } = await listening();

  for (let n = 0; n < 10; n += 1) await deliver(url, { secret: 'else' });
  polling.retryNow('hooks');
  await waitUntil(() => polling.state[0]?.error?.code === 'signature_refused', {
    what: () => 'the doubt',
  });
  await deliver(url);

  await waitUntil(() => polling.state[0]?.error === null, { what: () => 'the doubt to end' });
});

test('streams of the same upstream are polled soon, by the event’s name', async () => {
  const asked: string[] = [];
  const whole = { ...pagination, style: 'none' } as const;
  const lists: PlannedSource['list'] = {
    ...{ order: 'auto', start: 'beginning', lookbackMs: 0, rewindEveryMs: 60_000 },
    ...{ reconcileEveryMs: 60_000, onCursorInvalid: 'rewalk' },
  };
  const of = (name: string, path: string, records: 'audit' | 'log') => {
    const stream = madeUpList(
      async () => {
        asked.push(name);
        return answerWith([]);
      },
      { name, source: name, paths: [path], records, pagination: whole, pageLimit: null },
    );
    return { ...planned(name, { listen: '127.0.0.1:1' }), list: lists, streams: [stream] };
  };
  const { url } = await listening({
    sources: (listen) => [
      planned('hooks', { listen }),
      of('audit', '/audit/events', 'audit'),
      of('incidents', '/mc/incidents', 'log'),
      of('sites', '/sites', 'log'),
      { ...of('elsewhere', '/audit/events', 'audit'), upstream: 'other' },
    ],
  });
  asked.length = 0;

  for (let n = 0; n < 20; n += 1) await deliver(url, { event: 'incident.created' });
  await waitUntil(() => asked.includes('audit') && asked.includes('incidents'), {
    what: () => `those to be asked: ${asked}`,
  });

  expect(new Set(asked)).toEqual(new Set(['audit', 'incidents']));
  expect(asked.length).toBeLessThan(6);
});
