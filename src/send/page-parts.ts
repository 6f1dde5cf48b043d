// Splits a large page into parts, each a page of its own with a share of the records and the bytes
// around them. Pages are stored whole, as upstream sent them, and read in parts: encoding works
// page by page, so without parts a page as large as `max_body` would be in memory several times,
// once per format. Invariant: the parts contain the page's events, each once and in order, and
// share the body's memory.

import { type HeldPage, type Offset, type Slices, uidBytes } from '../contracts/index.ts';
import { cutRecords } from '../tools/index.ts';

/** Pages up to this size are read whole. */
const wholeBytesMax = 1024 * 1024;
const partBytes = 512 * 1024;
/** A part may be read from disk together with its whole page, so the number of parts is limited. */
const partsMax = 64;

const known = new WeakMap<HeldPage, readonly HeldPage[]>();

/** The parts of a page; the same objects each time, so that computed values are shared. */
function partsOf(page: HeldPage): readonly HeldPage[] {
  if (page.body.length <= wholeBytesMax || page.count < 2) return [page];
  const parts = known.get(page) ?? cut(page);
  known.set(page, parts);
  return parts;
}

/** Consecutive pages or parts from an offset: about `bytesMax`, at least one. */
export function partsFrom(
  pages: readonly HeldPage[],
  from: Offset,
  bytesMax: number,
): readonly HeldPage[] {
  const found: HeldPage[] = [];
  let bytes = 0;
  for (const page of pages) {
    if (bytes >= bytesMax && found.length > 0) break;
    for (const part of partsOf(page)) {
      if (part.first + part.count <= from || (bytes >= bytesMax && found.length > 0)) continue;
      found.push(part);
      bytes += part.body.length;
    }
  }
  return found;
}

function cut(page: HeldPage): readonly HeldPage[] {
  const slices = page.slices ?? cutRecords(page.body, page.items);
  const bytesMax = Math.max(partBytes, Math.ceil(page.body.length / partsMax));
  const parts: HeldPage[] = [];
  let from = 0;
  let bytes = 0;
  for (let i = 0; i < page.count; i += 1) {
    const at = page.kept?.[i] ?? i;
    bytes += (slices.ends[at] ?? 0) - (slices.starts[at] ?? 0);
    if (bytes < bytesMax && i + 1 < page.count) continue;
    parts.push(partOf(page, slices, { from, to: i + 1 }));
    from = i + 1;
    bytes = 0;
  }
  return parts;
}

function partOf(
  page: HeldPage,
  slices: Slices,
  { from, to }: { readonly from: number; readonly to: number },
): HeldPage {
  const { kept, slices: _, ...rest } = page;
  const starts = new Uint32Array(to - from);
  const ends = new Uint32Array(to - from);
  const base = slices.starts[kept?.[from] ?? from] ?? 0;
  for (let i = from; i < to; i += 1) {
    const at = kept?.[i] ?? i;
    starts[i - from] = (slices.starts[at] ?? 0) - base;
    ends[i - from] = (slices.ends[at] ?? 0) - base;
  }
  return {
    ...rest,
    first: page.first + from,
    count: to - from,
    kept: null,
    uids: page.uids.subarray(from * uidBytes, to * uidBytes),
    body: page.body.subarray(base, base + (ends.at(-1) ?? 0)),
    slices: { starts, ends, length: to - from, exact: slices.exact },
  };
}
