// Regroups bytes from pieces of one size into pieces of another.

/** The bytes in pieces of `size`, the last one shorter. */
export function* piecesOf(body: readonly Uint8Array[], size: number): Generator<Uint8Array> {
  let open: Uint8Array[] = [];
  let room = size;
  for (const bytes of body) {
    for (let at = 0; at < bytes.length; ) {
      const piece = bytes.subarray(at, at + room);
      open.push(piece);
      at += piece.length;
      room -= piece.length;
      if (room > 0) continue;
      yield Buffer.concat(open);
      open = [];
      room = size;
    }
  }
  if (open.length > 0) yield Buffer.concat(open);
}
