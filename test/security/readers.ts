// One independent reader for each shape that events are written in. A reader decodes a frame and throws if the content
// is neither the input nor its documented replacement.

import { isUtf8 } from 'node:buffer';
import type { Event, OcsfEvent } from '../../src/contracts/event.ts';
import { isObject } from '../../src/contracts/json.ts';
import { type DecodedCef, decodeCef, parse5424 } from '../formats/decoders.ts';
import { readRequest } from '../formats/otlp-reader.ts';
import { CefTexts, cefText, sameAnyValue, sameJson, sameValue, scalarsIn } from './decoded.ts';

/** An event that was written, and what it was made of. */
export interface Arrived {
  readonly event: Event;
  readonly ocsf: OcsfEvent;
  /** The record parsed, and as upstream sent it. */
  readonly record: unknown;
  /** As `record`, with numbers that a double cannot keep as the text that was sent. */
  readonly exact: unknown;
  readonly sent: Buffer;
}

/** How events are written in one shape, and read back. */
export interface Reader {
  readonly name: string;
  readonly type: string;
  readonly settings: Readonly<Record<string, unknown>>;
  /** Throws where the frame is not this event. */
  read(frame: Buffer, arrived: Arrived): void;
}

const named = { hostname: 'gw-1', app_name: 'sluice' };
const lineMax = 8_000;
const sdId = 'sluice@32473';
const cefNumbers = /^(rt|start|end|cnt|in|out|spt|dpt|cn1|fsize|deviceDirection)$/;
const cefConstants = ['success', 'failure', 'User', 'Administrator', 'DNS', 'MITRE ATT&CK'];

export const readers: readonly Reader[] = [
  {
    name: 'json',
    type: 'json',
    settings: {},
    read(frame, { ocsf, exact }) {
      const given = JSON.parse(textOf(frame));
      expect(sameJson(given, ocsf), 'another event');
      const whole = isObject(exact) ? exact : { value: exact };
      expect(ocsf.class_uid !== 0 || sameJson(given.unmapped, whole), 'not the whole record');
    },
  },
  {
    name: 'json with raw_data',
    type: 'json',
    settings: { raw_data: true },
    read(frame, { ocsf, sent }) {
      const { raw_data, raw_data_size, ...event } = JSON.parse(textOf(frame));
      expect(raw_data === rawText(sent) && raw_data_size === sent.length, 'another record as sent');
      expect(sameJson(event, ocsf), 'another event');
    },
  },
  {
    name: 'json original',
    type: 'json',
    settings: { schema: 'original' },
    read(frame, { sent }) {
      const line = sent.toString('latin1').replace(/[\r\n]/g, ' ');
      expect(frame.toString('latin1') === line, 'not the bytes that were sent');
    },
  },
  {
    name: 'cef',
    type: 'cef',
    settings: {},
    read: (frame, arrived) => readCef(textOf(frame), arrived),
  },
  {
    name: 'syslog rfc5424',
    type: 'syslog',
    settings: named,
    read: (frame, arrived) => readMessage(message5424(frame, arrived), arrived),
  },
  {
    name: 'syslog rfc3164',
    type: 'syslog',
    settings: { ...named, protocol: 'rfc3164' },
    read: (frame, arrived) => readMessage(message3164(frame), arrived),
  },
  {
    name: 'syslog cef',
    type: 'syslog',
    settings: { ...named, message: 'cef' },
    read: (frame, arrived) => readCef(message5424(frame, arrived), arrived),
  },
  {
    name: 'syslog text',
    type: 'syslog',
    settings: { ...named, message: 'text' },
    read(frame, arrived) {
      const text = message5424(frame, arrived);
      const what = cefText(arrived.ocsf.message ?? '').slice(0, 20);
      expect(text.endsWith(` uid=${arrived.event.uid}`), 'no uid at the end');
      expect(
        text.includes('[truncated]') || withoutBreaks(text).includes(withoutBreaks(what)),
        'no message',
      );
    },
  },
  {
    name: 'syslog original',
    type: 'syslog',
    settings: { ...named, message: 'original' },
    read(frame, arrived) {
      const text = message5424(frame, arrived);
      const given = JSON.parse(text);
      if (given?.is_truncated === true && given.uid === arrived.event.uid) {
        expect(textOf(arrived.sent).startsWith(given.raw_data), 'another record as sent');
      } else expect(sameValue(given, arrived.record), 'another record');
    },
  },
  {
    name: 'otel',
    type: 'otel',
    settings: { raw_data: true },
    read(frame, { event, ocsf, sent }) {
      const { groups } = readRequest(frame);
      const [record, second] = groups.flatMap(({ records }) => records);
      expect(record !== undefined && second === undefined, 'not one record');
      expect(sameAnyValue(record?.body, ocsf), 'another event');
      expect(record?.attributes['log.record.uid'] === event.uid, 'another uid');
      expect(record?.attributes['log.record.original'] === rawText(sent), 'another record as sent');
    },
  },
  {
    name: 'otel in JSON',
    type: 'otel',
    settings: { encoding: 'json' },
    read(frame, { event, ocsf }) {
      const [logs] = JSON.parse(textOf(frame)).resourceLogs;
      const [record, second] = logs.scopeLogs[0].logRecords;
      expect(record !== undefined && second === undefined, 'not one record');
      expect(sameAnyValue(anyValueOf(record.body), ocsf), 'another event');
      const { 'log.record.uid': uid } = membersOf(record.attributes);
      expect(uid === event.uid, 'another uid');
    },
  },
];

