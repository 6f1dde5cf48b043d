// Compiles a resolved mapping into functions that build an event's objects from a parsed record.
// Each mapped path has its own slot. Invariant: an object that lacks a required attribute is not
// built and its values go to `unmapped`, so every built object is valid, whatever the record
// contains.

import type { Json } from '../contracts/index.ts';
import { addressIn } from './address.ts';
import { type Coerce, coercionOf, isLossless } from './coerce.ts';
import { other } from './levels.ts';
import type { MappingTarget } from './mapping.ts';
import type { Draft, Reading } from './reading.ts';
import { type Attribute, objectOf, type Shape } from './schema.ts';
import { integerOf, sameWord } from './values.ts';
import { verdictOfWord, type WordVerdict } from './verdicts.ts';

/** A record on its way into an event; `uid` is for objects that need an id and have none. */
export interface Placing {
  readonly reading: Reading;
  readonly uid: string;
}

/**
 * Fills members of `target`; `index` selects the element of a list of objects, -1 outside lists.
 */
export type Fill = (target: Draft, placing: Placing, index: number) => void;

/** A mapped path with its slot, from some level of the event on. */
export interface Branching {
  readonly target: MappingTarget;
  readonly slot: number;
}

/** Maximum elements of a list of objects; a longer list stays in `unmapped` unchanged. */
const elementsMax = 1000;

/** Compiles the filler of one level's attributes (`depth` steps into the targets' paths). */
export function compileFill(
  branches: readonly Branching[],
  depth: number,
  shape?: Shape,
): readonly Fill[] {
  const byName = new Map<string, Branching[]>();
  for (const branch of branches) {
    const attribute = branch.target.way[depth];
    if (attribute === undefined) continue;
    // An enum and its caption are set together.
    const name = attribute.captionOf || attribute.name;
    byName.set(name, [...(byName.get(name) ?? []), branch]);
  }
  return [...byName.values()].map((group) => {
    const attribute = group[0]?.target.way[depth];
    if (attribute === undefined) return () => undefined;
    if (attribute.type === 'object') return objectFill(attribute, group, depth);
    if (attribute.type === 'enum' || attribute.captionOf !== '') return enumFill(group, depth);
    const hasPort = attribute.name === 'ip' && !attribute.list && shape?.attributes.has('port');
    return valueFill(attribute, group[0]?.slot ?? -1, hasPort ?? false);
  });
}

function valueAt(reading: Reading, slot: number, index: number): Json | undefined {
  const value = reading.values[slot];
  return index >= 0 && Array.isArray(value) ? value[index] : value;
}

/** `hasPort`: there is an attribute for a port beside the address. */
function valueFill(attribute: Attribute, slot: number, hasPort: boolean): Fill {
  const { name, type } = attribute;
  const coerce: Coerce = coercionOf(attribute);
  return (target, { reading }, index) => {
    const value = valueAt(reading, slot, index);
    if (value === undefined) return;
    const coerced = value === null ? undefined : coerce(value);
    if (coerced === undefined) {
      reading.putBack(slot);
      return;
    }
    target[name] = coerced;
    if (hasPort && coerced !== value) {
      const port = addressIn(value ?? null)?.port;
      // A port with its own mapping overwrites it later, or is already set.
      if (port !== undefined) target.port ??= port;
    }
    if (!isLossless(value ?? null, coerced, type)) reading.putBack(slot);
  };
}

/** The two attributes of an enum. */
export interface Chosen {
  readonly id: number;
  readonly caption: string | undefined;
}

/** Reads the id and the caption of an enum from the record's value for either. */
export function enumChoice(
  group: readonly Branching[],
  depth: number,
): (reading: Reading, index: number) => Chosen | undefined {
  const slotOf = (isCaption: boolean): number =>
    group.find(({ target }) => (target.way[depth]?.captionOf !== '') === isCaption)?.slot ?? -1;
  const idSlot = slotOf(false);
  const captionSlot = slotOf(true);
  const captions = group[0]?.target.way[depth]?.captions ?? new Map<string, string>();
  const ids = new Map([...captions].map(([id, caption]) => [caption.toLowerCase(), Number(id)]));
  const part = verdictPartOf(group[0]?.target.way[depth]);

  const idOf = (value: Json): number | undefined => {
    const number = integerOf(value);
    if (number !== undefined) return captions.has(String(number)) ? number : undefined;
    if (typeof value !== 'string') return undefined;
    return ids.get(value.toLowerCase()) ?? (part && verdictOfWord(value)?.[part]);
  };
  return (reading, index) => {
    const first = idSlot < 0 ? undefined : valueAt(reading, idSlot, index);
    const second = captionSlot < 0 ? undefined : valueAt(reading, captionSlot, index);
    const word = wordOf(second) ?? wordOf(first);
    const id =
      known(first, idOf) ??
      known(second, idOf) ??
      (word !== undefined && captions.has('99') ? other : undefined);
    const caption = id === other ? word : captions.get(String(id));
    const chosen =
      id === undefined ? undefined : { id, caption: caption === 'Other' ? undefined : caption };
    for (const [slot, value] of [
      [idSlot, first],
      [captionSlot, second],
    ] as const) {
      if (value !== undefined && !shows(chosen, value)) reading.putBack(slot);
    }
    return chosen;
  };
}

