// Reads the tables of schema-classes.ts and schema-objects.ts into what mappings are checked and compiled against.
// Nothing is read before it is asked for.

import { baseAttributes, type ClassRow, classRows } from './schema-classes.ts';
import { enumRows, objectRows } from './schema-objects.ts';

/** What an attribute's value must be; `object` attributes name theirs in `object`. */
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

/** One attribute of a class or object. */
export interface Attribute {
  readonly name: string;
  readonly type: AttributeType;
  readonly object: string;
  readonly list: boolean;
  readonly required: boolean;
  /** The profile that must be in `metadata.profiles` where the attribute is used. */
  readonly profile: 'security_control' | 'host' | null;
  /** For enums: captions by id. For choices: the texts. */
  readonly captions: ReadonlyMap<string, string>;
  /** For enums: the attribute that holds the caption. */
  readonly sibling: string;
  /** For the caption of an enum: that enum's attribute. */
  readonly captionOf: string;
}

/** Attributes by name, and what must be there. */
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
  readonly usual: number;
}

/** Names of the classes that sluice writes. */
export type ClassName = keyof typeof classRows;

/** Names of the classes that a mapping may give. */
export const classNames = Object.keys(classRows) as readonly ClassName[];

/** The class of that name, or undefined. */
export function classOf(name: string): SchemaClass | undefined {
  return isClassName(name) ? namedClass(name) : undefined;
}

/** The class of a name that is known to be one. */
export function namedClass(name: ClassName): SchemaClass {
  const row: ClassRow = classRows[name];
  const attributes = new Map<string, Attribute>();
  for (const token of `${baseAttributes} ${row.attributes}`.trim().split(' ')) {
    if (token.startsWith('-')) attributes.delete(token.slice(1));
    else
      for (const attribute of readToken(token, row.activities))
        attributes.set(attribute.name, attribute);
  }
  const activities = Object.fromEntries(captionsOf(row.activities));
  const { uid, caption, usual } = row;
  return { ...shape(attributes, row.some, row.one), uid, caption, activities, usual };
}

function isClassName(name: string): name is ClassName {
  return Object.hasOwn(classRows, name);
}

/** The object of that name; an unknown one has no attributes. */
export function objectOf(name: string): Shape {
  const row = Object.hasOwn(objectRows, name) ? objectRows[name] : undefined;
  const attributes = new Map<string, Attribute>();
  for (const token of (row?.attributes ?? '').split(' ').filter((text) => text !== '')) {
    for (const attribute of readToken(token, '')) attributes.set(attribute.name, attribute);
  }
  return shape(attributes, row?.some, undefined);
}

function shape(attributes: ReadonlyMap<string, Attribute>, some = '', one = ''): Shape {
  const words = (text: string): readonly string[] => text.split(' ').filter((word) => word !== '');
  return { attributes, some: words(some), one: words(one) };
}

/** `0 Unknown,1 Success` as captions by id; texts without id are their own. */
function captionsOf(row: string): Map<string, string> {
  return new Map(
    row.split(',').map((entry) => {
      const [, id, caption] = /^(\d+) (.+)$/.exec(entry) ?? ['', entry, entry];
      return [id ?? '', caption ?? ''];
    }),
  );
}

const plainTypes: ReadonlySet<string> = new Set([
  'int',
  'long',
  'float',
  'bool',
  'time',
  'ip',
  'port',
  'mac',
  'email',
  'json',
] satisfies AttributeType[]);

/** An attribute as the table writes it; an enum brings the attribute of its caption along. */
function readToken(token: string, activities: string): readonly Attribute[] {
  const [, mark, name = '', sign, kind = '', list, must] =
    /^([+~]?)(\w+)(?:([:=])(\w+))?(\[\])?(!)?$/.exec(token) ?? [];
  const profile = mark === '+' ? 'security_control' : mark === '~' ? 'host' : null;
  const common = {
    name,
    object: '',
    list: list !== undefined,
    required: must !== undefined,
    profile,
  } as const;
  const none = { captions: new Map<string, string>(), sibling: '', captionOf: '' };
  if (sign === '=') {
    const captions = captionsOf(kind === 'activity' ? activities : (enumRows[kind] ?? ''));
    if (!name.endsWith('_id')) return [{ ...common, ...none, type: 'choice', captions }];
    const sibling = name === 'activity_id' ? 'activity_name' : name.slice(0, -3);
    return [
      { ...common, ...none, type: 'enum', captions, sibling },
      {
        ...common,
        ...none,
        name: sibling,
        type: 'text',
        required: false,
        captions,
        captionOf: name,
      },
    ];
  }
  if (sign === undefined) return [{ ...common, ...none, type: 'text' }];
  if (plainTypes.has(kind)) return [{ ...common, ...none, type: kind as AttributeType }];
  return [{ ...common, ...none, type: 'object', object: kind }];
}
