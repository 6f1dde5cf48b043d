// The search language of Splunk up to the first pipe: terms with =, !=, a bound or IN, NOT, OR and AND. As in Splunk, OR
// binds stronger than AND, values are compared without regard to case, `*` stands for any text, and one of several values
// of a field is enough.

import type { Fields } from './spl-eval.ts';
import { Reader, type Token } from './spl-tokens.ts';

type Test = (fields: Fields) => boolean;

/** The test of a search; `named` receives each field that it names. `eventtype=x` reads the field `eventtype`. */
export function searchOf(text: string, named: (field: string) => void = () => {}): Test {
  const reader = new Reader(text);
  const test = all(reader, named);
  if (reader.next !== undefined) throw new Error(`${text}: unexpected ${reader.next.is}`);
  return test;
}

type Named = (field: string) => void;

function all(reader: Reader, named: Named): Test {
  const parts: Test[] = [];
  while (reader.next !== undefined && reader.next.is !== ')') {
    reader.takeIf('AND');
    parts.push(any(reader, named));
  }
  if (parts.length === 0) throw new Error('a search is empty');
  return (fields) => parts.every((part) => part(fields));
}

function any(reader: Reader, named: Named): Test {
  const parts = [single(reader, named)];
  while (reader.takeIf('OR')) parts.push(single(reader, named));
  return (fields) => parts.some((part) => part(fields));
}

function single(reader: Reader, named: Named): Test {
  if (reader.takeIf('NOT')) {
    const inner = single(reader, named);
    return (fields) => !inner(fields);
  }
  if (reader.takeIf('(')) {
    const inner = all(reader, named);
    reader.expect(')');
    return inner;
  }
  return term(reader, named);
}

function term(reader: Reader, named: Named): Test {
  const field = reader.take();
  if (field.kind === 'sign' || field.kind === 'name') throw new Error(`unexpected ${field.is}`);
  named(field.is);
  const values = (fields: Fields) => fields.get(field.is) ?? [];
  if (reader.takeIf('IN')) {
    reader.expect('(');
    const wanted: Token[] = [];
    do wanted.push(reader.take());
    while (reader.takeIf(','));
    reader.expect(')');
    const patterns = wanted.map(({ is }) => patternOf(is));
    return (fields) => values(fields).some((value) => patterns.some((one) => one.test(value)));
  }
  const sign = ['=', '!=', '>=', '<=', '>', '<'].find((one) => reader.takeIf(one));
  if (sign === undefined) throw new Error(`a search for the text ${field.is}: name a field`);
  const wanted = reader.take().is;
  if (sign === '=' || sign === '!=') {
    const pattern = patternOf(wanted);
    if (sign === '=') return (fields) => values(fields).some((value) => pattern.test(value));
    return (fields) => values(fields).some((value) => !pattern.test(value));
  }
  const bound = Number(wanted);
  return (fields) =>
    values(fields).some((value) => {
      const number = Number(value);
      if (sign.includes('=') && number === bound) return true;
      return sign.startsWith('>') ? number > bound : number < bound;
    });
}

function patternOf(text: string): RegExp {
  const source = text.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*');
  return new RegExp(`^${source}$`, 'is');
}

/** The fields that KV_MODE = json reads: dotted names, {} after the name of a list, one value per member. */
export function jsonFields(value: unknown): Map<string, string[]> {
  const fields = new Map<string, string[]>();
  const add = (name: string, one: unknown): void => {
    if (Array.isArray(one)) for (const member of one) add(`${name}{}`, member);
    else if (typeof one === 'object' && one !== null) {
      for (const [key, member] of Object.entries(one))
        add(name === '' ? key : `${name}.${key}`, member);
    } else {
      // Splunk reads null as a text.
      fields.set(name, [...(fields.get(name) ?? []), String(one)]);
    }
  };
  add('', value);
  return fields;
}
