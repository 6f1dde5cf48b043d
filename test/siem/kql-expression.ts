// Expressions of Kusto's query language over a row: the part that our functions and rules use. As in Kusto, a comparison with
// null is not true, `==` and `in` regard case and `=~` and `in~` do not, and a path into a dynamic value that is absent is
// null. The real parser (test/support/kusto.ts) checks types and names; this one finds the values.

/** Values by name: columns, and parameters of a function. */
export type Scope = (name: string) => unknown;
/** A value computed from a row. */
export type Expression = (scope: Scope) => unknown;

const pattern =
  /\s*(?:\/\/[^\n]*\n)*\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\d+)([smhd])?\b|(==|!=|=~|<=|>=|[<>=(),.[\]|*:-])|(project-away|[A-Za-z_$][\w$]*~?))/y;

/** A token; texts have `text`, numbers have `number`. */
interface Token {
  readonly is: string;
  readonly text?: string;
  readonly number?: number;
}

const unitMs: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 36e5, d: 864e5 };

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  const end = text.trimEnd().length;
  while (pattern.lastIndex < end) {
    const found = pattern.exec(text);
    if (found === null) throw new Error(`cannot read ${text}`);
    const [, double, one, digits, unit, sign, word = ''] = found;
    const quoted = double ?? one;
    if (quoted !== undefined) tokens.push({ is: '"', text: quoted });
    else if (digits !== undefined)
      tokens.push({ is: '0', number: Number(digits) * (unitMs[unit ?? ''] ?? 1) });
    else tokens.push({ is: sign ?? word });
  }
  return tokens;
}

/** Walks through the tokens of a query. */
export class KqlReader {
  readonly #tokens: Token[];

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  get next(): string | undefined {
    return this.#tokens[0]?.is;
  }

  /** The token after the next one. */
  get second(): string | undefined {
    return this.#tokens[1]?.is;
  }

  take(): Token {
    const token = this.#tokens.shift();
    if (token === undefined) throw new Error('the query ends too early');
    return token;
  }

  takeIf(is: string): boolean {
    if (this.next !== is) return false;
    this.#tokens.shift();
    return true;
  }

  expect(is: string): void {
    if (!this.takeIf(is)) throw new Error(`expected ${is}, found ${this.next ?? 'the end'}`);
  }
}

/** Reads an expression. */
export function expression(reader: KqlReader): Expression {
  const parts = [conjunction(reader)];
  while (reader.takeIf('or')) parts.push(conjunction(reader));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (scope) => parts.some((part) => part(scope) === true);
}

function conjunction(reader: KqlReader): Expression {
  const parts = [comparison(reader)];
  while (reader.takeIf('and')) parts.push(comparison(reader));
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return (scope) => parts.every((part) => part(scope) === true);
}

type Compare = (left: unknown, right: unknown) => boolean;
const textOf = (value: unknown) => (value === null || value === undefined ? '' : String(value));
const lower = (value: unknown) => textOf(value).toLowerCase();
const list = (value: unknown) => (Array.isArray(value) ? value : [value]);
const isNull = (value: unknown) => value === null || value === undefined;

/** `has` finds whole words. */
function hasWord(value: unknown, word: unknown): boolean {
  const escaped = lower(word).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'u').test(lower(value));
}

const comparisons: Readonly<Record<string, Compare>> = {
  '==': (a, b) => !isNull(a) && !isNull(b) && a === b,
  '!=': (a, b) => !isNull(a) && !isNull(b) && a !== b,
  '=~': (a, b) => !isNull(a) && lower(a) === lower(b),
  '<': (a, b) => !isNull(a) && !isNull(b) && Number(a) < Number(b),
  '>': (a, b) => !isNull(a) && !isNull(b) && Number(a) > Number(b),
  '<=': (a, b) => !isNull(a) && !isNull(b) && Number(a) <= Number(b),
  '>=': (a, b) => !isNull(a) && !isNull(b) && Number(a) >= Number(b),
  in: (a, b) => list(b).includes(a),
  'in~': (a, b) => list(b).some((one) => lower(one) === lower(a)),
  has: hasWord,
  has_any: (a, b) => list(b).some((one) => hasWord(a, one)),
  contains: (a, b) => lower(a).includes(lower(b)),
  startswith: (a, b) => lower(a).startsWith(lower(b)),
  endswith: (a, b) => lower(a).endsWith(lower(b)),
};

