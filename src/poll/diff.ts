// The differences between two versions of an entity: the paths that a change event names, and the new fields. New
// fields on many entities show that the server's schema has changed, not the entities.

import {
  type ComparisonRules,
  canonicalText,
  childPath,
  type ExactJson,
  isExactObject,
  parseExact,
} from './canonical.ts';

/** Limit of paths in one change event. */
const pathsMax = 100;

/** Dotted paths that differ, in order; an array differs as a whole. Empty: no compared path differs. */
export function changedPaths(
  before: string,
  after: string,
  comparison: ComparisonRules,
): readonly string[] {
  const paths: string[] = [];
  collect(parseExact(before), parseExact(after), { comparison, path: '', paths });
  return paths;
}

/** Top-level fields that `after` has and `before` has not. */
export function addedFields(before: string, after: string): readonly string[] {
  const [old, now] = [parseExact(before), parseExact(after)];
  if (!isExactObject(old) || !isExactObject(now)) return [];
  return Object.keys(now).filter((key) => !Object.hasOwn(old, key));
}

interface Collecting {
  readonly comparison: ComparisonRules;
  readonly path: string;
  readonly paths: string[];
}

function collect(
  before: ExactJson | undefined,
  after: ExactJson | undefined,
  { comparison, path, paths }: Collecting,
): void {
  if (paths.length >= pathsMax || (path !== '' && comparison.ignore.includes(path))) return;
  if (isExactObject(before) && isExactObject(after)) {
    for (const key of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
      const inner = (value: typeof before) => (Object.hasOwn(value, key) ? value[key] : undefined);
      collect(inner(before), inner(after), { comparison, path: childPath(path, key), paths });
    }
    return;
  }
  const text = (value: ExactJson | undefined) =>
    value === undefined ? undefined : canonicalText(value, comparison, path);
  if (text(before) !== text(after)) paths.push(path);
}
