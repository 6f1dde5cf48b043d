// Expressions of Splunk's `eval`: the part that the app's calculated fields use. As in Splunk, a name in single quotes is a
// field, a text in double quotes is a text, a comparison with a missing field is not true, and `.` joins texts.

import { Reader } from './spl-tokens.ts';

/** Values of an event by field; a list has several. */
export type Fields = ReadonlyMap<string, readonly string[]>;
type Value = readonly string[] | boolean | null;
type Expression = (fields: Fields) => Value;

/** The function of an expression; `named` receives each field that the expression reads. */
export function evalOf(text: string, named: (field: string) => void = () => {}): Expression {
  const reader = new Reader(text);
  const expression = either(reader, named);
  if (reader.next !== undefined) throw new Error(`${text}: unexpected ${reader.next.is}`);
  return expression;
}

type Named = (field: string) => void;

function either(reader: Reader, named: Named): Expression {
  const parts = [both(reader, named)];
  while (reader.takeIf('OR')) parts.push(both(reader, named));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (fields) => parts.some((part) => part(fields) === true);
}

function both(reader: Reader, named: Named): Expression {
  const parts = [negated(reader, named)];
  while (reader.takeIf('AND')) parts.push(negated(reader, named));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (fields) => parts.every((part) => part(fields) === true);
}

function negated(reader: Reader, named: Named): Expression {
  if (!reader.takeIf('NOT')) return compared(reader, named);
  const inner = compared(reader, named);
  return (fields) => inner(fields) !== true;
}

function compared(reader: Reader, named: Named): Expression {
  const left = joined(reader, named);
  const sign = ['=', '==', '!=', '>=', '<=', '>', '<'].find((one) => reader.takeIf(one));
  if (sign === undefined) return left;
  const right = joined(reader, named);
  return (fields) => {
    const [a, b] = [single(left(fields)), single(right(fields))];
    if (a === null || b === null) return false;
    const order = orderOf(a, b);
    if (sign === '=' || sign === '==') return order === 0;
    if (sign === '!=') return order !== 0;
    if (sign.includes('=') && order === 0) return true;
    return sign.startsWith('>') ? order > 0 : order < 0;
  };
}

function orderOf(a: string, b: string): number {
  const isNumeric = a !== '' && b !== '' && !Number.isNaN(Number(a)) && !Number.isNaN(Number(b));
  if (isNumeric) return Number(a) - Number(b);
  return a === b ? 0 : a > b ? 1 : -1;
}

function joined(reader: Reader, named: Named): Expression {
  const parts = [primary(reader, named)];
  while (reader.takeIf('.')) parts.push(primary(reader, named));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (fields) => {
    const texts = parts.map((part) => single(part(fields)));
    return texts.includes(null) ? null : [texts.join('')];
  };
}

function primary(reader: Reader, named: Named): Expression {
  if (reader.takeIf('(')) {
    const inner = either(reader, named);
    reader.expect(')');
    return inner;
  }
  const token = reader.take();
  if (token.kind === 'text') return () => [token.is];
  if (token.kind === 'word' && reader.takeIf('(')) return called(token.is, argsOf(reader, named));
  if (token.kind === 'sign') throw new Error(`unexpected ${token.is}`);
  if (token.kind === 'word' && /^-?\d+(\.\d+)?$/.test(token.is)) return () => [token.is];
  if (token.kind === 'word' && !/^\w+$/.test(token.is))
    throw new Error(`the field ${token.is} needs single quotes`);
  named(token.is);
  return (fields) => fields.get(token.is) ?? null;
}

function argsOf(reader: Reader, named: Named): readonly Expression[] {
  const args: Expression[] = [];
  if (reader.takeIf(')')) return args;
  do args.push(either(reader, named));
  while (reader.takeIf(','));
  reader.expect(')');
  return args;
}

function called(name: string, args: readonly Expression[]): Expression {
  const arg = (at: number, fields: Fields): Value => args[at]?.(fields) ?? null;
  const text = (at: number, fields: Fields) => single(arg(at, fields));
  const arity = (count: number) => {
    if (args.length !== count) throw new Error(`${name} needs ${count} arguments`);
  };
  switch (name) {
    case 'true':
      return () => true;
    case 'null':
      return () => null;
    case 'lower':
      arity(1);
      return (fields) => {
        const value = text(0, fields);
        return value === null ? null : [value.toLowerCase()];
      };
    case 'coalesce':
      return (fields) => args.map((one) => one(fields)).find((one) => one !== null) ?? null;
    case 'mvindex': {
      arity(2);
      return (fields) => {
        const values = arg(0, fields);
        const at = Number(text(1, fields));
        const value = Array.isArray(values) ? values.at(at) : undefined;
        return value === undefined ? null : [value];
      };
    }
    case 'if':
      arity(3);
      return (fields) => arg(arg(0, fields) === true ? 1 : 2, fields);
    case 'case':
      if (args.length % 2 !== 0) throw new Error('case needs pairs');
      return (fields) => {
        const at = args.findIndex((one, index) => index % 2 === 0 && one(fields) === true);
        return at < 0 ? null : arg(at + 1, fields);
      };
    case 'match':
      arity(2);
      return (fields) => {
        const [value, pattern] = [text(0, fields), text(1, fields) ?? ''];
        const flags = pattern.startsWith('(?i)') ? 'i' : '';
        return value !== null && new RegExp(pattern.replace('(?i)', ''), flags).test(value);
      };
    case 'like':
      arity(2);
      return (fields) => {
        const [value, pattern] = [text(0, fields), text(1, fields) ?? ''];
        const source = pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/%/g, '.*');
        return value !== null && new RegExp(`^${source}$`, 's').test(value);
      };
    default:
      throw new Error(`eval has no function ${name} here`);
  }
}

/** The value of a field in a comparison; Splunk has no order for several values, so the first one is taken. */
function single(value: Value): string | null {
  if (value === null || typeof value === 'boolean') return null;
  return value[0] ?? null;
}
