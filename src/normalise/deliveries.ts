// Events that upstream delivers by webhook. Their bodies are not documented: they are normalised as
// audit records, so that each gets the class of its subject, and the acting agent or person is
// found. The delivery's headers are added to the body's data.

import { isObject, type JsonObject, type PageContext } from '../contracts/index.ts';
import { auditNormaliser } from './audit.ts';
import type { BaseEvent, Normalise } from './base.ts';
import { commonRank, type SourcePaths } from './branch.ts';
import type { Product } from './envelope.ts';
import type { Reading } from './reading.ts';
import { slots, wrapperRank } from './slots.ts';
import { isTextual } from './values.ts';
import { deliveryVocabulary } from './vocabulary.ts';

/** Normalises delivered events as audit records, and other records as Base Events. */
export function withEvents(
  baseEvent: BaseEvent,
  asked: SourcePaths,
  product: Product | undefined,
): BaseEvent {
  let ofDeliveries: BaseEvent | undefined;
  const normalise: Normalise = (record, uid, context) => {
    if (context.delivery === undefined) return baseEvent(record, uid, context);
    ofDeliveries ??= auditNormaliser(asked, product, {
      vocabulary: deliveryVocabulary(),
      complete: completeDelivery,
    });
    return ofDeliveries(record, uid, context);
  };
  return Object.assign(normalise, { attention: baseEvent.attention });
}

/** Members that hold an event's subject if it is not named by its kind. */
const holders = ['data', 'payload', 'body'];

/** Sets the subject if no common name has shown one, and the event's name. */
function completeDelivery(reading: Reading, record: JsonObject, { delivery }: PageContext): void {
  const { values } = reading;
  const holder = holders.map((name) => record[name]).find(isObject);
  if (holder !== undefined && values[slots.targetUid] === undefined) {
    const { id, name, title } = holder;
    const called = [name, title].find((one) => typeof one === 'string' && one !== '');
    if (id !== null && id !== undefined && isTextual(id)) values[slots.targetUid] = id;
    values[slots.targetName] ??= called;
  }
  const take = reading.takes[slots.operation];
  const isOutside = take !== undefined && take.rank < commonRank + wrapperRank;
  if (isOutside || delivery?.event === undefined || delivery.event === null) return;
  // The subject's own operation name is not the event; the header names the event.
  if (values[slots.operation] !== delivery.event) reading.putBack(slots.operation);
  values[slots.operation] = delivery.event;
}

/** Adds the headers of a delivery to the body's data. */
export function withDelivery(normalise: Normalise): Normalise {
  const withHeaders: Normalise = (record, uid, context) => {
    const event = normalise(record, uid, context);
    const { delivery } = context;
    if (delivery === undefined) return event;
    const { metadata, message, unmapped } = event;
    const { event: name } = delivery;
    const said = { event_code: metadata.event_code ?? name, message: message ?? name };
    return {
      ...event,
      ...(said.message === null ? {} : { message: said.message }),
      metadata: said.event_code === null ? metadata : { ...metadata, event_code: said.event_code },
      unmapped: { delivery: { ...delivery }, ...unmapped },
    };
  };
  const { attention } = normalise;
  return attention === undefined ? withHeaders : Object.assign(withHeaders, { attention });
}
