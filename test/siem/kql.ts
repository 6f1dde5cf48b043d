// Queries of Kusto over rows, for tests: where, extend, project, project-away, summarize and inner joins, and functions of the
// workspace with parameters. Anything else is an error.

import { type Expression, expression, KqlReader, type Scope } from './kql-expression.ts';

/** A row by column. */
export type Row = Readonly<Record<string, unknown>>;

interface DeclaredFunction {
  readonly name: string;
  readonly parameters: string;
  readonly body: string;
}

/** The rows of each table, and the functions. */
export interface KqlDatabase {
  readonly tables: Readonly<Record<string, readonly Row[]>>;
  readonly functions: readonly DeclaredFunction[];
}

/** The rows of a query's result. */
export function runKql(query: string, database: KqlDatabase, parameters: Row = {}): readonly Row[] {
  const reader = new KqlReader(query);
  const rows = piped(reader, database, parameters);
  if (reader.next !== undefined) throw new Error(`unexpected ${reader.next} in ${query}`);
  return rows;
}

function piped(reader: KqlReader, database: KqlDatabase, parameters: Row): readonly Row[] {
  let rows = source(reader, database, parameters);
  while (reader.takeIf('|'))
    rows = reader.takeIf('join')
      ? joined(reader, rows, database, parameters)
      : operated(reader, rows, parameters);
  return rows;
}

function joined(
  reader: KqlReader,
  rows: readonly Row[],
  database: KqlDatabase,
  parameters: Row,
): readonly Row[] {
  for (const is of ['kind', '=', 'inner', '(']) reader.expect(is);
  const right = piped(reader, database, parameters);
  for (const is of [')', 'on']) reader.expect(is);
  const names: string[] = [];
  do names.push(reader.take().is);
  while (reader.takeIf(','));
  const keyOf = (row: Row) => JSON.stringify(names.map((name) => row[name]));
  const byKey = Map.groupBy(right, keyOf);
  return rows.flatMap((row) =>
    (byKey.get(keyOf(row)) ?? []).map((other) => ({ ...other, ...row })),
  );
}

function source(reader: KqlReader, database: KqlDatabase, parameters: Row): readonly Row[] {
  const { is: name } = reader.take();
  const table = Object.hasOwn(database.tables, name) ? database.tables[name] : undefined;
  if (table !== undefined) return table;
  const called = database.functions.find((one) => one.name === name);
  if (called === undefined) throw new Error(`there is no table or function ${name}`);
  const given = reader.takeIf('(') ? namedArgs(reader, parameters) : {};
  const reading = new KqlReader(called.parameters);
  const usual: Record<string, unknown> = {};
  while (reading.next !== undefined) {
    const parameter = reading.take().is;
    reading.expect(':');
    reading.take();
    reading.expect('=');
    usual[parameter] = expression(reading)(() => null);
    reading.takeIf(',');
  }
  return runKql(called.body, database, { ...usual, ...given });
}

function namedArgs(reader: KqlReader, parameters: Row): Row {
  const given: Record<string, unknown> = {};
  while (!reader.takeIf(')')) {
    const name = reader.take().is;
    reader.expect('=');
    given[name] = expression(reader)(scopeOf({}, parameters));
    reader.takeIf(',');
  }
  return given;
}

function scopeOf(row: Row, parameters: Row): Scope {
  return (name) => {
    if (Object.hasOwn(row, name)) return row[name];
    if (Object.hasOwn(parameters, name)) return parameters[name];
    throw new Error(`there is no column ${name}`);
  };
}

function operated(reader: KqlReader, rows: readonly Row[], parameters: Row): readonly Row[] {
  const { is: operator } = reader.take();
  switch (operator) {
    case 'where': {
      const test = expression(reader);
      return rows.filter((row) => test(scopeOf(row, parameters)) === true);
    }
    case 'extend': {
      const columns = named(reader);
      return rows.map((row) => {
        const scope = scopeOf(row, parameters);
        const made = columns.map(([name, value]) => [name, value(scope)] as const);
        return { ...row, ...Object.fromEntries(made) };
      });
    }
    case 'project': {
      const columns = named(reader);
      return rows.map((row) => {
        const scope = scopeOf(row, parameters);
        return Object.fromEntries(columns.map(([name, value]) => [name, value(scope)]));
      });
    }
    case 'project-away': {
      const names = new Set<string>();
      do names.add(reader.take().is);
      while (reader.takeIf(','));
      return rows.map((row) =>
        Object.fromEntries(Object.entries(row).filter(([name]) => !names.has(name))),
      );
    }
    case 'summarize':
      return summarized(reader, rows, parameters);
    default:
      throw new Error(`the operator ${operator} is not in the test's part of Kusto`);
  }
}

/** `name = expression` or a column, separated by commas. */
function named(reader: KqlReader): readonly (readonly [string, Expression])[] {
  const columns: (readonly [string, Expression])[] = [];
  do {
    if (reader.second === '=') {
      const name = reader.take().is;
      reader.expect('=');
      columns.push([name, expression(reader)]);
    } else {
      const name = reader.next ?? '';
      columns.push([name, expression(reader)]);
    }
  } while (reader.takeIf(','));
  return columns;
}

type Aggregate = (rows: readonly Scope[]) => unknown;

function summarized(reader: KqlReader, rows: readonly Row[], parameters: Row): readonly Row[] {
  const aggregates: (readonly [string, Aggregate])[] = [];
  let takesAll = false;
  while (reader.next !== 'by') {
    const name = reader.second === '=' ? reader.take().is : reader.next;
    reader.takeIf('=');
    const { is } = reader.take();
    reader.expect('(');
    if (is === 'take_any') {
      reader.expect('*');
      reader.expect(')');
      takesAll = true;
    } else aggregates.push([name ?? is, aggregate(is, reader)]);
    reader.takeIf(',');
  }
  reader.expect('by');
  const keys = named(reader);
  const groups = Map.groupBy(rows, (row) =>
    JSON.stringify(keys.map(([, value]) => value(scopeOf(row, parameters)))),
  );
  return [...groups].map(([key, group]) => {
    const scopes = group.map((row) => scopeOf(row, parameters));
    return {
      ...(takesAll ? group[0] : {}),
      ...Object.fromEntries((JSON.parse(key) as unknown[]).map((one, at) => [keys[at]?.[0], one])),
      ...Object.fromEntries(aggregates.map(([name, compute]) => [name, compute(scopes)])),
    };
  });
}

function aggregate(name: string, reader: KqlReader): Aggregate {
  const args: Expression[] = [];
  while (!reader.takeIf(')')) {
    args.push(expression(reader));
    reader.takeIf(',');
  }
  const [first = () => null, second = () => null] = args;
  const numbers = (rows: readonly Scope[]) =>
    rows.map(first).filter((one): one is number => typeof one === 'number');
  switch (name) {
    case 'count':
      return (rows) => rows.length;
    case 'countif':
      return (rows) => rows.filter((row) => first(row) === true).length;
    case 'min':
      return (rows) => (numbers(rows).length === 0 ? null : Math.min(...numbers(rows)));
    case 'maxif':
      return (rows) => {
        const found = numbers(rows.filter((row) => second(row) === true));
        return found.length === 0 ? null : Math.max(...found);
      };
    case 'make_set':
      return (rows) => [...new Set(rows.map(first))];
    default:
      throw new Error(`the aggregate ${name} is not in the test's part of Kusto`);
  }
}