function difference(reader: KqlReader): Expression {
  const left = primary(reader);
  if (!reader.takeIf('-')) return left;
  const right = primary(reader);
  return (scope) => Number(left(scope)) - Number(right(scope));
}

function comparison(reader: KqlReader): Expression {
  const left = difference(reader);
  const name = reader.next ?? '';
  const compare = Object.hasOwn(comparisons, name) ? comparisons[name] : undefined;
  if (compare === undefined) return left;
  reader.take();
  const right = /^in|^has_any/.test(name) ? values(reader) : difference(reader);
  return (scope) => compare(left(scope), right(scope));
}

/** Values in brackets; a single one may be a list itself. */
function values(reader: KqlReader): Expression {
  reader.expect('(');
  const all = argsOf(reader, ')');
  return (scope) => all.flatMap((one) => one(scope));
}

function argsOf(reader: KqlReader, end: string): readonly Expression[] {
  const args: Expression[] = [];
  if (reader.takeIf(end)) return args;
  do args.push(expression(reader));
  while (reader.takeIf(','));
  reader.expect(end);
  return args;
}

function primary(reader: KqlReader): Expression {
  let value = base(reader);
  for (;;) {
    if (reader.takeIf('.')) value = memberOf(value, reader.take().is);
    else if (reader.takeIf('[')) {
      const { text, number } = reader.take();
      value = memberOf(value, text ?? number ?? '');
      reader.expect(']');
    } else return value;
  }
}

function memberOf(value: Expression, name: string | number): Expression {
  return (scope) => {
    const of = value(scope);
    if (typeof of !== 'object' || of === null || !Object.hasOwn(of, name)) return null;
    return (of as Record<string | number, unknown>)[name];
  };
}

function base(reader: KqlReader): Expression {
  if (reader.takeIf('(')) {
    const inner = expression(reader);
    reader.expect(')');
    return inner;
  }
  if (reader.takeIf('[')) {
    const members = argsOf(reader, ']');
    return (scope) => members.map((one) => one(scope));
  }
  const { is, text, number } = reader.take();
  if (text !== undefined) return () => text;
  if (number !== undefined) return () => number;
  if (is === 'null') return () => null;
  if (is === 'true' || is === 'false') return () => is === 'true';
  if (!reader.takeIf('(')) return (scope) => scope(is);
  return called(is, argsOf(reader, ')'));
}

const isEmpty = (value: unknown) => isNull(value) || value === '';
const wholeNumber = (value: unknown) =>
  isEmpty(value) || Number.isNaN(Number(value)) ? null : Math.trunc(Number(value));
const asText = (value: unknown) =>
  typeof value === 'object' && value !== null ? JSON.stringify(value) : textOf(value);

/** Functions of values, all of whose arguments are computed first. */
const functions: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = {
  not: (value) => value !== true,
  isnull: isNull,
  isempty: isEmpty,
  isnotempty: (value) => !isEmpty(value),
  tostring: asText,
  tolower: lower,
  toupper: (value) => textOf(value).toUpperCase(),
  toint: wholeNumber,
  tolong: wholeNumber,
  int: (value) => value,
  dynamic: (value) => value,
  datetime: (value) => value,
  coalesce: (...all) => all.find((one) => !isEmpty(one)) ?? null,
  array_length: (value) => (Array.isArray(value) ? value.length : null),
  strcat_array: (value, by) => list(value).join(textOf(by)),
  bin: (value, by) => (isNull(value) ? null : Math.floor(Number(value) / Number(by)) * Number(by)),
  ago: (ms) => Date.now() - Number(ms),
  ingestion_time: () => Date.now(),
};

function called(name: string, args: readonly Expression[]): Expression {
  if (name === 'iff' || name === 'case') {
    // The branches that are not chosen are not computed.
    return (scope) => {
      for (let at = 0; at + 1 < args.length; at += 2)
        if (args[at]?.(scope) === true) return args[at + 1]?.(scope);
      return args.at(-1)?.(scope);
    };
  }
  const apply = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (apply === undefined) {
    // Known to the real parser only; a filter that is not set never gets here.
    return () => {
      throw new Error(`${name} is not in the test's part of Kusto`);
    };
  }
  return (scope) => apply(...args.map((one) => one(scope)));
}
