// What the HTTP Event Collector says. Its `code` says more than the status
// (https://help.splunk.com, "Troubleshoot HTTP Event Collector", possible error codes). What must
// stay true: dead letters come only from a code that speaks of an event; whatever is no answer of a
// collector, or speaks of the token, index or channel, leaves every event held.

import type { ExportError } from '../../../src/contracts/errors.ts';
import { isObject, type Json } from '../../../src/contracts/json.ts';
import type { HttpResponse } from '../../../src/contracts/tools.ts';
import {
  type FailedAnswer,
  heldNext,
  type MakeHttpError,
  unusableResponse,
} from '../../shared/http-post.ts';
import { parsedJson } from '../../shared/parsed-json.ts';

/** An answer of a collector. */
export interface HecAnswer {
  readonly code: number;
  /** By which the batch is asked for; null: it gives none. */
  readonly ackId: number | null;
  /** The place of the event that is wrong in the request, from 0; null: it does not say. */
  readonly invalidEvent: number | null;
}

/** Null where this is no answer of a collector. */
export function readHecAnswer(body: Uint8Array): HecAnswer | null {
  const said = parsedJson(body);
  if (!isObject(said) || typeof said.code !== 'number') return null;
  return {
    code: said.code,
    ackId: countOf(said.ackId),
    invalidEvent: countOf(said['invalid-event-number']),
  };
}

/** Which of the batches that were asked for are indexed; null where this is no answer to that. */
export function readAcks(body: Uint8Array, asked: readonly number[]): readonly number[] | null {
  const said = parsedJson(body);
  if (!isObject(said) || !isObject(said.acks)) return null;
  const { acks } = said;
  return asked.filter((id) => acks[id] === true);
}

/**
 * What a failed answer means. `indexOf` names the index that an event of the request is for. With
 * `hasIndexes` the events of a sink are for several indexes: a wrong one is that destination's fault.
 */
export function judgeHec(
  response: HttpResponse,
  failure: MakeHttpError,
  indexOf: (place: number) => string = () => 'the index',
  hasIndexes = false,
): FailedAnswer | undefined {
  const said = readHecAnswer(response.body);
  const ofSink = (next: string): FailedAnswer => ({
    outcome: 'refused',
    scope: 'sink',
    cause: failure('sink_refused', next),
  });
  // What stands in between has its own reasons to call a request bad; no event is the cause.
  if (said === null) return response.status === 400 ? ofSink(noCollectorNext) : undefined;
  switch (said.code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 16:
    case 21:
    case 22:
      return ofSink('Check the sink’s token, and in Splunk that it is enabled; nothing was lost.');
    case 6:
    case 12:
    case 13:
    case 15: {
      const next = 'It is kept as a dead letter; see there why, then retry it.';
      const cause = failure('record_refused', next);
      const { invalidEvent: at } = said;
      return at === null ? { outcome: 'too_large', cause } : { outcome: 'spoiled', at, cause };
    }
    case 7: {
      const next = `Create ${indexOf(said.invalidEvent ?? 0)} in Splunk and allow it to the token, or set the sink’s index; nothing was lost.`;
      if (!hasIndexes) return ofSink(next);
      const cause = failure('sink_refused', next);
      return { outcome: 'refused', scope: 'batch', by: 'destination', cause };
    }
    case 9: {
      const next = `Its queues are full: it is left alone for a while. ${heldNext}`;
      return { outcome: 'retry', cause: failure('sink_throttled', next) };
    }
    case 10:
      return ofSink(
        'A proxy in between removes the header X-Splunk-Request-Channel: let it through. Nothing was lost.',
      );
    case 11: {
      const next = `A new channel is opened. ${heldNext}`;
      return { outcome: 'retry', cause: failure('sink_unreachable', next) };
    }
    case 14:
      return ofSink(noAckNext);
  }
  // A code that is new here: only the status is known, and it need not be about an event.
  return response.status === 400 || response.status === 422 ? ofSink(noCollectorNext) : undefined;
}

/** What to do where the token does not acknowledge though `ack: required` says so. */
export const noAckNext =
  'Enable indexer acknowledgement for the token in Splunk, which Splunk Cloud does not offer; or set ack: off: events then count as delivered when an indexer has received them. Nothing was lost.';

const noCollectorNext =
  'Check that the sink’s url is that of the HTTP Event Collector (port 8088, as a rule), and any proxy in between. Nothing was lost.';

/** A login page, a proxy’s words, half an answer. */
export function noCollector(response: HttpResponse, doing: string): ExportError {
  return unusableResponse(response, {
    doing,
    whose: 'an HTTP Event Collector',
    next: noCollectorNext,
  });
}

function countOf(value: Json | undefined): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}
