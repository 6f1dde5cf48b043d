// The body of an OTLP response: ExportLogsServiceResponse of a 200, and google.rpc.Status of a
// failure (OTLP specification, "OTLP/HTTP Response"; opentelemetry-proto logs_service.proto). Both
// come as protobuf or as JSON. Parsed here, because the OpenTelemetry packages treat an unreadable
// response as a success, and a login page with status 200 would lose every event. The receiver's
// text is bounded and cannot break a log line.

import { type HttpResponse, isObject, plainText } from '../../../src/contracts/index.ts';

const textLengthMax = 200;

/** The content of a 200. `rejected` 0: all records were accepted; `message` may be a warning. */
export interface ExportLogsAnswer {
  readonly rejected: number;
  readonly message: string;
}

/** Parses the body of a success; null if it is not OTLP. Empty: all records were accepted. */
export function readExportLogsAnswer(response: HttpResponse): ExportLogsAnswer | null {
  if (response.body.length === 0) return { rejected: 0, message: '' };
  try {
    return isJson(response) ? answerFromJson(response.body) : answerFromProtobuf(response.body);
  } catch {
    return null;
  }
}

/** The message of google.rpc.Status in the body of a failure, or an empty text. */
export function readStatusMessage(response: HttpResponse): string {
  try {
    const message = isJson(response)
      ? memberOf(parseObject(response.body), 'message')
      : asText(protoFields(response.body).get(2));
    return typeof message === 'string' ? plain(message) : '';
  } catch {
    return '';
  }
}

function isJson(response: HttpResponse): boolean {
  return (response.headers['content-type'] ?? '')
    .trim()
    .toLowerCase()
    .startsWith('application/json');
}

function answerFromJson(body: Uint8Array): ExportLogsAnswer | null {
  const answer = parseObject(body);
  // A google.rpc.Status is a failure, also with status 200; as protobuf it is no success either. Codes are 1 to 16.
  const code = Number(memberOf(answer, 'code'));
  if (code >= 1 && code <= 16) return null;
  const partial = memberOf(answer, 'partialSuccess') ?? {};
  // An int64 is a decimal string in the protobuf JSON mapping; receivers also send it as a number.
  const rejected = Number(memberOf(partial, 'rejectedLogRecords') ?? 0);
  const message = memberOf(partial, 'errorMessage') ?? '';
  if (!Number.isInteger(rejected) || typeof message !== 'string') return null;
  return { rejected: Math.max(0, rejected), message: plain(message) };
}

function parseObject(body: Uint8Array): unknown {
  const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  if (!isObject(value)) throw new TypeError('not an object');
  return value;
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function answerFromProtobuf(body: Uint8Array): ExportLogsAnswer {
  const partialSuccess = protoFields(body).get(1) ?? new Uint8Array(0);
  if (typeof partialSuccess === 'bigint') throw new TypeError('partial_success is not a message');
  const fields = protoFields(partialSuccess);
  const rejected = fields.get(1) ?? 0n;
  if (typeof rejected !== 'bigint') throw new TypeError('rejected_log_records is not a number');
  return {
    rejected: Math.max(0, Number(BigInt.asIntN(64, rejected))),
    message: plain(asText(fields.get(2))),
  };
}

function asText(value: bigint | Uint8Array | undefined): string {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : '';
}

function plain(text: string): string {
  return plainText(text.slice(0, textLengthMax)).trim();
}

const retryInfo = 'type.googleapis.com/google.rpc.RetryInfo';
const waitMsMax = 3_600_000;

/**
 * The wait in google.rpc.RetryInfo within a google.rpc.Status, in milliseconds and at most an hour;
 * undefined if absent.
 */
export function readRetryDelayMs(status: Uint8Array): number | undefined {
  try {
    for (const [number, detail] of protoEntries(status)) {
      if (number !== 3 || typeof detail === 'bigint') continue;
      const any = protoFields(detail);
      if (asText(any.get(1)) !== retryInfo) continue;
      const duration = protoFields(asBytes(protoFields(asBytes(any.get(2))).get(1)));
      const ms = asNumber(duration.get(1)) * 1000 + asNumber(duration.get(2)) / 1e6;
      return ms > 0 ? Math.min(Math.ceil(ms), waitMsMax) : 0;
    }
  } catch {
    return undefined;
  }
  return undefined;
}

function asBytes(value: bigint | Uint8Array | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array(0);
}

function asNumber(value: bigint | Uint8Array | undefined): number {
  return typeof value === 'bigint' ? Number(BigInt.asIntN(64, value)) : 0;
}

/** The fields of one protobuf message by number, the last of each. */
function protoFields(bytes: Uint8Array): ReadonlyMap<number, bigint | Uint8Array> {
  return new Map(protoEntries(bytes));
}

/**
 * The fields of one protobuf message in order, with their numbers (protobuf encoding guide):
 * varints as values, and length-delimited ones as bytes. Fixed-width fields are skipped; the
 * messages read here have none. Throws on bytes that are no message.
 */
function protoEntries(bytes: Uint8Array): readonly (readonly [number, bigint | Uint8Array])[] {
  const fields: [number, bigint | Uint8Array][] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError('a varint is cut');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a varint is too long');
  };
  const skip = (length: number): Uint8Array => {
    const end = at + length;
    if (end > bytes.length) throw new RangeError('a field is cut');
    const skipped = bytes.subarray(at, end);
    at = end;
    return skipped;
  };
  while (at < bytes.length) {
    const tag = varint();
    // A tag has 32 bits; readers that cut a longer one would see another wire type.
    if (tag > 0xffff_ffffn) throw new RangeError('a tag is too large');
    const number = Number(tag >> 3n);
    if (number === 0) throw new RangeError('a field has the number 0');
    switch (tag & 7n) {
      case 0n:
        fields.push([number, varint()]);
        break;
      case 1n:
        skip(8);
        break;
      case 2n:
        fields.push([number, skip(Number(varint()))]);
        break;
      case 5n:
        skip(4);
        break;
      default:
        throw new RangeError('a field has an unknown wire type');
    }
  }
  return fields;
}
