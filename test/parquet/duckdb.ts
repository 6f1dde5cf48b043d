// DuckDB, a reader of Parquet that other people wrote, as the wheel that its makers publish: pip puts it into the cache
// of the tests. Where that cannot be had, the tests that need it are skipped and say why.

import type { JsonObject } from '../../src/contracts/json.ts';
import { cached, lastLine } from '../support/cache.ts';
import { runProgram } from '../support/children.ts';

const version = '2.0.0';

/** Answers of DuckDB, each row as a JSON object. */
export type AskDuckdb = (sql: string) => Promise<readonly JsonObject[]>;

const program = `
import duckdb, json, sys
asked = duckdb.sql(sys.argv[1])
names = asked.columns
for row in asked.fetchall():
    print(json.dumps(dict(zip(names, row)), default=str))
`;

/** A way to ask DuckDB, or why there is none. */
export async function duckdb(): Promise<AskDuckdb | string> {
  try {
    const packages = await cached(`duckdb-${version}`, async (dir) => {
      const wanted = ['--quiet', '--no-compile', '--target', dir, `duckdb==${version}`];
      const pip = await runProgram('python3', ['-m', 'pip', 'install', ...wanted]);
      if (pip.exitCode !== 0) throw new Error(lastLine(pip.errors) || 'pip failed');
    });
    return async (sql) => {
      const asked = await runProgram('env', [
        `PYTHONPATH=${packages}`,
        'python3',
        '-c',
        program,
        sql,
      ]);
      if (asked.exitCode !== 0) throw new Error(`DuckDB: ${asked.errors}`);
      return asked.output
        .trimEnd()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
  } catch (error) {
    return `DuckDB cannot be had: ${error instanceof Error ? error.message : String(error)}`;
  }
}
