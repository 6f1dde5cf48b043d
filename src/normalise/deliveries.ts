// Events that upstream delivers by webhook. Their bodies are not documented: they are read as audit
// records are, so that each becomes an event of the class of its subject, and the agent or person
// who acts is found. What the headers of a delivery say stands beside what its body does.

import type { PageContext } from '../contracts/event.ts';
import { isObject, type JsonObject } from '../contracts/json.ts';
import { auditNormaliser } from './audit.ts';
import type { BaseEvent, Normalise } from './base.ts';
import { commonRank, type SourcePaths } from './branch.ts';
import type { Product } from './envelope.ts';
import type { Reading } from './reading.ts';
import { slots, wrapperRank } from './slots.ts';
import { isTextual } from './values.ts';
import { deliveryVocabulary } from './vocabulary.ts';

/** Reads delivered events as audit records, and other records as Base Events. */
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

/** Members that hold an event's subject, where it is not named by its kind. */
const holders = ['data', 'payload', 'body'];

/** Sets the subject where no common name has shown one, and the name of the event. */
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
  // What the subject calls itself is not what happened to it; the header says that.
  if (values[slots.operation] !== delivery.event) reading.putBack(slots.operation);
  values[slots.operation] = delivery.event;
}

/** What the headers of a delivery say stands beside what its body does. */
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
