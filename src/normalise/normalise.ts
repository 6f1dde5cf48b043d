// Entry point of normalising: the pure function from a record, as upstream sent it, to an OCSF
// 1.8.0 event. It runs when an event is first formatted, between the spool and the sinks, so that a
// better mapping applies to stored records by a replay. Invariants: it is total (any JSON value
// gives a valid event); nothing of the record is lost (values without an attribute are in
// `unmapped`); the same record always gives the same event.

import type { Mapping } from '../contracts/config.ts';
import { compileTimeFormats, type RecordKind } from '../contracts/index.ts';
import { auditNormaliser } from './audit.ts';
import { baseEventMaker, type Normalise } from './base.ts';
import type { ConfiguredPath, SourcePaths } from './branch.ts';
import { driftNormaliser } from './changes.ts';
import { withDelivery, withEvents } from './deliveries.ts';
import type { Product } from './envelope.ts';
import { logNormaliser } from './logs.ts';
import { conditionNormaliser } from './own-records.ts';
import { slots } from './slots.ts';
import { parseTime } from './time.ts';

export { mappingFlaws } from './mapping.ts';
export type { Mapping, Normalise };

/** How one source's records are normalised. */
export interface NormaliseSettings {
  /** Record paths of the event's time; the first valid one is used, then the common names. */
  readonly time: readonly string[];
  /** Record path of upstream's id; null: records have none. */
  readonly id: string | null;
  /** Accepted time formats in addition to the usual ones (contracts/time-forms.ts). */
  readonly timeFormats?: readonly string[];
  /** For logs and changes: the OCSF class and the attribute for each value. */
  readonly mapping?: Mapping;
  /** For logs without a mapping: they are audit records. */
  readonly records?: 'audit';
  /** For changes: the mapping for entities of the first scan. */
  readonly state?: Mapping;
  /** The name of the records' parent, if they have one. */
  readonly parent?: string;
  /** The product in `metadata`. Default: the source's name. */
  readonly product?: Product;
}

/**
 * Compiles the normaliser of one source, once. A mapping with flaws (see `mappingFlaws`) still
 * compiles: wrong fields are omitted, and with an unknown class all records become Base Events.
 */
export function compileNormaliser(kind: RecordKind, settings: NormaliseSettings): Normalise {
  const asked = {
    configured: requestedPaths(settings),
    parseTime: timeParser(settings.timeFormats),
  };
  const normalise = normaliserOf(kind, settings, asked);
  // The transcoder, which writes lines without normalising each record, knows only the usual time
  // formats.
  if ((settings.timeFormats ?? []).length === 0) return normalise;
  return (record, uid, context) => normalise(record, uid, context);
}

/**
 * Declared formats come first: the config decides about a text that could also be an epoch number.
 */
function timeParser(formats: readonly string[] = []): SourcePaths['parseTime'] {
  if (formats.length === 0) return parseTime;
  const parseDeclared = compileTimeFormats(formats);
  return (value) => {
    const time = typeof value === 'string' ? parseDeclared(value) : Number.NaN;
    return Number.isNaN(time) ? parseTime(value) : time;
  };
}

function normaliserOf(
  kind: RecordKind,
  settings: NormaliseSettings,
  asked: SourcePaths,
): Normalise {
  const baseEvent = baseEventMaker(asked, settings.product);
  switch (kind) {
    case 'audit':
      return auditNormaliser(asked, settings.product);
    case 'drift':
      return driftNormaliser({ ...settings, parseTime: asked.parseTime }, baseEvent);
    case 'condition':
      return conditionNormaliser(baseEvent);
    case 'answer':
      return baseEvent;
    case 'log':
      if (settings.records === 'audit' && settings.mapping === undefined) {
        return auditNormaliser(asked, settings.product);
      }
      return withDelivery(
        settings.mapping === undefined
          ? withEvents(baseEvent, asked, settings.product)
          : logNormaliser({
              mapping: settings.mapping,
              asked,
              product: settings.product,
              parent: settings.parent,
              baseEvent,
            }),
      );
  }
}

function requestedPaths({ time, id }: NormaliseSettings): readonly ConfiguredPath[] {
  const requested: ConfiguredPath[] = time.map((path, index) => ({
    path,
    slot: slots.time,
    accepts: 'time',
    rank: index + 1,
  }));
  if (id !== null) requested.push({ path: id, slot: slots.id, accepts: 'text', rank: 1 });
  return requested;
}
