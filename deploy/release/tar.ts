// Tar archives (POSIX ustar) of files that are in memory. Invariant: equal entries give equal bytes; nothing of this
// machine, its users or the time gets into the archive.

/** One entry. Without `bytes` and `link` it is a directory. */
export interface TarEntry {
  /** Relative, at most 99 bytes of ASCII. */
  readonly path: string;
  readonly mode: number;
  readonly bytes?: Uint8Array;
  /** Target of a symbolic link. */
  readonly link?: string;
  /** Numeric user and group. Default: 0. */
  readonly owner?: number;
}

const blockBytes = 512;

/** The archive; `seconds` is the time of each entry. Throws if a path is too long. */
export function tar(entries: readonly TarEntry[], seconds: number): Buffer {
  const parts = entries.flatMap((entry) => {
    const { bytes = new Uint8Array(0) } = entry;
    const rest = (blockBytes - (bytes.length % blockBytes)) % blockBytes;
    return [header(entry, bytes.length, seconds), bytes, Buffer.alloc(rest)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function header({ path, mode, bytes, link = '', owner = 0 }: TarEntry, size: number, time: number) {
  const isDirectory = bytes === undefined && link === '';
  const name = isDirectory ? `${path}/` : path;
  const block = Buffer.alloc(blockBytes);
  text(block, name, 0, 100);
  octal(block, mode, 100, 8);
  octal(block, owner, 108, 8);
  octal(block, owner, 116, 8);
  octal(block, size, 124, 12);
  octal(block, time, 136, 12);
  block.fill(' ', 148, 156);
  block.write(isDirectory ? '5' : link === '' ? '0' : '2', 156);
  text(block, link, 157, 100);
  block.write('ustar\u000000', 257);
  octal(block, 0, 329, 8);
  octal(block, 0, 337, 8);
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function text(block: Buffer, value: string, at: number, length: number): void {
  if (Buffer.byteLength(value) >= length) throw new Error(`${value} is too long for a tar entry`);
  block.write(value, at);
}

function octal(block: Buffer, value: number, at: number, length: number): void {
  block.write(value.toString(8).padStart(length - 1, '0'), at);
}
