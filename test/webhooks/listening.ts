// A webhooks source that runs: its declaration, the real spool and a real server on loopback, with the deliveries that
// reach it signed as upstream would.

import { createHmac, randomUUID } from 'node:crypto';
import { webhooksSource } from '../../connectors/sources/webhooks.ts';
import type { PushStream, Stream } from '../../src/contracts/source.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { Clock } from '../../src/contracts/tools.ts';
import type { PlannedSource } from '../../src/fetch/polled-stream.ts';
import { Polling } from '../../src/fetch/polling.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { aSpool, heldIn } from '../list/reading.ts';
import { noLog, settingsOf } from '../support/plain-upstream.ts';
import { afterThisTest, freePort, waitUntil } from '../support/temp.ts';

const unasked = () => Promise.reject(new Error('nothing here asks upstream'));

/** A source's plan under these settings. */
export function planned(
  name: string,
  given: Readonly<Record<string, unknown>>,
): PlannedSource & { readonly streams: readonly [PushStream] } {
  const settings = settingsOf(webhooksSource, { secret: 'hush', ...given });
  const upstream = {
    name: 'edge',
    api: 'unified',
    baseUrl: '',
    companies: [],
    get: unasked,
  } as const;
  const [stream] = webhooksSource.streams(settings, { name, upstream }) as readonly Stream[];
  if (stream?.kind !== 'push') throw new Error('a webhooks source has one stream that is brought');
  return {
    ...{ name, upstream: 'edge', streams: [stream], reading: webhooksSource.reading(settings) },
    ...{ list: null, collection: null, schedule: { everyMs: 60_000 } },
  };
}

/** Listens at a free port until the test ends. */
export async function listening({
  sources = (listen: string) => [planned('hooks', { listen })],
  spool,
  clock = systemClock(),
}: {
  readonly sources?: (listen: string) => readonly PlannedSource[];
  readonly spool?: Spool;
  readonly clock?: Clock;
} = {}) {
  const held = spool ?? (await aSpool());
  const port = await freePort();
  const listen = `127.0.0.1:${port}`;
  const http = { request: unasked, close: async () => undefined };
  const tools = { clock, log: noLog, http };
  const polling = new Polling({ spool: held, tools, random: () => 0 });
  const plan = sources(listen);
  polling.add(plan);
  polling.start();
  afterThisTest(() => polling.stop());
  await waitUntil(() => polling.state.every(({ polls }) => polls > 0), {
    what: () => `all streams to listen: ${JSON.stringify(polling.state)}`,
  });
  return {
    ...{ polling, port, listen, spool: held, plan },
    url: `http://${listen}/webhooks`,
    held: () => heldIn(held),
    counts: () => polling.state[0]?.deliveries ?? {},
  };
}

/** What a delivery is made of. */
export interface Sent {
  readonly id?: string | null;
  readonly event?: string;
  readonly body?: string;
  readonly secret?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A delivery's headers, signed. */
export function headersFor({ id, event, body, secret, headers }: Sent & { readonly body: string }) {
  const key = secret === undefined ? 'hush' : secret;
  return {
    'content-type': 'application/json',
    'svc-event': event ?? 'incident.created',
    ...(id === null ? {} : { 'svc-delivery': id ?? randomUUID() }),
    ...(key === null
      ? {}
      : { 'svc-signature': `sha256=${createHmac('sha256', key).update(body).digest('hex')}` }),
    ...headers,
  };
}

/** Sends one and returns the response. */
export async function deliver(url: string, sent: Sent = {}) {
  const body = sent.body ?? JSON.stringify({ id: randomUUID() });
  const headers = headersFor({ ...sent, body });
  const response = await fetch(url, { method: 'POST', body, headers });
  await response.arrayBuffer();
  return { status: response.status, retryAfter: response.headers.get('retry-after') };
}
