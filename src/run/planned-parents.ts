// The parents of a source (`each`), with the function that finds their ids in the records of another source. Invariant: an
// event that the filter cannot judge causes no request.

import type { ParentsReading, RecordReading } from '../contracts/config.ts';
import { type Json, type NewPage, uidBytes } from '../contracts/index.ts';
import type { PlannedParents } from '../fetch/engine.ts';
import { DecodedPage, normalisersOf } from '../send/index.ts';
import { compileFilter, valueAt } from '../tools/index.ts';

/** The parents of a source, with the reading of the records that contain them. */
export function plannedParents(reading: ParentsReading, from?: RecordReading): PlannedParents {
  const { each } = reading;
  if ('ids' in each || from === undefined) return reading;
  const normaliserFor = normalisersOf([{ name: each.of, reading: from }]);
  let isJudged = true;
  const passes = each.where
    ? compileFilter(each.where, () => {
        isJudged = false;
      })
    : () => true;
  const valuesIn = (page: NewPage) => {
    if (page.context.kind === 'condition') return [];
    const held = { ...page, first: 0, count: page.uids.length / uidBytes };
    const decoded = new DecodedPage(held, normaliserFor(page.context));
    return decoded.events.flatMap((event, at) => {
      isJudged = true;
      // A filter passes events that it cannot judge, but these must not cause requests.
      const isTaken = passes(event) && isJudged;
      return isTaken ? idsOf(valueAt(decoded.record(at), each.id)) : [];
    });
  };
  return { ...reading, valuesIn };
}

function idsOf(value: Json | undefined): readonly string[] {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(idsOf);
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : [];
}
