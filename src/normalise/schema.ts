// The OCSF 1.8.0 classes (https://schema.ocsf.io/1.8.0/classes) that sluice writes, with their
// attributes and objects, for checking and compiling mappings. The data is in ocsf-1.8.0.json,
// which `npm run ocsf-tables` generates from the official schema; it is never edited by hand.
// Loaded on first use.

import { readFileSync } from 'node:fs';

/** The value type of an attribute; `object` attributes name theirs in `object`. */
export type AttributeType =
  | 'text'
  | 'int'
  | 'long'
  | 'float'
  | 'bool'
  | 'time'
  | 'ip'
  | 'port'
  | 'mac'
  | 'email'
  | 'json'
  | 'choice'
  | 'enum'
  | 'object';

/** An attribute in the file. Defaults: no list, neither required nor recommended, no profile. */
export interface OcsfAttribute {
  readonly type: AttributeType;
  readonly object?: string;
  readonly list?: boolean;
  readonly required?: boolean;
  readonly recommended?: boolean;
  readonly profile?: string;
  readonly captions?: Readonly<Record<string, string>>;
  readonly sibling?: string;
}

/** A class's or object's attributes by name, and those of which at least one is required. */
export interface OcsfShape {
  readonly attributes: Readonly<Record<string, OcsfAttribute>>;
  readonly some?: readonly string[];
  readonly one?: readonly string[];
}

/** The content of the file. */
export interface OcsfTables {
  readonly version: string;
  readonly classes: Readonly<
    Record<string, OcsfShape & { readonly uid: number; readonly caption: string }>
  >;
  readonly objects: Readonly<Record<string, OcsfShape>>;
}

/** One attribute of a class or object. */
export interface Attribute {
  readonly name: string;
  readonly type: AttributeType;
  readonly object: string;
  readonly list: boolean;
  readonly required: boolean;
  readonly recommended: boolean;
  /** The profile that must be in `metadata.profiles` if the attribute is used. */
  readonly profile: string | null;
  /** For enums: captions by id. For choices: the texts. */
  readonly captions: ReadonlyMap<string, string>;
  /** For enums: the attribute that holds the caption. */
  readonly sibling: string;
  /** For the caption of an enum: that enum's attribute. */
  readonly captionOf: string;
}

/** Attributes by name, and the requirements. */
export interface Shape {
  readonly attributes: ReadonlyMap<string, Attribute>;
  readonly some: readonly string[];
  readonly one: readonly string[];
}

/** A class with its shape. */
export interface SchemaClass extends Shape {
  readonly uid: number;
  readonly caption: string;
  readonly activities: Readonly<Record<number, string>>;
  /** `activity_id` of a record without an activity. */
  readonly usual: number;
}

/** The classes that sluice writes, each with the `activity_id` of a record without an activity. */
const usualActivities = {
  base_event: 0,
  account_change: 0,
  authentication: 1,
  authorize_session: 0,
  entity_management: 0,
  user_access: 0,
  group_management: 0,
  detection_finding: 1,
  incident_finding: 1,
  network_activity: 6,
  http_activity: 0,
  dns_activity: 1,
  tunnel_activity: 0,
  inventory_info: 2,
  device_config_state_change: 1,
  application_lifecycle: 0,
  api_activity: 0,
} as const;

/** Names of the classes that sluice writes. */
export type ClassName = keyof typeof usualActivities;

/** Names of the classes that a mapping may give. */
export const classNames = Object.keys(usualActivities) as readonly ClassName[];

let read: OcsfTables | null = null;

function tables(): OcsfTables {
  const file = new URL('ocsf-1.8.0.json', import.meta.url);
  read ??= JSON.parse(readFileSync(file, 'utf8')) as OcsfTables;
  return read;
}

/** The class of that name, or undefined. */
export function classOf(name: string): SchemaClass | undefined {
  return isClassName(name) ? namedClass(name) : undefined;
}

/** The class of a known name. */
export function namedClass(name: ClassName): SchemaClass {
  const row = tables().classes[name];
  if (row === undefined) throw new Error(`ocsf-1.8.0.json lacks ${name}: write it again`);
  const { uid, caption, attributes } = row;
  const activities = attributes.activity_id?.captions ?? {};
  return { ...shapeOf(row), uid, caption, activities, usual: usualActivities[name] };
}

function isClassName(name: string): name is ClassName {
  return Object.hasOwn(usualActivities, name);
}

/** The object of that name; an unknown one has no attributes. */
export function objectOf(name: string): Shape {
  const { objects } = tables();
  return shapeOf((Object.hasOwn(objects, name) && objects[name]) || { attributes: {} });
}

function shapeOf({ attributes, some = [], one = [] }: OcsfShape): Shape {
  const all = Object.entries(attributes).map(([name, row]) => attributeOf(name, row));
  const byName = new Map(all.map((attribute) => [attribute.name, attribute]));
  // An enum and its caption are filled together.
  for (const { name, type, sibling, captions } of all) {
    const caption = byName.get(sibling);
    if (type === 'enum' && caption !== undefined)
      byName.set(sibling, { ...caption, captions, captionOf: name });
  }
  return { attributes: byName, some, one };
}

function attributeOf(name: string, row: OcsfAttribute): Attribute {
  return {
    name,
    type: row.type,
    object: row.object ?? '',
    list: row.list ?? false,
    required: row.required ?? false,
    recommended: row.recommended ?? false,
    profile: row.profile ?? null,
    captions: new Map(Object.entries(row.captions ?? {})),
    sibling: row.sibling ?? '',
    captionOf: '',
  };
}
