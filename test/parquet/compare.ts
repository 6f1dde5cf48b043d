// What differs between an event and a row of Parquet as any reader shows it: structs with nulls for what the event does
// not have, and text where the column holds JSON. It knows of sluice's own reading only the name `ocsf_rest`.

import { isDeepStrictEqual } from 'node:util';
import { isObject, type Json, type JsonObject } from '../../src/contracts/json.ts';

/** Paths at which the two differ, each with both values; none if every value is in the row. */
export function differences(event: JsonObject, row: JsonObject): readonly string[] {
  const { unmapped: text, ...columns } = row;
  const whole = typeof text === 'string' ? (JSON.parse(text) as JsonObject) : {};
  const { ocsf_rest: rest = {}, ...unmapped } = isObject(whole) ? whole : {};
  const { unmapped: own, ...attributes } = event;
  const found: string[] = [];
  compare(attributes, columns, isObject(rest) ? { ...rest, unmapped: undefined } : rest, '', found);
  const shown = isObject(rest) && Object.hasOwn(rest, 'unmapped') ? rest.unmapped : unmapped;
  if (!isDeepStrictEqual(shown, own ?? {})) found.push('unmapped');
  return found;
}

/** `row`: what the column shows; `rest`: what stands in `unmapped` for it. */
function compare(
  event: Json | undefined,
  row: Json | undefined,
  rest: Json | undefined,
  place: string,
  found: string[],
): void {
  const differ = () => found.push(`${place}: ${JSON.stringify({ event, row, rest })}`);
  if (event === undefined) {
    if (!isNothing(row) || rest !== undefined) differ();
  } else if (isNothing(row) && !(isObject(event) && isObject(rest))) {
    if (!isDeepStrictEqual(rest, event)) differ();
  } else if (typeof row === 'string' && row !== event) {
    if (rest !== undefined || !isDeepStrictEqual(JSON.parse(row), event)) differ();
  } else if (Array.isArray(event) && Array.isArray(row)) {
    if (event.length !== row.length) differ();
    event.forEach((one: Json, at) => {
      compare(one, row[at], isObject(rest) ? rest[at] : undefined, `${place}.${at}`, found);
    });
  } else if (isObject(event) && (isObject(row) || row === null || row === undefined)) {
    const left = isObject(rest) ? rest : {};
    const shown = row ?? {};
    for (const name of new Set([event, shown, left].flatMap(Object.keys))) {
      const own = [event, shown, left].map((of) =>
        Object.hasOwn(of, name) ? of[name] : undefined,
      );
      compare(own[0], own[1], own[2], `${place}.${name}`, found);
    }
  } else if (row !== event || rest !== undefined) differ();
}

function isNothing(row: Json | undefined): boolean {
  if (row === null || row === undefined) return true;
  return isObject(row) && Object.values(row).every(isNothing);
}
