// From a decoded OTLP request to log records with their resource and scope, in the terms of the
// OpenTelemetry log data model. Absent fields get protobuf's defaults. Breaches of the data model that
// the wire format cannot express (an attribute twice, an id of the wrong length) are errors.
import type { FieldValue, Message } from './otlp-schema.ts';

/** An AnyValue: integers are bigint, doubles are number, an unset value is null. */
export type OtlpValue =
  | null
  | string
  | boolean
  | bigint
  | number
  | Uint8Array
  | readonly OtlpValue[]
  | OtlpMap;
export interface OtlpMap {
  readonly [key: string]: OtlpValue;
}

export interface OtlpRecord {
  readonly resource: OtlpMap;
  readonly scope: { readonly name: string; readonly version: string; readonly attributes: OtlpMap };
  readonly timeUnixNano: bigint;
  readonly observedTimeUnixNano: bigint;
  /** 0 to 24; 0 is unspecified. */
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: OtlpValue;
  readonly attributes: OtlpMap;
  readonly droppedAttributesCount: number;
  readonly flags: number;
  /** Hex, empty if not set. */
  readonly traceId: string;
  readonly spanId: string;
  readonly eventName: string;
}

/** All records of an ExportLogsServiceRequest, in order. */
export function recordsOf(request: Message): readonly OtlpRecord[] {
  return messages(request.resource_logs).flatMap((resourceLogs) => {
    const resource = attributes(message(resourceLogs.resource).attributes);
    return messages(resourceLogs.scope_logs).flatMap((scopeLogs) => {
      const scope = message(scopeLogs.scope);
      const about = {
        resource,
        scope: {
          name: text(scope.name),
          version: text(scope.version),
          attributes: attributes(scope.attributes),
        },
      };
      return messages(scopeLogs.log_records).map((record) => ({ ...about, ...logRecord(record) }));
    });
  });
}

function logRecord(record: Message): Omit<OtlpRecord, 'resource' | 'scope'> {
  const severityNumber = number(record.severity_number);
  if (severityNumber < 0 || severityNumber > 24) {
    throw new Error(`the severity number ${severityNumber} does not exist`);
  }
  return {
    timeUnixNano: bigint(record.time_unix_nano),
    observedTimeUnixNano: bigint(record.observed_time_unix_nano),
    severityNumber,
    severityText: text(record.severity_text),
    body: record.body === undefined ? null : anyValue(message(record.body)),
    attributes: attributes(record.attributes),
    droppedAttributesCount: number(record.dropped_attributes_count),
    flags: number(record.flags),
    traceId: id(record.trace_id, 16),
    spanId: id(record.span_id, 8),
    eventName: text(record.event_name),
  };
}

function attributes(keyValues: FieldValue | undefined): OtlpMap {
  const map = new Map<string, OtlpValue>();
  for (const keyValue of messages(keyValues)) {
    const key = text(keyValue.key);
    if (key === '') throw new Error('an attribute has no key');
    if (map.has(key)) throw new Error(`the attribute ${key} occurs twice`);
    map.set(key, anyValue(message(keyValue.value)));
  }
  return Object.fromEntries(map);
}

function anyValue(value: Message): OtlpValue {
  const set = Object.entries(value);
  if (set.length > 1) throw new Error(`a value is of several kinds: ${Object.keys(value)}`);
  const [kind, content] = set[0] ?? ['nothing', undefined];
  switch (kind) {
    case 'nothing':
      return null;
    case 'array_value':
      return messages(message(content).values).map(anyValue);
    case 'kvlist_value':
      return attributes(message(content).values);
  }
  if (isScalar(content)) return content;
  throw new Error(`a value is of the unknown kind ${kind}`);
}

type Scalar = string | number | bigint | boolean | Uint8Array;

function isScalar(value: FieldValue | undefined): value is Scalar {
  return typeof value !== 'undefined' && (typeof value !== 'object' || value instanceof Uint8Array);
}

function isMessage(value: FieldValue | undefined): value is Message {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Uint8Array);
}

function message(value: FieldValue | undefined): Message {
  return isMessage(value) ? value : {};
}

function messages(value: FieldValue | undefined): readonly Message[] {
  return Array.isArray(value) ? value.filter(isMessage) : [];
}

function text(value: FieldValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function number(value: FieldValue | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function bigint(value: FieldValue | undefined): bigint {
  return typeof value === 'bigint' ? value : 0n;
}

function id(value: FieldValue | undefined, length: number): string {
  if (!(value instanceof Uint8Array) || value.length === 0) return '';
  if (value.length !== length) throw new Error(`an id has ${value.length} bytes, not ${length}`);
  return Buffer.from(value).toString('hex');
}
