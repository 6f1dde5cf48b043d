// Parses one block of a config by its declaration: zod parses, each issue becomes a sentence with a location, and
// secrets stay bound to their references. Text from a reference becomes a number or a flag if the declaration expects
// one, because an environment contains only text.

import { z } from 'zod';
import { isObject, Secret } from '../contracts/index.ts';
import { nearest, unknownKey } from '../tools/index.ts';
import type { Flaws, Path } from './flaws.ts';
import { type IssueValue, sentenceOf, shownValue } from './issue-text.ts';
import { nextPlaceholder, placeholderWord } from './placeholders.ts';
import { templateText } from './references.ts';
import type { WrittenValue } from './written.ts';

/** Parses the written value (undefined: none) at this path; undefined: the flaws give the reason. */
export function parseBlock<T>(
  schema: z.ZodType<T>,
  at: { readonly written: WrittenValue | undefined; readonly path: Path },
  flaws: Flaws,
): T | undefined {
  const { written, path } = at;
  if (written?.broken) return undefined;
  const declared = new Declared();
  let result = schema.safeParse(written?.value, { error: declared.note });
  while (!result.success && written && retype(written, result.error.issues)) {
    result = schema.safeParse(written.value, { error: declared.note });
  }
  if (!result.success) {
    for (const issue of result.error.issues) report(issue, { written, path, declared, flaws });
    return undefined;
  }
  if (written) bindSecrets(result.data, written);
  return result.data;
}

/** The value in a form that a message may show. */
export function shown(written: WrittenValue): string {
  return shownValue(foundOf(written));
}

function foundOf({ value, template }: WrittenValue): IssueValue {
  return { value, reference: template === null ? null : templateText(template) };
}

/**
 * A message about values that are valid by themselves, safe to show: text that came through a reference below `written`
 * is removed.
 */
export function withoutReferences(message: string, written: WrittenValue): string {
  const said = new Set<string>();
  collectWords(written, said);
  if (said.size === 0) return message;
  return message.replace(/[\p{L}\p{N}_-]+/gu, (word) => (said.has(word) ? '[hidden]' : word));
}

function collectWords(
  { template, value, unset, children }: WrittenValue,
  words: Set<string>,
): void {
  if (template !== null) {
    for (const word of String(value).match(/[\p{L}\p{N}_-]+/gu) ?? []) {
      if (unset === null || word.includes(placeholderWord)) words.add(word);
    }
  }
  for (const child of children?.values() ?? []) collectWords(child, words);
}

/** The deepest value that exists on a path, and the number of its steps. */
export function locate(written: WrittenValue, path: Path): { found: WrittenValue; steps: number } {
  let found = written;
  for (const [steps, step] of path.entries()) {
    const next = found.children?.get(step);
    if (next === undefined) return { found, steps };
    found = next;
  }
  return { found, steps: path.length };
}

/**
 * True if this value or one inside it is unknown. Secrets do not count: no rule for other keys depends on a secret's
 * value.
 */
export function isPartlyUnset({ unset, isSecret, children }: WrittenValue): boolean {
  if (unset !== null && !isSecret) return true;
  return [...(children?.values() ?? [])].some(isPartlyUnset);
}

/** Facts from the declarations beyond zod's issues, collected while zod reports. */
class Declared {
  readonly #keys = new Map<string, readonly string[]>();
  readonly #forms = new Map<string, string>();

  readonly note: z.core.$ZodErrorMap = (issue) => {
    const { code, inst, path = [] } = issue;
    if (code === 'unrecognized_keys' && inst instanceof z.ZodObject) {
      this.#keys.set(placeKey(path), Object.keys(inst.shape));
    }
    if (code === 'invalid_type' && inst instanceof z.ZodString) {
      // The declared form of a text also describes the error for a value that is no text.
      const refused = inst.safeParse('').error?.issues[0];
      if (refused?.code === 'invalid_format') this.#forms.set(placeKey(path), refused.message);
    }
    return undefined;
  };

  /** The keys that the object at this location accepts. */
  keysAt(path: readonly PropertyKey[]): readonly string[] {
    return this.#keys.get(placeKey(path)) ?? [];
  }

  /** The required form of the text at this location, such as `expected a duration such as 30s`. */
  formAt(path: readonly PropertyKey[]): string | null {
    return this.#forms.get(placeKey(path)) ?? null;
  }
}

function placeKey(path: readonly PropertyKey[]): string {
  return JSON.stringify(path.map(String));
}

interface Telling {
  readonly written: WrittenValue | undefined;
  readonly path: Path;
  readonly declared: Declared;
  readonly flaws: Flaws;
}

function report(issue: z.core.$ZodIssue, telling: Telling): void {
  const { written, path, declared, flaws } = telling;
  const below = stepsOf(issue.path);
  if (issue.code === 'unrecognized_keys') {
    const keys = declared.keysAt(issue.path);
    for (const key of issue.keys) {
      const parent = written && locate(written, below).found;
      const child = parent?.children?.get(key);
      const at = child?.keyAt ?? parent?.at ?? null;
      // Beside credentials, a key unlike all known ones may be the secret itself.
      const isSecret = keys.some((one) => secretKeys.test(one)) && mayBeSecret(key, keys);
      const step = isSecret ? hiddenKey : key;
      flaws.add(at, [...path, ...below, step], unknownKey(step, keys));
    }
    return;
  }
  if (issue.code === 'invalid_union') {
    const chosen = chooseBranch(issue, written && locate(written, below).found);
    if (chosen.length > 0) {
      for (const inner of chosen) {
        report({ ...inner, path: [...issue.path, ...inner.path] }, telling);
      }
      return;
    }
  }
  const { found, steps } = written
    ? locate(written, below)
    : { found: undefined, steps: below.length };
  // An unreadable value has been reported where it was read.
  if (found?.broken) return;
  if (issue.code === 'custom' && found !== undefined && isPartlyUnset(found)) return;
  const missing = steps < below.length;
  const at = missing || issue.code === 'invalid_key' ? found?.keyAt : found?.at;
  const value = missing ? undefined : found;
  const form = declared.formAt(issue.path);
  const sentence = sentenceOf(issue, { found: value && foundOf(value), form });
  const clean = found && issue.code === 'custom' ? withoutReferences(sentence, found) : sentence;
  flaws.add(at ?? found?.at ?? null, [...path, ...below], clean);
}