/** An AnyValue of OTLP/JSON (opentelemetry-proto, common/v1) as a plain value. */
function anyValueOf(any: Readonly<Record<string, unknown>>): unknown {
  const [[kind, value] = [], second] = Object.entries(any);
  if (second !== undefined) throw new Error('an AnyValue of two values');
  switch (kind) {
    case undefined:
      return null;
    case 'intValue':
      return Number(value);
    case 'arrayValue':
      return ((value as { values?: Record<string, unknown>[] }).values ?? []).map(anyValueOf);
    case 'kvlistValue':
      return membersOf((value as { values?: KeyValue[] }).values ?? []);
    case 'stringValue':
    case 'boolValue':
    case 'doubleValue':
      return value;
  }
  throw new Error(`an AnyValue of the kind ${kind}`);
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

function membersOf(list: readonly KeyValue[]): Record<string, unknown> {
  return Object.fromEntries(list.map(({ key, value }) => [key, anyValueOf(value)]));
}

function expect(right: boolean, otherwise: string): asserts right {
  if (!right) throw new Error(otherwise);
}

function textOf(bytes: Buffer): string {
  return bytes.toString('utf8');
}

function withoutBreaks(text: string): string {
  return text.replace(/[\s\p{Cc}]/gu, '');
}

/** The message of a line, whose header and structured data say whose it is. */
function message5424(frame: Buffer, { event }: Arrived): string {
  expect(frame.length <= lineMax, `a line of ${frame.length} bytes`);
  const line = textOf(frame);
  expect(!/[\p{Cc}\u2028\u2029]/u.test(line), 'a control character');
  const { structuredData, message, appName, hostname } = parse5424(line);
  expect(appName === 'sluice' && hostname === 'gw-1', 'another header');
  const data = structuredData?.get(sdId);
  expect(structuredData?.size === 1 && data?.size === 3, 'other structured data');
  expect(data.get('uid') === event.uid, 'another uid');
  expect(data.get('source') === cefText(event.source), 'another source');
  expect(data.get('stream') === event.stream.replace('\n', ' '), 'another stream');
  return message ?? '';
}

function message3164(frame: Buffer): string {
  expect(frame.length <= lineMax, `a line of ${frame.length} bytes`);
  const line = textOf(frame);
  expect(!/[\p{Cc}\u2028\u2029]/u.test(line), 'a control character');
  const message = /^<\d{1,3}>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d gw-1 sluice: (.*)$/.exec(
    line,
  )?.[1];
  expect(message !== undefined, 'no RFC 3164 header');
  return message;
}

/** A JSON message: the whole event, or one that says that it was shortened and whose it is. */
function readMessage(message: string, { event, ocsf }: Arrived): void {
  const given = JSON.parse(message);
  if (given.metadata?.is_truncated !== true) {
    expect(sameJson(given, ocsf), 'another event');
    return;
  }
  expect(given.metadata.uid === event.uid, 'another uid');
  expect(given.time === undefined || given.time === ocsf.time, 'another time');
}

function readCef(text: string, arrived: Arrived): void {
  const { event, ocsf } = arrived;
  const cef = decodeCef(text);
  const { extension } = cef;
  expect(extension.get('cs6') === event.uid && extension.get('cs6Label') === 'uid', 'another uid');
  readCefHeader(cef, ocsf);
  const texts = new CefTexts(ocsf, event.stream, cefConstants);
  for (const [key, value] of extension) {
    if (key === 'cs6' || key === 'sluiceTruncated' || key.endsWith('Label')) continue;
    if (cefNumbers.test(key)) expect(/^-?\d+$/.test(value), `${key} is no number`);
    else if (key === 'sluiceUnmapped') readRest(value, texts);
    else
      expect(texts.has(value, extension.has('sluiceTruncated') ? 0 : 30), `${key} holds ${value}`);
    expect(/^(?!sluice)\w+$|^sluice[A-Za-z0-9]{1,58}$/.test(key), `the key ${key}`);
  }
  if (extension.has('sluiceTruncated')) return;
  const message = cefText(ocsf.message ?? '');
  // Below this length the limit is not reached even where each character is escaped. Without a message of the event's own
  // the record's may stand there.
  if (message.length < 500 && message !== '') {
    expect(extension.get('msg') === message, 'another message');
  }
  expect(cefText(event.stream) === extension.get('deviceFacility'), 'another stream');
  const given = new Set([...extension.values(), cef.deviceEventClassId, cef.name]);
  for (const text of scalarsIn(rest(extension))) given.add(cefText(text));
  for (const text of scalarsIn(ocsf.unmapped)) {
    expect(text === '' || cefText(text) === '' || given.has(cefText(text)), `without ${text}`);
  }
}

function rest(extension: DecodedCef['extension']): unknown {
  return JSON.parse(extension.get('sluiceUnmapped') ?? '{}');
}

function readCefHeader(cef: DecodedCef, ocsf: OcsfEvent): void {
  const header = (text: string) => cefText(text.replace(/\r\n|[\r\n]/g, ' '));
  const name = header(`${ocsf.class_name}: ${ocsf.activity_name || 'Event'}`);
  const code = header(ocsf.metadata.event_code ?? '') || `${ocsf.class_uid}:${ocsf.activity_id}`;
  expect(cef.version === '0' && cef.deviceVendor === 'sluice', 'another header');
  expect(name.startsWith(cef.name), 'another name');
  expect(code.startsWith(cef.deviceEventClassId), 'another class id');
  expect(/^(10|[0-9])$/.test(cef.severity), 'no severity');
}

/** What has no key: JSON of what the event holds. */
function readRest(value: string, texts: CefTexts): void {
  for (const text of scalarsIn(JSON.parse(value))) {
    expect(text === '' || texts.has(cefText(text), Number.POSITIVE_INFINITY), `rest holds ${text}`);
  }
}

/** The record as `raw_data` has it: base64 where it is not UTF-8. */
function rawText(sent: Buffer): string {
  return isUtf8(sent) ? textOf(sent) : Buffer.from(sent).toString('base64');
}
