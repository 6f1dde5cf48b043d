// Collects the pieces of written fields, for copying values into them later
// (src/contracts/copying.ts). Invariant: the pieces in order, each with its length in front, give
// the bytes that `ProtobufWriter` writes for the same calls.

import type { NumberTags, Piece } from '../src/contracts/index.ts';
import { type FieldWriter, ProtobufWriter } from './protobuf.ts';

const longestBytes = 16;

/** Collects pieces. */
export class ProtobufPieces implements FieldWriter {
  readonly #written = new ProtobufWriter(longestBytes);
  /** The open messages, each within the one before it. */
  readonly #begun: Piece[][] = [[]];

  /** All pieces, once every open message has ended. */
  get pieces(): readonly Piece[] {
    return this.#begun[0] ?? [];
  }

  byte(value: number): void {
    this.#add(Uint8Array.of(value));
  }

  raw(bytes: Uint8Array): void {
    this.#add(bytes.slice());
  }

  varint(value: number): void {
    this.#written.clear();
    this.#written.varint(value);
    this.raw(this.#written.written());
  }

  number(value: number, tags: NumberTags): void {
    this.#add({ number: value, tags });
  }

  nanos(ms: number): void {
    this.#add({ nanosOf: ms });
  }

  string(text: string): void {
    this.#add({ message: [{ text, isJson: false }] });
  }

  json(text: string): void {
    this.#add({ message: [{ text, isJson: true }] });
  }

  begin(): number {
    return this.#begun.push([]);
  }

  end(): void {
    this.#add({ message: this.#begun.pop() ?? [] });
  }

  #add(piece: Piece): void {
    this.#begun.at(-1)?.push(piece);
  }
}
