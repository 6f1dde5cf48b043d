// Fields as the pieces that they are written of, for who copies values into them later
// (src/contracts/copying.ts). What must stay true: the pieces in order, each length put in front,
// are the bytes that `ProtobufWriter` writes when it is told the same.

import type { NumberTags, Piece } from '../src/contracts/copying.ts';
import { type FieldWriter, ProtobufWriter } from './protobuf.ts';

const longestBytes = 16;

/** Gathers pieces. */
export class ProtobufPieces implements FieldWriter {
  readonly #written = new ProtobufWriter(longestBytes);
  /** The messages that are begun, each within the one before it. */
  readonly #begun: Piece[][] = [[]];

  /** All of them, once every message that was begun has ended. */
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