/** Keys whose values are credentials. */
const secretKeys = /secret|token|password|api_key|credential/;
/** Shown in place of a key that may be a secret. */
const hiddenKey = '…';

/** False for a misspelt key, and for words in the form of keys. */
function mayBeSecret(key: string, known: readonly string[]): boolean {
  return nearest(key, known) === null && !/^[a-z]{1,12}(_[a-z]{1,12})*$/.test(key);
}

function stepsOf(path: readonly PropertyKey[]): Path {
  return path.map((step) => (typeof step === 'symbol' ? String(step) : step));
}

type UnionIssue = Extract<z.core.$ZodIssue, { code: 'invalid_union' }>;

/** The issues of the intended branch: it accepted the value's type and got furthest. */
function chooseBranch(
  issue: UnionIssue,
  found: WrittenValue | undefined,
): readonly z.core.$ZodIssue[] {
  const { errors } = issue;
  if (found?.value === undefined) return [];
  const fitting = errors.filter(
    (issues) =>
      !issues.some(
        ({ code, path }) =>
          path.length === 0 && (code === 'invalid_type' || code === 'invalid_value'),
      ),
  );
  if (fitting.length > 0) return fitting.toSorted((a, b) => a.length - b.length)[0] ?? [];
  const isText = typeof found.value === 'string';
  const wordLists = errors.filter((issues) => issues[0]?.code === 'invalid_value');
  return isText && wordLists.length === 1 ? (wordLists[0] ?? []) : [];
}

/**
 * Converts referenced texts to numbers and flags where zod expects them, and picks placeholders that fit; false:
 * nothing changed.
 */
function retype(written: WrittenValue, issues: readonly z.core.$ZodIssue[]): boolean {
  let changed = false;
  const unset = new Map<
    WrittenValue,
    { readonly path: Path; readonly issues: z.core.$ZodIssue[] }
  >();
  for (const issue of issues.flatMap(withBranches)) {
    const path = stepsOf(issue.path);
    const { found, steps } = locate(written, path);
    if (steps < path.length || found.template === null) continue;
    if (found.unset !== null) {
      const known = unset.getOrInsertComputed(found, () => ({ path, issues: [] }));
      known.issues.push(issue);
      continue;
    }
    const whole = found.template.length === 1 && typeof found.value === 'string';
    if (issue.code !== 'invalid_type' || !whole) continue;
    const typed = typedAs(issue.expected, String(found.value));
    if (typed === undefined) continue;
    put(written, path, typed);
    changed = true;
  }
  for (const [found, at] of unset) {
    const next = nextPlaceholder(found, at.issues);
    if (next === undefined) continue;
    put(written, at.path, next);
    changed = true;
  }
  return changed;
}

/** An issue and those of its branches, each with its full path. */
function withBranches(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const inner = issue.errors.flat().map((one) => ({ ...one, path: [...issue.path, ...one.path] }));
  return [issue, ...inner.flatMap(withBranches)];
}

/** A scalar of the YAML core schema (1.2.2, 10.3.2); undefined: it does not have this type. */
function typedAs(expected: string, text: string): number | boolean | undefined {
  switch (expected) {
    case 'number':
    case 'int':
      if (/^0o[0-7]+$|^0x[0-9a-fA-F]+$/.test(text)) return Number(text);
      return /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(text) ? Number(text) : undefined;
    case 'boolean':
      if (/^(true|True|TRUE)$/.test(text)) return true;
      return /^(false|False|FALSE)$/.test(text) ? false : undefined;
    default:
      return undefined;
  }
}

function put(written: WrittenValue, path: Path, value: unknown): void {
  const target = locate(written, path).found;
  const parent = locate(written, path.slice(0, -1)).found;
  const key = path.at(-1);
  target.value = value;
  if (Array.isArray(parent.value) && typeof key === 'number') parent.value[key] = value;
  else if (isObject(parent.value) && key !== undefined)
    Object.assign(parent.value, { [key]: value });
}

/** Binds each secret to its written form, so that `reveal` reads references again. */
function bindSecrets(parsed: unknown, written: WrittenValue): void {
  if (parsed instanceof Secret) {
    written.isSecret = true;
    const { template, rereading } = written;
    // A secret without a value stays a placeholder; no request is sent with it.
    if (template === null || rereading === null) return;
    const reference = template.length === 1 ? templateText(template) : null;
    parsed.bind(rereading.read, reference, rereading.refresh);
    return;
  }
  if (typeof parsed !== 'object' || parsed === null) return;
  for (const [key, child] of written.children ?? []) {
    if (!Object.hasOwn(parsed, key)) continue;
    const value: unknown = Reflect.get(parsed, key);
    bindSecrets(value, child);
  }
}
