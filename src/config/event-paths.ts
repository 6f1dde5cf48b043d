// Checks paths within events, as filters and redactions name them, against the attributes of the OCSF classes of a
// route's sources. Invariants: no possible path is rejected; a misspelt path never passes, because a failing filter
// passes every event, and a redaction without a match hides nothing.

import {
  type Attribute,
  type ClassName,
  classNames,
  namedClass,
  objectOf,
  type Shape,
  setBySluice,
} from '../normalise/index.ts';
import { type EventPath, type FilterComparison, hint } from '../tools/index.ts';
import type { ConfiguredSource } from './sources.ts';

/** Classes of changes, and of detections made from them. */
const ofChanges: ReadonlySet<ClassName> = new Set(['entity_management', 'detection_finding']);

/** Classes of audit records. */
export const auditClasses: readonly ClassName[] = [
  'api_activity',
  'entity_management',
  'authentication',
];

/** The classes of a source's events; of an unknown source, all. */
export function classesOf(source: ConfiguredSource | null): readonly ClassName[] {
  if (source === null) return classNames;
  const { definition, settings } = source;
  const { mapping, state } = definition.reading(settings);
  const named = [mapping?.class, state?.class];
  return [
    // Records without another class, and conditions of the source.
    ...(['base_event', 'application_lifecycle'] as const),
    ...(definition.collection === undefined
      ? listClasses(mapping?.class, 'mapping' in definition.fields && !isRead(source))
      : classNames.filter((name) => ofChanges.has(name) || named.includes(name))),
  ];
}

/** Parsed as audit records, like webhook events without a mapped class. */
function isRead({ definition, settings }: ConfiguredSource): boolean {
  const { mapping, records } = definition.reading(settings);
  return records === 'audit' || (definition.type === 'webhooks' && mapping === undefined);
}

function listClasses(mapped: string | undefined, isLog: boolean): readonly ClassName[] {
  if (!isLog) return auditClasses;
  return classNames.filter((name) => name === mapped);
}

/** How a list in a path is read: a redaction applies to each element, a filter names one. */
type Lists = 'each' | 'named';

/** The flaw of a path; null: none. */
export function pathFlaw(
  path: EventPath,
  classes: readonly ClassName[],
  lists: Lists,
): string | null {
  const { place, steps } = walk(path, classes, lists);
  const name = path[steps];
  if (name === undefined || name === null) return null;
  const before = path.slice(0, steps);
  if (place.isList) {
    const list = pathText(before);
    return `${list} is a list; for any element: event.${list}.exists(one, one.${name} …)`;
  }
  const known = namesBelow(place, dotted(before));
  if (known.length === 0) return `${pathText(before)} is a value, and has no ${name}`;
  const upTo = path.slice(0, steps + 1);
  const others = classNames.filter((one) => walk(upTo, [one], lists).steps > steps);
  const near =
    others.length === 0 ? hint(name, known) : `; those of ${others.slice(0, 3).join(', ')} have it`;
  return `no event of these sources has ${pathText(upTo)}${near}`;
}

/** True if the value at a path cannot be true or false: a text, a number or an object. */
export function isNoFlag(path: EventPath, classes: readonly ClassName[]): boolean {
  const { place } = walk(path, classes, 'named');
  return !place.isOpen && !place.attributes.some(({ type, list }) => type === 'bool' && !list);
}

/** The flaw of masking the value at a path; null: none. Only texts have masked forms. */
export function maskFlaw(path: readonly string[], classes: readonly ClassName[]): string | null {
  const text = path.join('.');
  if (path[0] !== 'unmapped' && (setBySluice.has(text) || text === 'metadata.tenant_uid')) {
    return `${text} identifies the event, its stream or its class, and is not masked`;
  }
  const { place } = walk(path, classes, 'each');
  const { attributes, isOpen } = place;
  if (isOpen || attributes.length === 0) return null;
  if (attributes.some(({ type }) => type !== 'object' && type !== 'bool' && !numbers.has(type)))
    return null;
  return `${text} is ${kindOf(attributes[0]?.type ?? 'object')}, and only a text is masked; name a text, or use redact`;
}

