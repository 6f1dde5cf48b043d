// A sender on a real spool, with a sink that answers as scripted and keeps what it accepted.

import { ExportError } from '../../src/contracts/errors.ts';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import type { Batch, Delivery, Sink } from '../../src/contracts/sink.ts';
import type { Spool } from '../../src/contracts/spool.ts';
import type { Log } from '../../src/contracts/tools.ts';
import { openSpool } from '../../src/hold/spool.ts';
import { PageDecoder } from '../../src/send/held-event.ts';
import { Outlet } from '../../src/send/outlet.ts';
import { PageEncoder } from '../../src/send/page-encoder.ts';
import { Sender } from '../../src/send/sender.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { anAppend } from '../support/a-page.ts';
import { silent } from '../support/silent-log.ts';
import { tempDir, waitUntil } from '../support/temp.ts';

/** The cause of each refusal in these tests. */
export const cause = new ExportError('sink_unreachable', 'testing: scripted', { next: 'nothing' });
/** Everything was accepted. */
export const delivered: Delivery = { outcome: 'delivered' };

/** How the scripted sink answers. */
export type Answerer = (batch: Batch, attempt: number) => Delivery | Promise<Delivery>;

/** A sink with scripted results that keeps its accepted events. */
export function scripted(answer: Answerer) {
  const taken: string[] = [];
  const batches: Batch[] = [];
  const sink: Sink = {
    async send(batch) {
      batches.push(batch);
      const answered = await answer(batch, batches.length);
      if (answered.outcome === 'delivered') taken.push(...batch.events.map(idOf));
      if (answered.outcome === 'partly') {
        const not = new Set([...answered.refused.map(({ uid }) => uid), ...answered.again]);
        taken.push(...batch.events.filter(({ uid }) => !not.has(uid)).map(idOf));
      }
      return answered;
    },
    close: async () => undefined,
  };
  return { sink, taken, batches };
}

/** The id in the record of an event. */
export function idOf(event: Event): string {
  return JSON.parse(Buffer.from(event.raw).toString()).id;
}

/** A spool that holds events 0, 1, 2 … of one stream. */
export async function heldEvents(count: number, perPage = 4): Promise<Spool> {
  const spool = await openSpool({
    dir: tempDir(),
    sync: 'normal',
    keepMs: 0,
    sinks: ['s'],
    bytesMax: 1e9,
    eager: true,
    reserveBytesMax: 2 ** 20,
  });
  for (let n = 0; n < count; n += perPage) {
    const ids = Array.from({ length: Math.min(perPage, count - n) }, (_, i) => String(n + i));
    await spool.append(anAppend({ ids }));
  }
  return spool;
}

/** A sender that waits no longer than a millisecond. */
export function senderOn(
  spool: Spool,
  sink: Sink,
  more: {
    inFlightMax?: number;
    eventsMax?: number;
    position?: number;
    log?: Log;
    onWait?: () => void;
  } = {},
) {
  const outlet = new Outlet({
    sink: 's',
    spool,
    encoder: new PageEncoder(new PageDecoder(() => (record) => record as unknown as OcsfEvent)),
    format: { name: 'json', contentType: 'text/plain', encode: ({ ocsf }) => JSON.stringify(ocsf) },
    formatKey: 'json',
    documents: false,
    takesPages: false,
    selectionFor: () => ({ key: '', select: (event) => event }),
    bounds: { eventsMax: more.eventsMax ?? 6, bytesMax: 1e6 },
  });
  return new Sender({
    name: 's',
    sink,
    outlet,
    spool,
    clock: systemClock(),
    log: more.log ?? silent,
    position: more.position ?? 0,
    inFlightMax: more.inFlightMax ?? 1,
    waitMs: 0,
    backOff: {
      next: () => {
        more.onWait?.();
        return 1;
      },
      reset: () => undefined,
    },
    fingerprint: () => '',
    refusedWaitMs: 1,
    retryMinMs: 1,
  });
}

/** Runs a sender until its position is at the spool's end, and returns what is on disk then. */
export async function drained(spool: Spool, sender: Sender): Promise<number> {
  const stop = new AbortController();
  const running = sender.run({ stop: stop.signal, kill: new AbortController().signal });
  await waitUntil(() => sender.state.position >= spool.gauge.end, {
    what: () => `the position to reach ${spool.gauge.end}; it is ${JSON.stringify(sender.state)}`,
  });
  stop.abort(new Error('enough'));
  await running;
  return (await spool.progress('s')).position;
}

/** The ids 0, 1, 2 … */
export function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i));
}
