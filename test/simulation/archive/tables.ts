// Objects of a lake as the simulation has them: a line of JSON in place of Parquet, and no thread. What is attacked is how
// the archive treats such objects, not the format of tables.

/** What stands in one. */
interface Table {
  readonly cut: string;
  readonly uids: readonly string[];
}

/** The bytes of an object. */
export function encodeTable(table: Table): Buffer {
  return Buffer.from(JSON.stringify(table));
}

function parseTable(body: Uint8Array): Table {
  const table = JSON.parse(Buffer.from(body).toString('utf8')) as Table;
  if (!Array.isArray(table.uids)) throw new SyntaxError('it is no table');
  return table;
}

/** The uids of its rows. */
export function uidsIn(body: Uint8Array): readonly string[] {
  return parseTable(body).uids;
}

/** In place of src/parquet/read.ts. */
export async function readUids(body: Uint8Array): Promise<readonly string[]> {
  return uidsIn(body);
}

/** In place of src/parquet/read.ts. */
export function cutOf(body: Uint8Array): string | null {
  return parseTable(body).cut;
}

/** Replaces src/parquet/read.ts, which src/parquet/index.ts exports; no object here has this fact. */
export const cutFact = 'cut';

/** In place of src/parquet/erase.ts. */
export async function eraseEvents(body: Uint8Array, uids: readonly string[]) {
  const { cut, uids: all } = parseTable(body);
  const gone = all.filter((uid) => uids.includes(uid));
  const left = all.filter((uid) => !uids.includes(uid));
  return {
    body: left.length === 0 ? null : encodeTable({ cut, uids: left }),
    rows: left.length,
    gone,
  };
}