/** The verdict part of an attribute; undefined: none. */
export function verdictPartOf(attribute: Attribute | undefined): keyof WordVerdict | undefined {
  const name = attribute?.captionOf || attribute?.name;
  if (name === 'action_id') return 'action';
  return name === 'disposition_id' ? 'disposition' : undefined;
}

function known(
  value: Json | undefined,
  idOf: (value: Json) => number | undefined,
): number | undefined {
  return value === undefined ? undefined : idOf(value);
}

/** Caption of an unknown member; a long text is not a name. */
function wordOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value !== '' && value.length <= 256 ? value : undefined;
  return typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : undefined;
}

function shows(chosen: Chosen | undefined, value: Json): boolean {
  if (chosen === undefined) return false;
  if (value === chosen.id) return true;
  return (
    typeof value === 'string' && chosen.caption !== undefined && sameWord(value, chosen.caption)
  );
}

function enumFill(group: readonly Branching[], depth: number): Fill {
  const attribute = group[0]?.target.way[depth];
  const name = attribute?.captionOf || attribute?.name || '';
  const sibling = attribute?.captionOf ? attribute.name : (attribute?.sibling ?? '');
  const choose = enumChoice(group, depth);
  return (target, { reading }, index) => {
    const chosen = choose(reading, index);
    if (chosen === undefined) return;
    target[name] = chosen.id;
    if (chosen.caption !== undefined) target[sibling] = chosen.caption;
  };
}

function objectFill(attribute: Attribute, group: readonly Branching[], depth: number): Fill {
  const shape = objectOf(attribute.object);
  const fills = compileFill(group, depth + 1, shape);
  const complete = completion(shape, attribute.object);
  const slots = group.map(({ slot }) => slot);
  const { name, list } = attribute;

  const build = (placing: Placing, index: number): Draft | undefined => {
    const object: Draft = {};
    for (const fill of fills) fill(object, placing, index);
    return complete(object, placing) ? object : undefined;
  };
  return (target, placing, index) => {
    const { reading } = placing;
    if (slots.every((slot) => reading.values[slot] === undefined)) return;
    const built = list
      ? buildList(reading, slots, (at) => build(placing, at))
      : build(placing, index);
    if (built !== undefined) target[name] = built;
    else for (const slot of slots) reading.putBack(slot);
  };
}

/** One object per element, as many as the longest list; undefined if one is not valid. */
function buildList(
  reading: Reading,
  slots: readonly number[],
  build: (index: number) => Draft | undefined,
): Draft[] | undefined {
  let length = 1;
  for (const slot of slots) {
    const value = reading.values[slot];
    if (Array.isArray(value) && value.length > length) length = value.length;
  }
  if (length > elementsMax) return undefined;
  const all: Draft[] = [];
  for (let index = 0; index < length; index++) {
    const element = build(index);
    if (element === undefined) return undefined;
    all.push(element);
  }
  return all;
}

/** Completes an object with defaults (an enum's 0, an id); returns whether it is valid. */
export function completion(
  shape: Shape,
  object: string,
): (target: Draft, placing: Placing) => boolean {
  const required = [...shape.attributes.values()].filter((attribute) => attribute.required);
  const { some, one } = shape;
  return (target, { uid }) => {
    if (Object.keys(target).length === 0) return false;
    for (const { name, type, captions, sibling, list } of required) {
      if (target[name] !== undefined) continue;
      const caption = captions.get('0');
      if (type === 'enum' && caption !== undefined) {
        target[name] = list ? [0] : 0;
        target[sibling] = list ? [caption] : caption;
      } else if (object === 'finding_info' && name === 'uid') {
        target[name] = uid;
      } else {
        return false;
      }
    }
    if (some.length > 0 && !some.some((name) => target[name] !== undefined)) return false;
    return one.length === 0 || one.filter((name) => target[name] !== undefined).length === 1;
  };
}
