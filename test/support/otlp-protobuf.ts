// Reads and writes the protobuf wire format as far as OTLP logs need it (protobuf.dev, "Encoding"):
// requests are read by the tables of `otlp-schema.ts`, and the one response that has content, a
// partial success, is written.
import {
  type Field,
  type FieldValue,
  isMessageName,
  type Message,
  type MessageName,
  otlpMessages,
} from './otlp-schema.ts';

/** Decodes one message; throws on unknown fields, wrong wire types and bytes that end too early. */
export function decodeProtobuf(name: MessageName, bytes: Uint8Array): Message {
  const fields = new Map(otlpMessages[name].map((field) => [field.number, field]));
  const wire = new WireReader(bytes);
  const message: Record<string, FieldValue> = {};
  while (!wire.atEnd) {
    const tag = Number(wire.varint());
    const field = fields.get(tag >>> 3);
    if (field === undefined) throw new Error(`${name} has no field ${tag >>> 3}`);
    if ((tag & 7) !== wireType(field)) {
      throw new Error(`${name}.${field.name} has wire type ${tag & 7}, not ${wireType(field)}`);
    }
    const value = fieldValue(field, wire);
    message[field.name] = field.repeated ? [...asList(message[field.name] ?? []), value] : value;
  }
  return message;
}

function asList(value: FieldValue): readonly FieldValue[] {
  return Array.isArray(value) ? value : [value];
}

function wireType(field: Field): number {
  switch (field.type) {
    case 'bool':
    case 'int32':
    case 'int64':
    case 'uint32':
    case 'SeverityNumber':
      return 0;
    case 'fixed64':
    case 'double':
      return 1;
    case 'fixed32':
      return 5;
    default:
      return 2; // strings, bytes and every message
  }
}

function fieldValue(field: Field, wire: WireReader): FieldValue {
  const { type } = field;
  if (isMessageName(type)) return decodeProtobuf(type, wire.lengthDelimited());
  switch (type) {
    case 'string':
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(
        wire.lengthDelimited(),
      );
    case 'bytes':
      return wire.lengthDelimited();
    case 'bool':
      return wire.varint() !== 0n;
    case 'int64':
      return BigInt.asIntN(64, wire.varint());
    case 'int32':
    case 'uint32':
    case 'SeverityNumber':
      return Number(BigInt.asIntN(64, wire.varint()));
    case 'fixed64':
      return wire.fixed(8).getBigUint64(0, true);
    case 'fixed32':
      return wire.fixed(4).getUint32(0, true);
    case 'double':
      return wire.fixed(8).getFloat64(0, true);
  }
}

class WireReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#take(1)[0] ?? 0;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error('a varint is longer than ten bytes');
  }

  lengthDelimited(): Uint8Array {
    return this.#take(Number(this.varint()));
  }

  fixed(length: 4 | 8): DataView {
    const bytes = this.#take(length);
    return new DataView(bytes.buffer, bytes.byteOffset, length);
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Error('the message ends inside a field');
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }
}

/** ExportLogsServiceResponse { partial_success { rejected_log_records, error_message } }. */
export function encodePartialSuccess(rejected: number, message: string): Uint8Array {
  const text = Buffer.from(message);
  const partial = Buffer.from([0x08, ...varint(rejected), 0x12, ...varint(text.length), ...text]);
  return Buffer.from([0x0a, ...varint(partial.length), ...partial]);
}

function varint(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(Math.floor(value / 0x80))];
}
