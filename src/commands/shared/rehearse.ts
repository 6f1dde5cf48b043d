// Processes one record as a run would, without spool, network or clock: normalised by its source's mapping, routed,
// filtered and redacted for each sink, and encoded for that sink. `preview` shows the result and `test` compares it.
// Invariant: the same code works as in a run, so that a rehearsal shows the exact delivery.

import { type Event, type HeldPage, invariant, type Stream } from '../../contracts/index.ts';
import { Identifier, pageContext } from '../../fetch/index.ts';
import type { Plan } from '../../run/index.ts';
import { encodeLines, type PlannedSink } from '../../send/delivery.ts';
import { DecodedPage, maskRoutes, normalisersOf, selectionFor } from '../../send/index.ts';
import { scanBody } from '../../tools/index.ts';

/** The record to process. */
export interface Rehearsed {
  readonly stream: Stream;
  /** UTF-8 JSON of one record, which the caller has seen to parse. */
  readonly record: Uint8Array;
  /** Epoch milliseconds: the assumed time of reading. */
  readonly readAt: number;
}

/** The result. */
export interface Rehearsal {
  /** As normalised, before any route. */
  readonly event: Event;
  readonly sinks: readonly SinkRehearsal[];
}

/** The result for one sink. */
export interface SinkRehearsal {
  readonly sink: PlannedSink;
  /** The event as this sink is to see it; null where it gets nothing. */
  readonly event: Event | null;
  /** The exact bytes that would be sent, before framing and compression; null: nothing is sent. */
  readonly bytes: Uint8Array | null;
  /** Why nothing is sent: no route leads there, or every route's filter drops the event. */
  readonly left: 'unrouted' | 'filtered' | null;
  /** Filters that could not judge the event, and so let it pass. */
  readonly failed: readonly string[];
}

/** Rehearses a record. Total for any record that parses. */
export function rehearse(plan: Plan, { stream, record, readAt }: Rehearsed): Rehearsal {
  const kind = stream.kind === 'collection' ? 'drift' : stream.records;
  const whose = stream.kind === 'parents' ? { parent: 'parent' } : {};
  const context = { ...pageContext(stream, kind, readAt), ...whose };
  const body = Buffer.concat([Buffer.from('['), record, Buffer.from(']')]);
  const held: HeldPage = {
    context,
    body,
    items: '',
    kept: null,
    uids: uidOf(stream, body),
    first: 0,
    count: 1,
  };
  const [event] = new DecodedPage(held, normalisersOf(plan.sources)(context)).events;
  invariant(event !== undefined, 'a page of one record has one event');
  return { event, sinks: plan.sinks.map((sink) => forSink(plan, sink, event)) };
}

/** The uid that a run gives a new record; the uid of a change depends on the reading that found it. */
function uidOf(stream: Stream, body: Uint8Array): Buffer {
  const { source, company = '', name } = stream;
  const { id, ignore } = stream.kind === 'list' ? stream : { id: null, ignore: [] };
  const identifier = new Identifier({ source, company, stream: name });
  const { records } = scanBody(body, '', id, ignore);
  invariant(records !== null, 'the body is the array of records');
  const identified = identifier.identify(records);
  const isNamed = identified.named[0] === 1;
  const uid = isNamed ? identifier.uid(identified, 0) : identifier.twinUid(identified, 0, 1);
  return Buffer.from(uid, 'latin1');
}

function forSink({ routes }: Plan, sink: PlannedSink, event: Event): SinkRehearsal {
  const failed: string[] = [];
  const way = { source: event.source, sink: sink.name };
  const selection = selectionFor(routes, way, ({ where, why }) => failed.push(`${where}: ${why}`));
  if (selection === null) return { sink, event: null, bytes: null, left: 'unrouted', failed };
  const seen = selection.select(event);
  if (seen === null) return { sink, event: null, bytes: null, left: 'filtered', failed };
  return { sink, event: seen, bytes: encoded(sink, seen), left: null, failed };
}

function encoded({ format }: PlannedSink, event: Event): Uint8Array {
  const { bytes, starts, ends } = encodeLines([event], format);
  return bytes.subarray(starts[0], ends[0]);
}

/** The event with every mask of its source's routes, for a reader that is no sink. */
export function maskedForAll(event: Event, routes: Plan['routes']): Event {
  const way = { source: event.source, sink: '' };
  return selectionFor(maskRoutes(routes)(event.source), way, () => {})?.select(event) ?? event;
}
