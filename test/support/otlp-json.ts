// Reads OTLP/JSON (OTLP specification, "JSON Protobuf Encoding") by the tables of `otlp-schema.ts`:
// lowerCamelCase names, 64-bit integers as decimal strings or safe numbers, enums as integers, trace
// and span ids in hex, other bytes in base64.
import {
  type Field,
  type FieldValue,
  isMessageName,
  type Message,
  type MessageName,
  otlpMessages,
} from './otlp-schema.ts';

/** Decodes one message from parsed JSON; throws on unknown names and on values of the wrong kind. */
export function decodeOtlpJson(name: MessageName, json: unknown): Message {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new Error(`${name} is not an object: ${JSON.stringify(json)}`);
  }
  const fields = new Map(otlpMessages[name].map((field) => [camelCase(field.name), field]));
  const message: Record<string, FieldValue> = {};
  for (const [key, value] of Object.entries(json)) {
    const field = fields.get(key);
    if (field === undefined) throw new Error(`${name} has no field ${key}`);
    message[field.name] = field.repeated ? list(field, value) : fieldValue(field, value);
  }
  return message;
}

function camelCase(name: string): string {
  return name.replace(/_(.)/g, (_, deadLetter: string) => deadLetter.toUpperCase());
}

function list(field: Field, value: unknown): readonly FieldValue[] {
  if (!Array.isArray(value)) throw new Error(`${field.name} is not a list`);
  return value.map((item) => fieldValue(field, item));
}

function fieldValue(field: Field, value: unknown): FieldValue {
  const { type } = field;
  if (isMessageName(type)) return decodeOtlpJson(type, value);
  switch (type) {
    case 'string':
      if (typeof value === 'string') return value;
      break;
    case 'bool':
      if (typeof value === 'boolean') return value;
      break;
    case 'bytes':
      if (typeof value === 'string') return idOrBytes(field, value);
      break;
    case 'int64':
    case 'fixed64':
      if (typeof value === 'string' && /^-?[0-9]+$/.test(value)) return BigInt(value);
      if (Number.isSafeInteger(value)) return BigInt(Number(value));
      break;
    case 'double':
      if (typeof value === 'number') return value;
      if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
      break;
    case 'int32':
    case 'uint32':
    case 'fixed32':
    case 'SeverityNumber':
      if (Number.isSafeInteger(value)) return Number(value);
      break;
  }
  throw new Error(`${field.name} is no ${type}: ${JSON.stringify(value)}`);
}

function idOrBytes(field: Field, value: string): Uint8Array {
  const isId = field.name === 'trace_id' || field.name === 'span_id';
  return Buffer.from(value, isId ? 'hex' : 'base64');
}
