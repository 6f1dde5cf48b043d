// The facts of an event that detection rules search, as texts and numbers: for receivers whose fields hold no lists, such as
// Graylog and Google SecOps. A list is a text with one entry per line, so that a rule can match a whole entry (`(?m)^…$`).
// Invariants: no value ends its line, so no value can forge an entry; a list that was cut ends with the line `…`, which rules
// treat as a match, so nothing hides behind many values.

import type { Look, OcsfEvent } from '../src/contracts/index.ts';
import { ownFieldsOf, stateOf } from './ecs-own.ts';
import { part, textOf } from './parts.ts';
import { cutToBytes, fits, oneLine } from './text.ts';

/** The facts by name; a missing one is unknown. */
export type FlatFacts = Readonly<Record<string, string | number>>;

/** In bytes; below the longest term of an index. */
const listBytesMax = 32_000;
const cutLine = '\n…';

/** The facts of an event; `looks` collects the inspected properties of its values. */
export function flatFactsOf(ocsf: OcsfEvent, looks?: Look[]): FlatFacts {
  const { target, actor, change, run, conflicts } = ownFieldsOf(ocsf, looks);
  const approval = textOf(part(part(ocsf.unmapped).approval).state);
  if (approval !== undefined) looks?.push(looked(approval, 'text'));
  const { entries, values } = stateOf(ocsf);
  if (looks !== undefined) look(entries, values, looks);
  const facts = {
    target_type: target?.type,
    target_uid: target?.uid,
    target_name: target?.name,
    actor_kind: actor?.kind,
    change: listText(change ?? []),
    state: listText(entries),
    run,
    conflicts,
    approval,
  };
  return Object.fromEntries(
    Object.entries(facts).filter((fact): fact is [string, string | number] => {
      const [, value] = fact;
      return typeof value === 'number' || (value !== undefined && fits(value, listBytesMax));
    }),
  );
}

function looked(value: unknown, as: Look['as'], bytesMax = Number.POSITIVE_INFINITY): Look {
  return { value, as, bytesMax, rival: undefined };
}

/** The whole state fits: then only the lengths of its values count. Its changes are never longer. */
function look(entries: readonly string[], values: readonly unknown[], looks: Look[]): void {
  const texts = values.map(String);
  const between = bytesOf(entries) - bytesOf(texts);
  const isWhole = bytesOf(entries) + entries.length < listBytesMax;
  for (const value of values) {
    if (typeof value === 'string') looks.push(looked(value, 'line'));
    if (!isWhole) looks.push(looked(value, 'other'));
  }
  const bytesMax = listBytesMax - between - entries.length;
  if (isWhole && texts.length > 0) looks.push(looked(texts, 'together', bytesMax));
}

function bytesOf(texts: readonly string[]): number {
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0);
}

/** One entry per line; undefined if there is none. */
function listText(entries: readonly string[]): string | undefined {
  if (entries.length === 0) return undefined;
  const text = entries.map(oneLine).join('\n');
  if (fits(text, listBytesMax)) return text;
  const kept = cutToBytes(text, listBytesMax - Buffer.byteLength(cutLine));
  // Half an entry could be taken for another one.
  return kept.slice(0, Math.max(0, kept.lastIndexOf('\n'))) + cutLine;
}
