// Torture pages (torture-page.ts) in every format and framing, read back by decoders that share no code with the
// writers. Each event must be one frame, with its content or the documented replacement. `fuzz-main.ts` runs any
// number.

import { framerFor } from '../../connectors/sinks/syslog/framing.ts';
import type { EncodedLines } from '../../src/contracts/format.ts';
import { encodeLines } from '../../src/send/encode.ts';
import { makeFormat } from '../formats/make-format.ts';
import { FrameSplitter } from '../support/syslog-frames.ts';
import { lostTexts } from './decoded.ts';
import { type Arrived, type Reader, readers } from './readers.ts';
import { pageRecords, torturePage } from './torture-page.ts';

/** What went wrong with one record, in enough words to find it. */
export interface Finding {
  readonly record: number;
  readonly what: string;
}

/** How much was looked at. */
export interface Fuzzed {
  /** Encoded events read back. */
  readonly decoded: number;
  readonly findings: readonly Finding[];
}

const findingLengthMax = 400;
/** Far beyond what any double spans. */
const exponentsMax = 2_000;
const formats = readers.map(({ type, settings }) => makeFormat(type, settings));

/** Puts pages `from` up to `from + count` of the series `seed` through. */
export function fuzz(seed: number, from: number, count: number): Fuzzed {
  const findings: Finding[] = [];
  let decoded = 0;
  for (let number = from; number < from + count; number++) {
    decoded += judgePage(seed, number, (index, what) => {
      const record = number * pageRecords + index;
      findings.push({ record, what: what.slice(0, findingLengthMax) });
    });
  }
  return { decoded, findings };
}

type Complain = (index: number, what: string) => void;

function judgePage(seed: number, number: number, complain: Complain): number {
  const { sent, events } = torturePage(seed, number);
  const arrived = events.map((event, i): Arrived => {
    const bytes = sent[i] ?? Buffer.alloc(0);
    const text = new TextDecoder().decode(bytes);
    const record: unknown = JSON.parse(text);
    const exact: unknown = JSON.parse(text, keepingNumbers);
    const { ocsf } = event;
    if (!bytes.equals(event.raw)) complain(i, 'the record’s bytes are not those that were sent');
    const lost = lostTexts(record, ocsf);
    if (lost.length > 0) complain(i, `normalising lost ${JSON.stringify(lost)}`);
    return { event, ocsf, record, exact, sent: bytes };
  });
  let decoded = 0;
  readers.forEach((reader, n) => {
    const format = formats[n];
    if (format === undefined) return;
    const frames = framesOf(encodeLines(events, format), reader, complain);
    arrived.forEach((one, i) => {
      try {
        reader.read(frames[i] ?? Buffer.alloc(0), one);
      } catch (error) {
        complain(i, `${reader.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
    decoded += frames.length;
  });
  return decoded;
}

/** A number that a double cannot keep is written as the text that was sent. */
function keepingNumbers(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined) return value;
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value) ? value : source;
  return Number.isFinite(value) && isSame(String(value), source) ? value : source;
}

/** True for two texts of the same number. */
function isSame(a: string, b: string): boolean {
  const [one, other] = [scaled(a), scaled(b)];
  if (one.digits === 0n || other.digits === 0n) return one.digits === other.digits;
  const by = one.exponent - other.exponent;
  if (Math.abs(by) > exponentsMax) return false;
  const factor = 10n ** BigInt(Math.abs(by));
  return by < 0 ? one.digits === other.digits * factor : one.digits * factor === other.digits;
}

function scaled(text: string): { readonly digits: bigint; readonly exponent: number } {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** The events as a receiver distinguishes them. */
function framesOf(lines: EncodedLines, { name, type }: Reader, complain: Complain): Buffer[] {
  const { buffer, byteOffset, byteLength } = lines.bytes;
  const whole = Buffer.from(buffer, byteOffset, byteLength);
  const frames = Array.from({ length: lines.length }, (_, i) =>
    whole.subarray(lines.starts[i], lines.ends[i]),
  );
  // OTLP travels as documents of a length of their own, and may hold any byte.
  if (type === 'otel') return frames;
  frames.forEach((frame, i) => {
    if (/[\r\n]/.test(frame.toString('latin1'))) complain(i, `${name}: a line break in a line`);
  });
  if (type !== 'syslog') return frames;
  for (const framing of ['newline', 'octet_counting'] as const) {
    const splitter = new FrameSplitter();
    const split = splitter.push(framerFor(framing)(lines)?.bytes ?? Buffer.alloc(0));
    const same = split.every(({ bytes }, i) => frames[i]?.equals(bytes) === true);
    const whole = split.length === frames.length && splitter.pending === 0;
    if (!same || !whole || splitter.fault !== null) complain(0, `${name}: ${framing} framing`);
  }
  return frames;
}
