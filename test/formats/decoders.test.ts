// Holds the decoders of these tests against other people's vectors, so that what they say of sluice's output counts.

import { describe, expect, test } from 'vitest';
import { decodeCef, parse5424 } from './decoders.ts';
import { readLines, vectorTest } from './vectors.ts';

interface RoundTrip {
  readonly case: string;
  readonly where: 'ext' | 'ext_last' | 'header';
  readonly value: string;
  readonly cef: string;
}

interface CefVector {
  readonly input: string;
  readonly liblognorm_decode?:
    | 'REJECTED'
    | { readonly Name: string; readonly Extensions?: Readonly<Record<string, string>> };
}

interface SyslogVector {
  readonly input?: string;
  /** Where the input is not valid UTF-8. */
  readonly input_b64?: string;
  readonly valid: boolean;
  readonly parsed?: {
    readonly priority: number;
    readonly hostname: string | null;
    readonly appname: string | null;
    readonly procid: string | null;
    readonly msgid: string | null;
    readonly message: string | null;
    readonly sd: Readonly<Record<string, Readonly<Record<string, string>>>> | null;
  };
}

describe('decodeCef', () => {
  vectorTest('gives back every value of the round-trip vectors', () => {
    const vectors = readLines<RoundTrip>('vectors/cef-roundtrip-own.ndjson');

    const given = vectors.map(({ where, cef }) => {
      const decoded = decodeCef(cef);
      return where === 'header' ? decoded.name : decoded.extension.get('cs1');
    });

    // Headers cannot carry line breaks, so these vectors have a blank instead.
    const expected = vectors.map(({ where, value }) =>
      where === 'header' ? value.replace(/\r\n|[\r\n]/g, ' ') : value,
    );
    expect(given).toEqual(expected);
    expect(vectors.length).toBe(123);
  });

  vectorTest('agrees with liblognorm wherever both accept an event of CEF:0', () => {
    const vectors = readLines<CefVector>('vectors/cef-vectors.ndjson').filter(
      ({ input, liblognorm_decode: decoded }) =>
        input.startsWith('CEF:0') && decoded !== undefined && decoded !== 'REJECTED',
    );
    let compared = 0;

    for (const { input, liblognorm_decode: expected } of vectors) {
      if (expected === undefined || expected === 'REJECTED') continue;
      let decoded: ReturnType<typeof decodeCef>;
      try {
        decoded = decodeCef(input);
      } catch {
        continue;
      }
      compared += 1;
      expect(decoded.name, input).toBe(expected.Name);
      for (const [key, value] of Object.entries(expected.Extensions ?? {})) {
        expect(decoded.extension.get(key)?.trimEnd(), `${key} of ${input}`).toBe(value.trimEnd());
      }
    }

    expect(compared).toBeGreaterThan(20);
  });

  test.each([
    ['CEF:0|v|p|1|id|name|5', 'the pipe after the severity'],
    ['CEF:0|v|p|1|id|na\\=me|5|', 'an escaped equals sign in the header'],
    ['CEF:0|v|p|1|id|name|5|src=1 src=2', 'a key that stands twice'],
    ['CEF:0|v|p|1|id|name|5|msg=a\\|b', 'an escaped pipe in a value'],
    ['CEF:0|v|p|1|id|name|5|msg=a\nb', 'a line break in a value'],
    ['CEF:0|v|p|1|id|name|5|m.g=a', 'a key with a dot'],
  ])('refuses %j: %s', (text) => {
    expect(() => decodeCef(text)).toThrow();
  });
});

describe('parse5424', () => {
  vectorTest('agrees with go-syslog on what is valid and on every field', () => {
    const vectors = readLines<SyslogVector>('vectors/rfc5424-go-syslog.ndjson');

    for (const { valid, parsed, ...vector } of vectors) {
      const input = vector.input ?? Buffer.from(vector.input_b64 ?? '', 'base64').toString('utf8');
      if (!valid) {
        expect(() => parse5424(input), input).toThrow();
        continue;
      }
      const line = parse5424(input);
      expect(line.facility * 8 + line.severity, input).toBe(parsed?.priority);
      expect(line.hostname, input).toBe(parsed?.hostname);
      expect(line.appName, input).toBe(parsed?.appname);
      expect(line.procId, input).toBe(parsed?.procid);
      expect(line.msgId, input).toBe(parsed?.msgid);
      expect(line.message, input).toBe(parsed?.message);
      expect(plain(line.structuredData), input).toEqual(parsed?.sd);
    }

    expect(vectors.length).toBe(637);
  });
});

function plain(data: ReadonlyMap<string, ReadonlyMap<string, string>> | null): unknown {
  if (data === null) return null;
  return Object.fromEntries([...data].map(([id, params]) => [id, Object.fromEntries(params)]));
}
