// A learned line in Protocol Buffers: constant bytes, gaps, and messages with gaps, whose lengths
// depend on their values. Invariant: the items in order, each message with its length in front,
// give the bytes of the pieces.

import type { NumberTags, Piece } from '../contracts/index.ts';
import { varintOf, writeNanos, writeNumber } from './protobuf.ts';
import type { Gaps } from './sentinels.ts';
import type { TemplateGap } from './template.ts';

/** The content of a gap in a message. */
export type MessageGap =
  | TemplateGap
  | { readonly kind: 'json' | 'nanos'; readonly leaf: number }
  | {
      readonly kind: 'number' | 'time number';
      readonly leaf: number;
      readonly tags: NumberTags;
    };

/** The content of a message, in order: constant bytes, gaps, and messages with gaps. */
export type Item = Buffer | MessageGap | { readonly message: readonly Item[] };

/** Converts pieces to items: adjacent constant pieces are joined, including their lengths. */
export function itemsOf(pieces: readonly Piece[], gaps: Gaps): readonly Item[] {
  const items: Item[] = [];
  for (const item of pieces.flatMap((piece) => itemsOfPiece(piece, gaps))) {
    const last = items.at(-1);
    if (!Buffer.isBuffer(item) || !Buffer.isBuffer(last)) items.push(item);
    else items[items.length - 1] = Buffer.concat([last, item]);
  }
  return items.filter((item) => !Buffer.isBuffer(item) || item.length > 0);
}

function itemsOfPiece(piece: Piece, gaps: Gaps): readonly Item[] {
  if (piece instanceof Uint8Array) return [Buffer.from(piece)];
  if ('message' in piece) {
    const message = itemsOf(piece.message, gaps);
    const [only = Buffer.alloc(0), more] = message;
    if (more !== undefined || !Buffer.isBuffer(only)) return [{ message }];
    return [Buffer.concat([varintOf(only.length), only])];
  }
  if ('text' in piece) {
    const { steps, after } = gaps.stepsOf(piece.text);
    const asJson = (gap: TemplateGap): MessageGap =>
      piece.isJson && gap.kind === 'value' ? { ...gap, kind: 'json' } : gap;
    const items = steps.flatMap(({ before, gap }) => [Buffer.from(before), asJson(gap)]);
    return [...items, Buffer.from(after)];
  }
  const bytes = Buffer.alloc(16);
  const out = new DataView(bytes.buffer, bytes.byteOffset);
  if ('nanosOf' in piece) {
    const gap = gaps.of(piece.nanosOf);
    if (gap?.kind === 'milliseconds') return [{ kind: 'nanos', leaf: gap.leaf }];
    return [bytes.subarray(0, writeNanos(piece.nanosOf, out, 0))];
  }
  const { number, tags } = piece;
  const gap = gaps.of(number);
  if (gap?.kind === 'value') return [{ kind: 'number', leaf: gap.leaf, tags }];
  if (gap?.kind === 'milliseconds') return [{ kind: 'time number', leaf: gap.leaf, tags }];
  return [bytes.subarray(0, writeNumber(number, tags, out, 0))];
}
