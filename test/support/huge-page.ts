// A page as large as a hostile upstream likes, of records of 2.4 KB.

/** A list's answer of at least so many bytes. */
export function hugePage(bytes: number): Buffer {
  const record = (id: number) => JSON.stringify({ id: `r-${id}`, note: 'x'.repeat(2_400) });
  const count = Math.ceil(bytes / record(1_000).length);
  return Buffer.from(
    `{"data":[${Array.from({ length: count }, (_, id) => record(id)).join(',')}]}`,
  );
}
