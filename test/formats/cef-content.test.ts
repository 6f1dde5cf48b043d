// The cef format with any content: nothing forges a field, every text comes back, and the dictionary's keys, types and
// lengths are kept.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CefKey, type CefKind, cefKeys, headerLengths } from '../../formats/cef-keys.ts';
import type { Event } from '../../src/contracts/event.ts';
import { hostileEvent, weirdEvent } from './arbitrary-events.ts';
import { carriedHeader, carriedValue } from './carried.ts';
import { decodeCef } from './decoders.ts';
import { textEncoder } from './make-format.ts';
import { readJson, vectorTest } from './vectors.ts';

const encode = textEncoder('cef');
const decode = (event: Event) => decodeCef(encode(event));
const lengthOf = (key: string) => cefKeys.find((row) => row.key === key)?.length || 4000;

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
        const code = carriedHeader(event.ocsf.metadata.event_code ?? '') || '6003:3';
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
          expect(value, key).not.toBe('');
          expect([...value].length, key).toBeLessThanOrEqual(lengthOf(key));
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

/** The dictionary's types of the keys that take each kind of value. */
const types: Readonly<Record<CefKind, readonly string[]>> = {
  text: ['string'],
  whole: ['string'],
  header: [],
  privilege: ['string'],
  address: ['ipv4_address'],
  port: ['integer'],
  count: ['integer', 'long'],
  several: ['integer'],
  direction: ['integer'],
  time: ['timestamp'],
  mac: ['mac_address'],
};

describe('cef keys', () => {
  vectorTest(
    'are those of the CEF dictionary, for what they hold, that a producer may send',
    () => {
      const dictionary = readJson<Dictionary>('cef/cef-extensions.json');
      const entries = new Map(dictionary.extensions.map((entry) => [entry.key, entry]));
      const isOwn = ({ key }: CefKey) => key.startsWith('sluice');
      const others = ['deviceFacility', 'outcome', 'frameworkName', 'cs6', 'c6a1', 'c6a2', 'c6a3'];

      expect(headerLengths).toEqual(dictionary.header);
      for (const row of cefKeys.filter((row) => row.kind !== 'header' && !isOwn(row))) {
        const entry = entries.get(row.key);
        expect(entry?.audience, row.key).toMatch(/^(producer|both)$/);
        expect(types[row.kind], row.key).toContain(entry?.type);
        if (entry?.type === 'string') expect(row.length, row.key).toBe(entry.length);
        if (row.label !== '') expect(entries.has(`${row.key}Label`)).toBe(true);
      }
      // c6a2 is missing from the dictionary's table and used in the Standard's own chapter 3.
      for (const key of others) expect(key === 'c6a2' || entries.has(key), key).toBe(true);
    },
  );

  test('stand once, each source of a value under one key', () => {
    const keys = cefKeys.map(({ key }) => key);
    const paths = cefKeys.flatMap(({ from }) => from);
    const names = cefKeys.flatMap((row) => row.names);

    for (const list of [keys, paths, names]) expect(new Set(list).size).toBe(list.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]+$/);
  });
});
