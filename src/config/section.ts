// `upstreams`, `sources` and `sinks` are alike: mappings from names to blocks. Here the mapping and
// its names are looked at; the blocks are each section's own. An entry that is wrong stays known by
// its name, so that whoever refers to it is not told that it does not exist.

import type { OwnThing } from '../contracts/definition.ts';
import { type BlockReading, isPartlyUnset, locate, shown, withoutReferences } from './block.ts';
import type { Path } from './flaws.ts';
import { hint } from './nearest.ts';
import { namePattern } from './shape.ts';
import type { WrittenValue } from './written.ts';

/** One named block; `settings` is null while, or because, it is not read. */
export interface NamedBlock<T> {
  readonly name: string;
  readonly written: WrittenValue;
  readonly path: Path;
  readonly settings: T | null;
}

/** A section's blocks by name, in the order of the file. */
export class Section<T> {
  readonly entries: ReadonlyMap<string, NamedBlock<T>>;

  constructor(entries: Iterable<NamedBlock<T>>) {
    this.entries = new Map(Array.from(entries, (entry) => [entry.name, entry]));
  }

  get names(): readonly string[] {
    return [...this.entries.keys()];
  }

  /** The same blocks with what reading them gives; null for one that is wrong. */
  map<U>(read: (entry: NamedBlock<T>) => U | null): Section<U> {
    return new Section(
      [...this.entries.values()].map((entry) => ({ ...entry, settings: read(entry) })),
    );
  }
}

const singular = { upstreams: 'upstream', sources: 'source', sinks: 'sink' } as const;

/** The blocks of a section, unread; tells of a missing section, a wrong one, and of names. */
export function readSection(
  top: WrittenValue,
  key: keyof typeof singular,
  { flaws }: BlockReading,
): Section<null> {
  const written = top.children?.get(key);
  const one = singular[key];
  if (written?.broken) return new Section([]);
  if (written === undefined || written.value === null) {
    flaws.add(written?.keyAt ?? null, [key], `is missing; a config has at least one ${one}`);
    return new Section([]);
  }
  if (written.children === null || Array.isArray(written.value)) {
    flaws.add(
      written.at,
      [key],
      `expected a mapping from names to ${key}, found ${shown(written)}`,
    );
    return new Section([]);
  }
  if (written.children.size === 0) {
    flaws.add(written.at, [key], `is empty; a config has at least one ${one}`);
  }
  const entries = Array.from(written.children, ([step, block]): NamedBlock<null> => {
    const name = String(step);
    if (!namePattern.test(name)) {
      const rule = 'begins with a letter, then has letters, digits, _ or -, 63 at most';
      flaws.add(block.keyAt, [key, name], `this cannot be the name of a ${one}: a name ${rule}`);
    }
    return { name, written: block, path: [key, name], settings: null };
  });
  return new Section(entries);
}

/** Adds what a block's own `flaw` says, at the key that it begins with if there is one. */
export function reportBlockFlaw(
  message: string,
  { written, path }: Pick<NamedBlock<unknown>, 'written' | 'path'>,
  { flaws }: BlockReading,
): void {
  const keys = /^[a-z_]+(\.[a-z_]+)*/.exec(message)?.[0].split('.') ?? [];
  const { found, steps } = locate(written, keys);
  // Another value may go with the rest; where there is none, the reference has been reported.
  if (isPartlyUnset(written)) return;
  flaws.add(
    steps === 0 ? (written.keyAt ?? written.at) : (found.keyAt ?? found.at),
    path,
    withoutReferences(message, written),
  );
}

/** The definition that a block's `type` names; tells of one that is missing or unknown. */
export function definitionOf<T extends { readonly type: string }>(
  list: readonly T[],
  at: { readonly written: WrittenValue; readonly path: Path; readonly what: string },
  { flaws }: BlockReading,
): T | null {
  const { written, path, what } = at;
  if (written.broken) return null;
  if (written.children === null || Array.isArray(written.value)) {
    flaws.add(
      written.at,
      path,
      `expected a mapping with the ${what}’s settings, found ${shown(written)}`,
    );
    return null;
  }
  const types = list.map(({ type }) => type);
  const type = written.children.get('type');
  if (type?.broken || type?.unset) return null;
  if (type === undefined || typeof type.value !== 'string') {
    const found = type === undefined ? 'is missing; ' : '';
    flaws.add(
      type?.at ?? written.keyAt ?? written.at,
      [...path, 'type'],
      `${found}expected a ${what} type: ${types.join(', ')}`,
    );
    return null;
  }
  const definition = list.find((one) => one.type === type.value);
  if (definition !== undefined) return definition;
  const near = type.template === null ? hint(type.value, types) : `; known: ${types.join(', ')}`;
  flaws.add(type.at, [...path, 'type'], `unknown ${what} type ${shown(type)}${near}`);
  return null;
}

/** A block with what its type says of it. */
interface Configured<S> {
  readonly definition: { readonly type: string; own?(settings: S): OwnThing | null };
  readonly settings: S;
}

/** Tells of blocks that want the same thing for themselves. */
export function reportShared<S>(
  what: 'source' | 'sink',
  section: Section<Configured<S>>,
  { flaws }: BlockReading,
): void {
  const owners = new Map<string, string>();
  const alikes = new Map<string, { readonly name: string; readonly value: string }>();
  for (const { name, written, path, settings: block } of section.entries.values()) {
    const own = block?.definition.own?.(block.settings);
    if (own == null) continue;
    const { key = '', of = '', value = '' } = own.alike ?? {};
    const other = alikes.get(`${key} ${of}`) ?? { name, value };
    alikes.set(`${key} ${of}`, other);
    if (other.value !== value) {
      const at = written.children?.get(key)?.at ?? written.at;
      flaws.add(at, [...path, key], `the ${what} ${other.name} has another for ${of}; it is one`);
    }
    const thing = `${block?.definition.type} ${own.key} ${own.name}`;
    const first = owners.get(thing);
    if (first === undefined) {
      owners.set(thing, name);
      continue;
    }
    const at = written.children?.get(own.key)?.at ?? written.at;
    const message = `the ${what} ${first} uses this ${own.key} already; give each its own`;
    flaws.add(at, [...path, own.key], message);
  }
}
