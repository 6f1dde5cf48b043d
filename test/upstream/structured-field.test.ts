import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  type FieldMember,
  parseDictionary,
  parseFieldItem,
  parseList,
} from '../../src/upstream/structured-field.ts';
import { describeWithShared } from '../support/shared.ts';

interface Vector {
  readonly name: string;
  readonly raw: readonly string[];
  readonly header_type: 'list' | 'dictionary' | 'item';
  readonly expected?: unknown;
  readonly must_fail?: boolean;
  readonly can_fail?: boolean;
}

/** In the form of the httpwg vectors: `[value, [[parameter, value], …]]`, typed values as objects. */
function asVector(member: FieldMember): unknown {
  const parameters = [...member.parameters].map(([name, item]) => [name, bare(item)]);
  const value = member.type === 'list' ? member.value.map(asVector) : bare(member);
  return [value, parameters];
}

function bare(item: { readonly type: string; readonly value: unknown }): unknown {
  if (item.type === 'token' || item.type === 'date')
    return { __type: item.type, value: item.value };
  if (item.type === 'bytes') return { __type: 'binary', value: base32(String(item.value)) };
  return item.value;
}

function base32(base64: string): string {
  const bits = [...Buffer.from(base64, 'base64')].map((byte) => byte.toString(2).padStart(8, '0'));
  const groups = bits.join('').match(/.{1,5}/g) ?? [];
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const text = groups.map((group) => alphabet[Number.parseInt(group.padEnd(5, '0'), 2)]).join('');
  return text.padEnd(Math.ceil(text.length / 8) * 8, '=');
}

function parsed(vector: Vector): unknown {
  const text = vector.raw.join(', ');
  switch (vector.header_type) {
    case 'list':
      return parseList(text)?.map(asVector) ?? null;
    case 'dictionary': {
      const members = parseDictionary(text);
      return members && [...members].map(([name, member]) => [name, asVector(member)]);
    }
    case 'item': {
      const item = parseFieldItem(text);
      return item && asVector(item);
    }
  }
}

for (const file of ['sf-list.json', 'sf-dictionary.json', 'sf-date.json']) {
  describeWithShared(`structured fields: ${file}`, ['data', 'vectors', 'http', file], (path) => {
    const vectors = JSON.parse(readFileSync(path, 'utf8')) as Vector[]; // httpwg's own test vectors
    test.each(vectors.map((vector) => [vector.name, vector] as const))('%s', (_, vector) => {
      const result = parsed(vector);

      if (vector.must_fail) expect(result).toBeNull();
      else if (!(vector.can_fail && result === null)) expect(result).toEqual(vector.expected);
    });
  });
}

test('parseItem: strings, tokens and display strings keep their text', () => {
  expect(parseFieldItem('"a \\"b\\" \\\\"')?.value).toBe('a "b" \\');
  expect(parseFieldItem('foo/bar*')?.value).toBe('foo/bar*');
  expect(parseFieldItem('%"caf%c3%a9"')?.value).toBe('café');
  expect(parseFieldItem('%"%ff"')).toBeNull();
  expect(parseFieldItem('@1688169599')).toMatchObject({ type: 'date', value: 1688169599 });
});
