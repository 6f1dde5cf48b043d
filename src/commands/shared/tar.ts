// A tar archive (POSIX.1-1988 ustar) of a few small files.

/** A file of the archive. */
export interface TarFile {
  /** At most 100 ASCII characters. */
  readonly name: string;
  readonly body: Uint8Array;
}

const blockBytes = 512;

/** The archive; `at`: modification time of its files, epoch milliseconds. */
export function tarOf(files: readonly TarFile[], at: number): Buffer {
  const parts = files.flatMap(({ name, body }) => [
    headerOf(name, body.length, at),
    body,
    Buffer.alloc((blockBytes - (body.length % blockBytes)) % blockBytes),
  ]);
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function headerOf(name: string, size: number, at: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0, 100, 'latin1');
  header.write(octal(0o600, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(Math.floor(at / 1_000), 11), 136);
  // The checksum counts as blanks while it is computed.
  header.write('        ', 148);
  header.write('0', 156);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}
