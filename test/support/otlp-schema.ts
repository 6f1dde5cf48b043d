// OTLP logs as data: the messages of opentelemetry-proto 1.11 (collector/logs/v1, logs/v1, resource/v1,
// common/v1), field number by field number, with a reader of the protobuf wire format and a reader of
// OTLP/JSON that follow them. It is written against the standard and shares nothing with the exporter
// under test. It is stricter than a collector must be: an unknown field is an error here, since in a
// test it can only mean that the sender got a number or a name wrong.

/** Types of fields that hold one value; anything else names a message. */
export type ScalarType =
  | 'string'
  | 'bytes'
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'fixed32'
  | 'fixed64'
  | 'double'
  | 'SeverityNumber';

export interface Field {
  readonly number: number;
  /** As in the .proto file: snake_case. */
  readonly name: string;
  readonly type: ScalarType | MessageName;
  readonly repeated: boolean;
}

export type MessageName =
  | 'ExportLogsServiceRequest'
  | 'ResourceLogs'
  | 'Resource'
  | 'EntityRef'
  | 'ScopeLogs'
  | 'InstrumentationScope'
  | 'LogRecord'
  | 'AnyValue'
  | 'ArrayValue'
  | 'KeyValueList'
  | 'KeyValue';

const one = (number: number, type: Field['type'], name: string): Field => {
  return { number, name, type, repeated: false };
};
const many = (number: number, type: Field['type'], name: string): Field => {
  return { number, name, type, repeated: true };
};

/** The messages of an OTLP logs request. `otlp-schema.test.ts` compares them with the .proto files. */
export const otlpMessages: Readonly<Record<MessageName, readonly Field[]>> = {
  ExportLogsServiceRequest: [many(1, 'ResourceLogs', 'resource_logs')],
  ResourceLogs: [
    one(1, 'Resource', 'resource'),
    many(2, 'ScopeLogs', 'scope_logs'),
    one(3, 'string', 'schema_url'),
  ],
  Resource: [
    many(1, 'KeyValue', 'attributes'),
    one(2, 'uint32', 'dropped_attributes_count'),
    many(3, 'EntityRef', 'entity_refs'),
  ],
  EntityRef: [
    one(1, 'string', 'schema_url'),
    one(2, 'string', 'type'),
    many(3, 'string', 'id_keys'),
    many(4, 'string', 'description_keys'),
  ],
  ScopeLogs: [
    one(1, 'InstrumentationScope', 'scope'),
    many(2, 'LogRecord', 'log_records'),
    one(3, 'string', 'schema_url'),
  ],
  InstrumentationScope: [
    one(1, 'string', 'name'),
    one(2, 'string', 'version'),
    many(3, 'KeyValue', 'attributes'),
    one(4, 'uint32', 'dropped_attributes_count'),
  ],
  LogRecord: [
    one(1, 'fixed64', 'time_unix_nano'),
    one(11, 'fixed64', 'observed_time_unix_nano'),
    one(2, 'SeverityNumber', 'severity_number'),
    one(3, 'string', 'severity_text'),
    one(5, 'AnyValue', 'body'),
    many(6, 'KeyValue', 'attributes'),
    one(7, 'uint32', 'dropped_attributes_count'),
    one(8, 'fixed32', 'flags'),
    one(9, 'bytes', 'trace_id'),
    one(10, 'bytes', 'span_id'),
    one(12, 'string', 'event_name'),
  ],
  AnyValue: [
    one(1, 'string', 'string_value'),
    one(2, 'bool', 'bool_value'),
    one(3, 'int64', 'int_value'),
    one(4, 'double', 'double_value'),
    one(5, 'ArrayValue', 'array_value'),
    one(6, 'KeyValueList', 'kvlist_value'),
    one(7, 'bytes', 'bytes_value'),
    one(8, 'int32', 'string_value_strindex'),
  ],
  ArrayValue: [many(1, 'AnyValue', 'values')],
  KeyValueList: [many(1, 'KeyValue', 'values')],
  KeyValue: [one(1, 'string', 'key'), one(2, 'AnyValue', 'value'), one(3, 'int32', 'key_strindex')],
};

/**
 * A decoded message: values by the field's name in the .proto file. Integers of 64 bits are bigint,
 * other numbers are number, bytes are Uint8Array; an absent field is absent.
 */
export interface Message {
  readonly [field: string]: FieldValue;
}
export type FieldValue =
  | string
  | number
  | bigint
  | boolean
  | Uint8Array
  | Message
  | readonly FieldValue[];

/** True for a type that names one of the messages above. */
export function isMessageName(type: Field['type']): type is MessageName {
  return Object.hasOwn(otlpMessages, type);
}
