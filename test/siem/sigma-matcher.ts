// A small matcher of Sigma rules on OCSF events: values, lists, the modifiers that our rules use, and conditions with and,
// or, not and "1 of". It knows no more than that, and throws on anything else.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { isObject } from '../../src/contracts/json.ts';
import { sigmaDir } from './planted-events.ts';

type Detection = Readonly<Record<string, unknown>>;
type Test = (event: object) => boolean;

/** OCSF names of a rule's field, of which any may match. */
const names: Readonly<Record<string, string | readonly string[]>> = parse(
  readFileSync(new URL('pipelines/ocsf.yml', sigmaDir), 'utf8'),
).transformations.find(({ type }: { type: string }) => type === 'field_name_mapping').mapping;

/** The test of a rule's file. */
export function matcherOf(rule: string): Test {
  const text = readFileSync(new URL(`rules/${rule}.yml`, sigmaDir), 'utf8');
  const { condition, ...detections } = parse(text).detection as Detection;
  const searches = new Map(
    Object.entries(detections).map(([name, search]) => [name, searchOf(search as Detection)]),
  );
  const tokens = String(condition).match(/\(|\)|1 of [\w*]+|[\w*]+/g) ?? [];
  const test = either(tokens, searches);
  if (tokens.length > 0)
    throw new Error(`${rule}: the condition continues with ${tokens.join(' ')}`);
  return test;
}

type Searches = ReadonlyMap<string, Test>;

function either(tokens: string[], searches: Searches): Test {
  const parts = [both(tokens, searches)];
  while (tokens[0] === 'or') {
    tokens.shift();
    parts.push(both(tokens, searches));
  }
  return (event) => parts.some((part) => part(event));
}

function both(tokens: string[], searches: Searches): Test {
  const parts = [single(tokens, searches)];
  while (tokens[0] === 'and') {
    tokens.shift();
    parts.push(single(tokens, searches));
  }
  return (event) => parts.every((part) => part(event));
}

function single(tokens: string[], searches: Searches): Test {
  const token = tokens.shift() ?? '';
  if (token === 'not') {
    const inner = single(tokens, searches);
    return (event) => !inner(event);
  }
  if (token === '(') {
    const inner = either(tokens, searches);
    if (tokens.shift() !== ')') throw new Error('a bracket is not closed');
    return inner;
  }
  const pattern = token.replace(/^1 of /, '');
  const found = [...searches].filter(([name]) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
  if (found.length === 0) throw new Error(`there is no search ${token}`);
  return (event) => found.some(([, test]) => test(event));
}

function searchOf(search: Detection): Test {
  const tests = Object.entries(search).map(([key, wanted]) => {
    const [field = '', modifier = 'is'] = key.split('|');
    const paths = [names[field] ?? field].flat();
    const fits = fitsOf(modifier, [wanted].flat());
    return (event: object) => paths.some((path) => valuesAt(event, path.split('.')).some(fits));
  });
  return (event) => tests.every((test) => test(event));
}

/** Sigma compares texts without regard to case. */
function fitsOf(modifier: string, wanted: readonly unknown[]): (value: unknown) => boolean {
  const texts = wanted.map((one) => String(one).toLowerCase());
  const compare = (holds: (value: string, text: string) => boolean) => (value: unknown) =>
    texts.some((text) => holds(String(value).toLowerCase(), text));
  switch (modifier) {
    case 'is':
      return compare((value, text) => value === text);
    case 'contains':
      return compare((value, text) => value.includes(text));
    case 'startswith':
      return compare((value, text) => value.startsWith(text));
    case 'endswith':
      return compare((value, text) => value.endsWith(text));
    case 'gte':
      return (value) => typeof value === 'number' && value >= Number(wanted[0]);
    default:
      throw new Error(`the matcher does not know ${modifier}`);
  }
}

/** All values at a path; members of lists count each. */
function valuesAt(value: unknown, path: readonly string[]): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((one) => valuesAt(one, path));
  const [name, ...below] = path;
  if (name === undefined) return value === undefined || value === null ? [] : [value];
  return isObject(value) && Object.hasOwn(value, name) ? valuesAt(value[name], below) : [];
}
