// Sends one event, marked as a test, to a sink as a run would, and reports the receiver's acknowledgement. Invariants:
// a run's state is not touched: neither positions nor the sink's own stored data nor its resume point at the receiver;
// and the report claims no more than the receiver has acknowledged.

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Assurance,
  asExportError,
  type Batch,
  type Delivery,
  type Event,
  ExportError,
  type Sink,
  type Tools,
} from '../../contracts/index.ts';
import type { Plan } from '../../run/index.ts';
import { encodeLines, type PlannedSink, sinkConditionPage } from '../../send/delivery.ts';
import { DecodedPage, leadsTo, normalisersOf } from '../../send/index.ts';

/** Long enough for an indexer to write the event; short enough to wait for. */
const wordWithinMs = 60_000;
const againMs = 1_000;
const againMsMax = 5_000;

/** The result; `cause`: why the receiver does not have the event, or has not confirmed it. */
export interface TestOutcome {
  readonly subject: string;
  readonly cause: ExportError | null;
}

/** Sends the event, repeats it if the receiver requests that, and closes the sink. */
export async function sendTestEvent(
  { name, definition, settings, format }: PlannedSink,
  { sources, routes }: Pick<Plan, 'sources' | 'routes'>,
  tools: Tools,
): Promise<TestOutcome> {
  const used = definition.testSettings === undefined ? settings : definition.testSettings(settings);
  if (used === null) {
    return { subject: 'no test event: a run resumes from the events that are there', cause: null };
  }
  const routed = sources.find((one) => leadsTo(routes, { source: one.name, sink: name }));
  if (routed === undefined) return { subject: 'no test event: no route leads there', cause: null };
  const event = testEvent(name, routed.name, tools.clock.now());
  const sent = `test event with uid ${event.uid}`;
  const over = AbortSignal.timeout(wordWithinMs);
  let sink: Sink | null = null;
  try {
    sink = await definition.open(used, {
      ...{ name, format, position: 0, mark: null, config: () => null, sinks: () => [name] },
      numbering: { spool: randomUUID(), epochs: [{ id: tools.clock.now(), until: null }] },
      remember: async () => undefined,
      report: async () => undefined,
      tools,
    });
    const encoding = definition.documents === true ? (format.document ?? format) : format;
    const lines = encodeLines([event], encoding);
    const id = `test-${event.uid.slice(0, 16)}`;
    await untilTaken(sink, { id, events: [event], pages: [], lines, start: 0, end: 1 }, over);
    return { subject: `${sent}: ${words[definition.assurance(used)]}`, cause: null };
  } catch (error) {
    return { subject: sent, cause: asExportError(error, `sending ${name} a test event`) };
  } finally {
    await sink?.close().catch(() => undefined);
  }
}

const words: Readonly<Record<Assurance, string>> = {
  once: 'the receiver says that it has it',
  answered: 'the receiver says that it has it',
  settled:
    'written, and the connection stayed; this receiver answers nothing, so look for it there',
  none: 'sent; a sender cannot know whether it arrived, so search for it there',
};

/** Throws the reason if the event cannot be delivered. */
async function untilTaken(sink: Sink, batch: Batch, over: AbortSignal): Promise<void> {
  let last: ExportError | null = null;
  while (!over.aborted) {
    const answering = sink.send(batch, over);
    sink.flush?.();
    const answer: Delivery | null = await answering.catch((error) => {
      if (over.aborted) return null;
      throw error;
    });
    if (answer === null) break;
    if (answer.outcome === 'delivered') return;
    if (answer.outcome === 'refused') throw answer.cause;
    if (answer.outcome === 'partly') {
      const [refused] = answer.refused;
      if (refused === undefined && answer.again.length === 0) return;
      if (refused !== undefined) throw refusedText(refused.reason);
    }
    if (answer.outcome === 'retry') last = answer.cause;
    const asked = answer.outcome === 'retry' ? answer.afterMs : undefined;
    await delay(Math.min(againMsMax, Math.max(againMs, asked ?? 0)), null, { signal: over }).catch(
      () => undefined,
    );
  }
  throw last ?? silent();
}

function refusedText(reason: string): ExportError {
  return new ExportError('record_refused', `the receiver refused the event: ${reason}`, {
    next: 'Correct the named setting there or in the config. A run would make every such event a dead letter.',
  });
}

function silent(): ExportError {
  return new ExportError('sink_unreachable', `no word within ${wordWithinMs / 1_000} s`, {
    next: 'Look at the receiver: it may have the event, and it has not said so.',
  });
}

/** Marked by its class, its code `sink.test` and its message; of a source that is routed there. */
function testEvent(sink: string, source: string, now: number): Event {
  const message = `sluice test event for ${sink}: it reports no real action`;
  const page = sinkConditionPage(
    sink,
    { condition: 'sink.test', message, about: randomUUID() },
    now,
  );
  const context = { ...page.context, source };
  const held = { ...page, context, first: 0, count: 1 };
  const [event] = new DecodedPage(held, normalisersOf([])(context)).events;
  if (event === undefined) throw new Error('a page of one record has one event');
  return event;
}