/** The flaw of comparing the value at a path with a value of another type, or null. */
export function valueFlaw(
  path: EventPath,
  value: FilterComparison['value'],
  classes: readonly ClassName[],
): string | null {
  const { place, steps } = walk(path, classes, 'named');
  if (place.isOpen || place.attributes.length === 0 || steps < path.length) return null;
  const kinds = place.isList ? ['a list'] : place.attributes.map(({ type }) => kindOf(type));
  const other = kindOfValue(value);
  if (kinds.includes(other)) return null;
  const written = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return `${pathText(path)} is ${kinds[0]}, and ${written} is ${other}`;
}

function kindOf(type: Attribute['type']): string {
  if (type === 'bool') return 'true or false';
  if (type === 'object') return 'an object';
  return numbers.has(type) ? 'a number' : 'a text';
}

const numbers: ReadonlySet<string> = new Set(['int', 'long', 'float', 'time', 'port', 'enum']);

function kindOfValue(value: FilterComparison['value']): string {
  if (typeof value === 'boolean') return 'true or false';
  return typeof value === 'string' ? 'a text' : 'a number';
}

/** The possible values at a path. */
interface Place {
  /** Empty for the event itself. */
  readonly attributes: readonly Attribute[];
  readonly shapes: readonly Shape[];
  readonly isList: boolean;
  /** Any value may be here and below. */
  readonly isOpen: boolean;
}

/** The number of steps of a path that exist, and the possible values at the last of them. */
function walk(path: EventPath, classes: readonly ClassName[], lists: Lists) {
  const event = classes.map(namedClass);
  let place: Place = { attributes: [], shapes: event, isList: false, isOpen: false };
  for (const [steps, name] of path.entries()) {
    if (place.isOpen) break;
    if (name === null) {
      // The elements of an object are its keys.
      place = { ...place, isOpen: !place.isList, isList: false };
      continue;
    }
    const isLoose = place.isList && lists === 'named';
    const next = isLoose ? null : below(place, dotted(path.slice(0, steps)), name);
    if (next === null) return { place: { ...place, isList: isLoose }, steps };
    place = next;
  }
  return { place, steps: path.length };
}

/** A path in its written form. */
export function pathText(path: EventPath): string {
  return path.map((step, i) => (step === null ? '[]' : `${i === 0 ? '' : '.'}${step}`)).join('');
}

function dotted(path: EventPath): string {
  return path.filter((step) => step !== null).join('.');
}

function below({ shapes }: Place, before: string, name: string): Place | null {
  const path = before === '' ? name : `${before}.${name}`;
  if (setBySluice.has(path)) return ownPlace(path);
  const attributes = shapes.flatMap((shape) => shape.attributes.get(name) ?? []);
  if (attributes.length === 0) return null;
  return {
    attributes,
    shapes: attributes.flatMap(({ type, object }) => (type === 'object' ? objectOf(object) : [])),
    isList: attributes.some(({ list }) => list),
    isOpen: attributes.some(({ type }) => type === 'json'),
  };
}

/** Attributes that sluice sets itself; a product has special names. */
function ownPlace(path: string): Place {
  const isOpen = path === 'unmapped' || path === 'metadata.product';
  return { attributes: [], shapes: [], isList: path === 'metadata.profiles', isOpen };
}

function namesBelow({ shapes }: Place, before: string): readonly string[] {
  const lead = before === '' ? '' : `${before}.`;
  const own = [...setBySluice].flatMap((path) => {
    const name = path.slice(lead.length);
    return path.startsWith(lead) && !name.includes('.') ? [name] : [];
  });
  const names = [...shapes.flatMap(({ attributes }) => [...attributes.keys()]), ...own];
  return [...new Set(names)];
}
