// The response of an HTTP Event Collector. Its `code` is more precise than the status
// (https://help.splunk.com, "Troubleshoot HTTP Event Collector", possible error codes). Invariant:
// dead letters come only from a code about an event; a response that is not a collector's, or
// concerns the token, index or channel, keeps every event in the spool.

import {
  type ExportError,
  type HttpResponse,
  isObject,
  type Json,
} from '../../../src/contracts/index.ts';
import {
  type FailedAnswer,
  heldNext,
  type MakeHttpError,
  unusableResponse,
} from '../../shared/http-post.ts';
import { parsedJson } from '../../shared/parsed-json.ts';

/** A response of a collector. */
export interface HecAnswer {
  readonly code: number;
  /** The id to query for the batch; null: none given. */
  readonly ackId: number | null;
  /** Index of the invalid event in the request, from 0; null: unknown. */
  readonly invalidEvent: number | null;
}

/** Null if this is not a collector's response. */
export function readHecAnswer(body: Uint8Array): HecAnswer | null {
  const said = parsedJson(body);
  if (!isObject(said) || typeof said.code !== 'number') return null;
  return {
    code: said.code,
    ackId: countOf(said.ackId),
    invalidEvent: countOf(said['invalid-event-number']),
  };
}

/** The queried batches that are indexed; null if this is not a response to the query. */
export function readAcks(body: Uint8Array, asked: readonly number[]): readonly number[] | null {
  const said = parsedJson(body);
  if (!isObject(said) || !isObject(said.acks)) return null;
  const { acks } = said;
  return asked.filter((id) => acks[id] === true);
}

/**
 * Classifies a failed response. `indexOf` names the index of an event of the request. `hasIndexes`:
 * the events of a sink are for several indexes, and a wrong one is that destination's fault.
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
  // An intermediary has its own reasons for a 400; no event is the cause.
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
  // An unknown code: only the status is known, and it may not be about an event.
  return response.status === 400 || response.status === 422 ? ofSink(noCollectorNext) : undefined;
}

/** The next step if the token has no acknowledgement although `ack: required` is set. */
export const noAckNext =
  'Enable indexer acknowledgement for the token in Splunk, which Splunk Cloud does not offer; or set ack: off: events then count as delivered when an indexer has received them. Nothing was lost.';

const noCollectorNext =
  'Check that the sink’s url is that of the HTTP Event Collector (port 8088, as a rule), and any proxy in between. Nothing was lost.';

/** A login page, a proxy’s text, an incomplete response. */
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
