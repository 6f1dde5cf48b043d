// The cef format with any content: nothing forges a field, every text comes back, and the dictionary's keys, types and
// lengths are kept.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { extensionLengths, headerLengths } from '../../formats/cef-lengths.ts';
import type { Event } from '../../src/contracts/event.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { carriedHeader, carriedValue } from './carried.ts';
import { decodeCef } from './decoders.ts';
import { textEncoder } from './make-format.ts';
import { readJson, vectorTest } from './vectors.ts';

const encode = textEncoder('cef');
const decode = (event: Event) => decodeCef(encode(event));

interface Dictionary {
  readonly header: Readonly<Record<string, number>>;
  readonly extensions: readonly {
    readonly key: string;
    readonly type: string;
    readonly length?: number;
    readonly audience: string;
  }[];
}

describe('cef with any content', () => {
  test('decodes, with the uid whole and every text as it was', () => {
    fc.assert(
      fc.property(hostileEvent, (event) => {
        const decoded = decode(event);

        expect(decoded.extension.get('cs6')).toBe(event.uid);
        const message = carriedValue(event.ocsf.message ?? '');
        const given = decoded.extension.get('msg') ?? '';
        expect(message.startsWith(given)).toBe(true);
        // Below this length, the limit is not reached even if each character were escaped.
        if (message.length < 500) expect(given).toBe(message);
        const code = carriedHeader(event.ocsf.metadata.event_code || '6003:3');
        expect(code.startsWith(decoded.deviceEventClassId)).toBe(true);
      }),
    );
  });

  test('keeps to the dictionary’s keys, lengths and types', () => {
    fc.assert(
      fc.property(fc.oneof(hostileEvent, weirdEvent), (event) => {
        const { extension, ...header } = decode(event);

        for (const [field, length] of Object.entries(headerLengths)) {
          const value = header[field as keyof typeof headerLengths];
          expect([...value].length).toBeLessThanOrEqual(length);
        }
        for (const [key, value] of extension) {
          const length = (extensionLengths as Readonly<Record<string, number>>)[key] ?? 4000;
          expect(value, key).not.toBe('');
          expect([...value].length, key).toBeLessThanOrEqual(length);
          expect(value, key).not.toMatch(/[^\P{Cc}\r\n]/u);
        }
        for (const number of [
          'spt',
          'dpt',
          'in',
          'out',
          'cnt',
          'cn1',
          'fsize',
          'deviceDirection',
        ]) {
          expect(extension.get(number) ?? '0', number).toMatch(/^\d+$/);
        }
        for (const time of ['rt', 'start', 'end']) {
          expect(extension.get(time) ?? '0', time).toMatch(/^-?\d+$/);
        }
        for (const key of extension.keys()) {
          if (/^(cs|cn|c6a)\d$/.test(key)) expect(extension.get(`${key}Label`)).toBeDefined();
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('cef lengths', () => {
  vectorTest('are those of the CEF dictionary, and only of keys that a producer may send', () => {
    const dictionary = readJson<Dictionary>('cef/cef-extensions.json');
    const entries = new Map(dictionary.extensions.map((entry) => [entry.key, entry]));

    expect(headerLengths).toEqual(dictionary.header);
    for (const [key, length] of Object.entries(extensionLengths)) {
      if (key.startsWith('sluice')) continue;
      expect(entries.get(key), key).toMatchObject({ length, type: 'string' });
      expect(entries.get(key)?.audience, key).not.toBe('consumer');
    }
  });
});
