// DuckDB, a reader of Parquet that other people wrote, as the wheel that its makers publish: pip puts it into the cache
// of the tests. Where that cannot be had, the tests that need it are skipped and say why.

import { createInterface } from 'node:readline';
import type { JsonObject } from '../../src/contracts/json.ts';
import { cached, lastLine } from '../support/cache.ts';
import { runProgram, spawnChild } from '../support/children.ts';

const version = '2.0.0';

/** Answers of DuckDB, each row as a JSON object. */
export type AskDuckdb = (sql: string) => Promise<readonly JsonObject[]>;

const program = `
import duckdb, json, sys
duckdb.execute("set enable_progress_bar = false")
for line in sys.stdin:
    try:
        asked = duckdb.sql(json.loads(line))
        names = asked.columns
        said = { "rows": [dict(zip(names, row)) for row in asked.fetchall()] }
    except Exception as error:
        said = { "error": str(error) }
    print(json.dumps(said, default=str), flush=True)
`;

/** A way to query DuckDB, or the reason that there is none. */
export async function duckdb(): Promise<AskDuckdb | string> {
  try {
    const packages = await cached(`duckdb-${version}`, async (dir) => {
      const requested = ['--quiet', '--no-compile', '--target', dir, `duckdb==${version}`];
      const pip = await runProgram('python3', ['-m', 'pip', 'install', ...requested]);
      if (pip.exitCode !== 0) throw new Error(lastLine(pip.errors) || 'pip failed');
    });
    return asking(packages);
  } catch (error) {
    return `DuckDB cannot be had: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** One process answers all queries of a file, in order: loading DuckDB takes longer than a query. */
function asking(packages: string): AskDuckdb {
  const start = () => {
    const child = spawnChild('python3', ['-c', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, PYTHONPATH: packages },
    });
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error('starting DuckDB: no pipes to it');
    stdin.on('error', () => undefined); // its answers show the result
    return { child, stdin, lines: createInterface({ input: stdout })[Symbol.asyncIterator]() };
  };
  let started: ReturnType<typeof start> | undefined;
  const answerTo = async (sql: string): Promise<readonly JsonObject[]> => {
    started ??= start();
    const { child, stdin, lines } = started;
    stdin.write(`${JSON.stringify(sql)}\n`);
    const { value } = await lines.next();
    if (value === undefined) {
      started = undefined;
      throw new Error(`DuckDB has ended: ${child.exitCode ?? child.signalCode}, asked ${sql}`);
    }
    const { rows, error } = JSON.parse(value);
    if (error !== undefined) throw new Error(`DuckDB: ${error}`);
    return rows;
  };
  let last: Promise<unknown> = Promise.resolve();
  return (sql) => {
    const answer = last.then(() => answerTo(sql));
    last = answer.catch(() => undefined);
    return answer;
  };
}
