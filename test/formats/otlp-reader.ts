// An independent reader of OTLP protobuf, made from the field numbers in opentelemetry-proto (logs.proto, common.proto,
// resource.proto, 1.11.0), so that what the OpenTelemetry packages serialise is judged by something else. Only the log
// fields; an unknown field or a wrong wire type is an error.

/** A log record as a receiver sees it; times and integers exact. */
export interface ReadRecord {
  timeUnixNano: bigint;
  observedTimeUnixNano: bigint;
  severityNumber: number;
  severityText: string;
  eventName: string;
  body: unknown;
  attributes: Record<string, unknown>;
}

/** A request as a receiver sees it: one list of records for each resource and scope. */
export interface ReadRequest {
  readonly groups: readonly {
    readonly resource: Record<string, unknown>;
    readonly scope: string;
    readonly records: readonly ReadRecord[];
  }[];
}

interface Field {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

/** Reads an ExportLogsServiceRequest. */
export function readRequest(bytes: Uint8Array): ReadRequest {
  const groups = fieldsOf(bytes).flatMap((field) => {
    const parts = fieldsOf(only(field, 1));
    const resource = parts.find(({ number }) => number === 1);
    return parts
      .filter(({ number }) => number === 2)
      .map((scopeLogs) => {
        const members = fieldsOf(bytesOf(scopeLogs));
        const scope = members.find(({ number }) => number === 1);
        return {
          resource: resource ? attributesIn(fieldsOf(bytesOf(resource)), 1) : {},
          scope: scope ? textIn(fieldsOf(bytesOf(scope)), 1) : '',
          records: members
            .filter(({ number }) => number === 2)
            .map((log) => readRecord(bytesOf(log))),
        };
      });
  });
  return { groups };
}

function readRecord(bytes: Uint8Array): ReadRecord {
  const fields = fieldsOf(bytes);
  const known = [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12];
  for (const { number } of fields) if (!known.includes(number)) throw new Error(`field ${number}`);
  const body = fields.find(({ number }) => number === 5);
  return {
    timeUnixNano: numberIn(fields, 1),
    severityNumber: Number(numberIn(fields, 2)),
    severityText: textIn(fields, 3),
    body: body ? anyValueOf(bytesOf(body)) : undefined,
    attributes: attributesIn(fields, 6),
    observedTimeUnixNano: numberIn(fields, 11),
    eventName: textIn(fields, 12),
  };
}

function attributesIn(fields: readonly Field[], number: number): Record<string, unknown> {
  return Object.fromEntries(
    fields.filter((field) => field.number === number).map((field) => keyValueOf(bytesOf(field))),
  );
}

function keyValueOf(bytes: Uint8Array): [string, unknown] {
  const fields = fieldsOf(bytes);
  const value = fields.find(({ number }) => number === 2);
  return [textIn(fields, 1), value ? anyValueOf(bytesOf(value)) : null];
}

function anyValueOf(bytes: Uint8Array): unknown {
  const [field, second] = fieldsOf(bytes);
  if (second) throw new Error('an AnyValue of two values');
  if (!field) return null;
  switch (field.number) {
    case 1:
      return utf8(bytesOf(field));
    case 2:
      return field.value === 1n;
    case 3:
      return Number(BigInt.asIntN(64, field.value as bigint));
    case 4:
      return doubleOf(field.value as bigint);
    case 5:
      return fieldsOf(bytesOf(field)).map((item) => anyValueOf(bytesOf(item)));
    case 6:
      return attributesIn(fieldsOf(bytesOf(field)), 1);
    case 7:
      return bytesOf(field);
    default:
      throw new Error(`AnyValue field ${field.number}`);
  }
}

function doubleOf(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

function only(field: Field, number: number): Uint8Array {
  if (field.number !== number) throw new Error(`field ${field.number} where ${number} belongs`);
  return bytesOf(field);
}

function bytesOf({ number, value }: Field): Uint8Array {
  if (typeof value === 'bigint') throw new Error(`field ${number} is no message`);
  return value;
}

function textIn(fields: readonly Field[], number: number): string {
  const field = fields.find((candidate) => candidate.number === number);
  return field ? utf8(bytesOf(field)) : '';
}

function numberIn(fields: readonly Field[], number: number): bigint {
  const value = fields.find((candidate) => candidate.number === number)?.value ?? 0n;
  if (typeof value !== 'bigint') throw new Error(`field ${number} is no number`);
  return value;
}

function utf8(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}

/** The fields of a message, by the protobuf wire format. */
function fieldsOf(bytes: Uint8Array): readonly Field[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = view.getUint8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const wire = tag & 7;
    if (wire === 0) {
      fields.push({ number, value: varint() });
    } else if (wire === 1) {
      fields.push({ number, value: view.getBigUint64(at, true) });
      at += 8;
    } else if (wire === 2) {
      const length = Number(varint());
      if (at + length > bytes.length) throw new Error(`field ${number} is cut off`);
      fields.push({ number, value: bytes.subarray(at, at + length) });
      at += length;
    } else {
      throw new Error(`wire type ${wire}`);
    }
  }
  return fields;
}
