// The Base Event: the form of any record without a class of its own, so that no record of upstream
// is withheld because of its shape. The whole record is in `unmapped`; time, id, severity, status
// and message are also set if clearly found. Invariant: accepts every JSON value.

import {
  isObject,
  type JsonObject,
  type OcsfEvent,
  type PageContext,
  type ParsedRecord,
  type Uid,
} from '../contracts/index.ts';
import type { SourcePaths } from './branch.ts';
import {
  EventClass,
  factsOf,
  metadataMaker,
  type Product,
  setSeverity,
  setStatus,
  stampTenant,
} from './envelope.ts';
import { statusReader } from './levels.ts';
import { Reading, slotsReadBy } from './reading.ts';
import { namedClass } from './schema.ts';
import { type Attention, slotCount, slots } from './slots.ts';
import { useUpdateTime } from './update-time.ts';
import { logVocabulary } from './vocabulary.ts';

/** Converts one record to an event. Pure and total. */
export interface Normalise {
  (record: ParsedRecord, uid: Uid, context: PageContext): OcsfEvent;
  /** Default: any value read may decide the form of the event. */
  readonly attention?: Attention;
}

/** Converts any record to a Base Event. */
export interface BaseEvent extends Normalise {
  readonly attention: Attention;
}

const passedOn: Attention['passedOn'] = new Map([
  [slots.id, 'nothing'],
  [slots.time, 'nothing'],
  [slots.message, 'nothing'],
]);

/** Creates the fallback of a source; `asked` has the config's paths for time and id. */
export function baseEventMaker(asked: SourcePaths, product: Product | undefined): BaseEvent {
  const eventClass = new EventClass(namedClass('base_event'));
  const metadataOf = metadataMaker(product);
  const vocabulary = logVocabulary();
  const reading = new Reading({ vocabulary, ...asked, slotCount, readStatus: statusReader() });
  const nothing: JsonObject = {};

  const normalise = (record: ParsedRecord, uid: Uid, context: PageContext): OcsfEvent => {
    const object = isObject(record);
    reading.read(object ? record : nothing);
    if (object && context.isUpdate === true) useUpdateTime(reading, record);
    const metadata = metadataOf(uid, context, factsOf(reading, undefined));
    const event = eventClass.start(0, undefined, 0, metadata);
    if (!Number.isNaN(reading.time)) event.time = reading.time;
    stampTenant(metadata, reading);
    setSeverity(event, reading);
    setStatus(event, reading);
    const message = reading.text(slots.message);
    if (message !== undefined) event.message = message;
    event.unmapped = object ? record : { value: record };
    return event;
  };
  return Object.assign(normalise, { attention: slotsReadBy(reading, passedOn) });
}
