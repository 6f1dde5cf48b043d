// Microsoft's own parser of Kusto's query language, for tests: the npm package @kusto/language-service-next, which npm
// downloads once into the cache. It finds unknown columns and functions, wrong types and wrong syntax. It does not look into
// dynamic values.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInThisContext } from 'node:vm';
import { cached, lastLine } from './cache.ts';
import { runProgram } from './children.ts';

const name = '@kusto/language-service-next';
const version = '12.4.1';

/** A function with its parameters as Kusto writes them, such as `a:string="x"`. */
interface DeclaredFunction {
  readonly name: string;
  readonly parameters: string;
  readonly body: string;
}

/** Tables by name, with their columns by name, and functions of a database. */
export interface KustoDatabase {
  readonly tables: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly functions: readonly DeclaredFunction[];
}

/** The check of a query: its faults, and the columns of its result by name. */
export interface CheckedQuery {
  readonly faults: readonly string[];
  readonly columns: ReadonlyMap<string, string>;
}

/** The parser for a database; rejects where the package cannot be downloaded. */
export async function kustoParser(
  database: KustoDatabase,
): Promise<(query: string) => CheckedQuery> {
  const dir = await cached(`kusto-${version}`, download);
  for (const file of ['bridge.min.js', 'Kusto.Language.Bridge.min.js'])
    if (!('Kusto' in globalThis))
      runInThisContext(readFileSync(join(dir, 'node_modules', name, file), 'utf8'), file);
  // biome-ignore lint/suspicious/noExplicitAny: the package's types are for a global script.
  const { Kusto } = globalThis as any;
  const { TableSymbol, FunctionSymbol, DatabaseSymbol } = Kusto.Language.Symbols;
  const members = [
    ...Object.entries(database.tables).map(([table, columns]) => {
      const schema = Object.entries(columns).map(([column, type]) => `${column}:${type}`);
      return TableSymbol.From(`(${schema.join(', ')})`).WithName(table);
    }),
    ...database.functions.map(
      (one) => new FunctionSymbol.$ctor16(one.name, `(${one.parameters})`, `{${one.body}}`, null),
    ),
  ];
  const globals = Kusto.Language.GlobalState.Default.WithDatabase(
    new DatabaseSymbol.ctor('db', members),
  );
  return (query) => {
    const code = Kusto.Language.KustoCode.ParseAndAnalyze(query, globals);
    return { faults: faultsOf(code, query), columns: columnsOf(code) };
  };
}

async function download(dir: string): Promise<void> {
  const args = ['install', '--prefix', dir, '--ignore-scripts', '--no-audit', '--no-fund'];
  const { exitCode, errors } = await runProgram('npm', [...args, `${name}@${version}`]);
  if (exitCode !== 0 || !existsSync(join(dir, 'node_modules', name)))
    throw new Error(`cannot download ${name}: ${lastLine(errors)}`);
}

// biome-ignore lint/suspicious/noExplicitAny: as above.
function faultsOf(code: any, query: string): readonly string[] {
  const found = code.GetDiagnostics();
  const faults: string[] = [];
  for (let at = 0; at < found.Count; at += 1) {
    const { Message, Start, Length } = found.getItem(at);
    faults.push(`${Message} (${query.slice(Start, Start + Length)})`);
  }
  return faults;
}

// biome-ignore lint/suspicious/noExplicitAny: as above.
function columnsOf(code: any): ReadonlyMap<string, string> {
  const columns = new Map<string, string>();
  const list = code.ResultType?.Columns;
  for (let at = 0; at < (list?.Count ?? 0); at += 1) {
    const { Name, Type } = list.getItem(at);
    columns.set(Name, Type.Name);
  }
  return columns;
}
