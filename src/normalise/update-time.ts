// The time of an object that was read before and has changed: its change time, otherwise its read
// time. Invariant: the creation time is never used as the time of an update.

import { isObject, type Json, type JsonObject } from '../contracts/index.ts';
import type { Reading } from './reading.ts';
import { canonicalName, slots } from './slots.ts';

const creationNames = new Set(
  'createdat created creationtime createtime createddate creationdate datecreated createdtime createdon openedat opened'.split(
    ' ',
  ),
);
/** The best first. */
const updateNames =
  'updatedat lastupdatedat lastupdated updated updatetime modifiedat lastmodifiedat lastmodified modified modificationtime changedat lastchanged statuschangedat'.split(
    ' ',
  );

/** Replaces a creation time by an update time; without one the slot is empty. */
export function useUpdateTime(reading: Reading, record: JsonObject): void {
  const name = reading.takes[slots.time]?.path.at(-1);
  if (name !== undefined && !creationNames.has(canonicalName(name))) return;
  reading.refuse(slots.time);
  reading.time = Number.NaN;
  const isTime = (value: Json | undefined) =>
    value !== undefined && !Number.isNaN(reading.parseTime(value));
  const found = updateTimeOf(record, isTime);
  if (found === undefined) return;
  // It stays in the rest too, where its key is visible.
  reading.values[slots.time] = found;
  reading.time = reading.parseTime(found);
}

function updateTimeOf(
  record: JsonObject,
  isTime: (value: Json | undefined) => boolean,
): Json | undefined {
  const inner = Object.values(record).filter(isObject);
  for (const object of [record, ...inner]) {
    const known = new Map(
      Object.entries(object).map(([name, value]) => [canonicalName(name), value]),
    );
    const found = updateNames.map((name) => known.get(name)).find(isTime);
    if (found !== undefined) return found;
  }
  return undefined;
}
