// `upstreams`, `sources` and `sinks` have one form: mappings from names to blocks. This file checks the mapping and the
// names; each section checks its blocks. An invalid entry keeps its name, so references to it are not reported as
// unknown.

import type { OwnThing } from '../contracts/config.ts';
import { hint } from '../tools/index.ts';
import { isPartlyUnset, locate, shown, withoutReferences } from './block.ts';
import type { Flaws, Path } from './flaws.ts';
import { namePattern } from './shape.ts';
import type { WrittenValue } from './written.ts';

/** One block as written; `settings` is null before it is read, or if it is invalid. */
export interface WrittenBlock<T> {
  readonly written: WrittenValue;
  readonly path: Path;
  readonly settings: T | null;
}

/** One block of a section. */
export interface NamedBlock<T> extends WrittenBlock<T> {
  readonly name: string;
}

/** The blocks of a section by name, in the order of the file. */
export class Section<T> {
  readonly entries: ReadonlyMap<string, NamedBlock<T>>;

  constructor(entries: Iterable<NamedBlock<T>>) {
    this.entries = new Map(Array.from(entries, (entry) => [entry.name, entry]));
  }

  get names(): readonly string[] {
    return [...this.entries.keys()];
  }

  /** The same blocks with the result of reading them; null for an invalid one. */
  map<U>(read: (entry: NamedBlock<T>) => U | null): Section<U> {
    return new Section(
      [...this.entries.values()].map((entry) => ({ ...entry, settings: read(entry) })),
    );
  }
}

const singular = { upstreams: 'upstream', sources: 'source', sinks: 'sink' } as const;

/** The unread blocks of a section; reports a missing or invalid section, and invalid names. */
export function readSection(
  top: WrittenValue,
  key: keyof typeof singular,
  flaws: Flaws,
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
      flaws.add(
        block.keyAt,
        [key, name],
        `this cannot be the name of ${one === 'upstream' ? 'an' : 'a'} ${one}: a name ${rule}`,
      );
    }
    return { name, written: block, path: [key, name], settings: null };
  });
  return new Section(entries);
}

/** Reports a block's own `flaw`, at the key with which its message begins, if it exists. */
export function reportBlockFlaw(
  message: string,
  { written, path }: Pick<NamedBlock<unknown>, 'written' | 'path'>,
  flaws: Flaws,
): void {
  const keys = /^[a-z_]+(\.[a-z_]+)*/.exec(message)?.[0].split('.') ?? [];
  const { found, steps } = locate(written, keys);
  // Another value may be valid; if it is unset, the reference has been reported.
  if (isPartlyUnset(written)) return;
  flaws.add(
    steps === 0 ? (written.keyAt ?? written.at) : (found.keyAt ?? found.at),
    path,
    withoutReferences(message, written),
  );
}

/** The definition for a block's `type`; reports a missing or unknown type. */
export function definitionOf<T extends { readonly type: string }>(
  list: readonly T[],
  at: { readonly written: WrittenValue; readonly path: Path; readonly what: string },
  flaws: Flaws,
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

/** A block with its type's definition. */
interface Configured<S> {
  readonly definition: { readonly type: string; own?(settings: S): OwnThing | null };
  readonly settings: S;
}

/** Reports blocks that claim the same exclusive resource. */
export function reportShared<S>(
  what: 'source' | 'sink',
  section: Section<Configured<S>>,
  flaws: Flaws,
): void {
  const owners = new Map<string, string>();
  const alikes = new Map<string, { readonly name: string; readonly value: string }>();
  for (const { name, written, path, settings: block } of section.entries.values()) {
    const own = block?.definition.own?.(block.settings);
    if (own == null) continue;
    const { key = '', of = '', value = '' } = own.alike ?? {};
    const other = alikes.getOrInsertComputed(`${key} ${of}`, () => ({ name, value }));
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
