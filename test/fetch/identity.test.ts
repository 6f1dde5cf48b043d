// Who a record is: what upstream calls different stays different, what is read again is the same, and no name in the
// config or value in a record can be chosen so that two records share an identity.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { uidBytes } from '../../src/contracts/spool.ts';
import { Identifier, type IdentitySettings } from '../../src/fetch/identity.ts';
import { identityWords } from '../../src/fetch/repeats.ts';
import { type RecordList, scanBody } from '../../src/tools/record-list.ts';

const names = { source: 'audit', company: 'c-1', stream: 'audit/c-1' };

function identifier(more: Partial<IdentitySettings> = {}): Identifier {
  return new Identifier({ ...names, checkContent: false, ...more });
}

function listOf(body: Uint8Array, id: string): RecordList {
  const { records } = scanBody(body, 'data', id);
  if (records === null) throw new Error('the page has its list');
  return records;
}

/** Identifies the records of a page that is written like this. */
function identify(texts: readonly string[], by: Identifier = identifier(), id = 'id') {
  const body = Buffer.from(`{"data": [${texts.join(',\n')}]}`);
  return by.identify(listOf(body, id));
}

function digestsOf(texts: readonly string[], by?: Identifier, id?: string): readonly string[] {
  const { digests, count } = identify(texts, by, id);
  return Array.from({ length: count }, (_, i) =>
    digests.toString('hex', i * uidBytes, (i + 1) * uidBytes),
  );
}

test('A49: Identifier keeps apart ids that parsing or encoding would make alike', () => {
  const ids = [
    '"00123"',
    '"123"',
    '123',
    '123.0',
    '1e3',
    '1000',
    '"1e3"',
    '1152921504606846976',
    '1152921504606846977',
    '"1152921504606846977"',
    '"\\ud800"',
    '"\\ud801"',
    '"\ufffd"',
    '"\\u0000123"',
    '"j\\u0000123"',
    '"i\\u0000123"',
    '" 123"',
    '-0',
    '0',
  ];

  const digests = digestsOf(ids.map((id) => `{"id":${id}}`));

  expect(new Set(digests).size).toBe(ids.length);
});

test('Identifier gives a record the same uid on any page, at any place, in any company of its records', () => {
  const page = ['{"id":"a"}', '{"id":17}', '{"no":"id"}'];

  const together = digestsOf(page);
  const alone = page.map((text) => digestsOf([text])[0]);
  const turned = digestsOf([...page].reverse());

  expect(alone).toEqual(together);
  expect(turned).toEqual([...together].reverse());
});

test('Identifier goes by the id alone where there is one, however the rest has changed', () => {
  const [first, again] = digestsOf(['{"id":"a","x":1}', '{ "x": 2, "id": "a" }']);

  expect(again).toBe(first);
});

test.each(['{}', '{"id":null}', '{"id":""}', '{"id":true}', '{"id":{"a":1}}', '"text"', '7', '[]'])(
  'A12: Identifier goes by the bytes where a record has no id: %s',
  (text) => {
    const { named } = identify([text]);
    const [one, other] = digestsOf([text, `{"more":${text}}`]);

    expect([...named]).toEqual([0]);
    expect(one).not.toBe(other);
  },
);

test('Identifier does not take a record without id for one whose id is that record’s text', () => {
  const plain = identifier();
  const [byId] = digestsOf(['{"id":"{}"}'], plain);
  const [byBytes] = digestsOf(['{}'], plain);

  expect(byId).not.toBe(byBytes);
});

test('Identifier never lets names of source, company and stream run into each other', () => {
  const name = fc.string({
    unit: fc.constantFrom('a', '\0', '"', ',', '[', ']', '\\', 'i', 'j', 'r', '\ud800'),
    maxLength: 4,
  });
  const way = fc.record({ source: name, company: name, stream: name, value: name });
  fc.assert(
    fc.property(way, way, (one, other) => {
      const uidOf = ({ value, ...rest }: typeof one) =>
        digestsOf([JSON.stringify({ id: `-${value}` })], identifier(rest))[0];

      const same = JSON.stringify(one) === JSON.stringify(other);

      expect(uidOf(one) === uidOf(other)).toBe(same);
    }),
    { numRuns: 500 },
  );
  const pairs = [
    { source: 's', company: 'a\0b', stream: 'c' },
    { source: 's', company: 'a', stream: 'b\0c' },
    { source: 's\0a', company: 'b', stream: 'c' },
  ];
  const uids = pairs.map((each) => digestsOf(['{"id":"x"}'], identifier(each))[0]);
  expect(new Set(uids).size).toBe(3);
});

test('Identifier gives as key the first 16 bytes of the digest, and a check where content counts', () => {
  const texts = ['{"id":"a","x":1}', '{"x":1,"id":"a"}', '{"id":"a","x":2}', '{"x":3}'];

  const { words, digests } = identify(texts, identifier({ checkContent: true }));
  const unchecked = identify(texts);

  const keyOf = (i: number) =>
    Buffer.from(words.slice(i * identityWords, i * identityWords + 4).buffer).toString('hex');
  expect(texts.map((_, i) => keyOf(i))).toEqual(
    texts.map((_, i) => digests.toString('hex', i * uidBytes, i * uidBytes + 16)),
  );
  const checkOf = (i: number) => words[i * identityWords + 4];
  expect(checkOf(0)).toBe(checkOf(1));
  expect(checkOf(0)).not.toBe(checkOf(2));
  expect(checkOf(3)).toBe(0);
  expect(texts.map((_, i) => unchecked.words[i * identityWords + 4])).toEqual([0, 0, 0, 0]);
});

test('Identifier checks the records that count where a page holds its list twice', () => {
  const by = identifier({ checkContent: true });
  const record = '{"id":"a","x":1}';
  const once = identify([record], by);

  const twice = by.identify(
    listOf(Buffer.from(`{"data":[{"id":"b"},{"id":"c"}],"data":[${record}]}`), 'id'),
  );

  expect(twice.words).toEqual(once.words);
});

test('Identifier reads the id at a nested path, from nested bytes', () => {
  const by = identifier();

  const digests = digestsOf(
    ['{"meta":{"id":9007199254740993}}', '{"meta":{"id":9007199254740992}}', '{"id":"x"}'],
    by,
    'meta.id',
  );

  expect(new Set(digests).size).toBe(3);
});

test('Identifier makes uids of twins, changed records and own records that differ from all others', () => {
  const by = identifier();
  const { digests } = identify(['{"id":"a"}'], by);
  const digest = digests.subarray(0, uidBytes);

  const uids = [
    digest,
    by.twinUid(digest, 1),
    by.twinUid(digest, 2),
    by.changedUid(digest, 1),
    by.changedUid(digest, 2),
    by.ownUid(['a', 'b']),
    by.ownUid(['a\0b']),
    by.ownUid(['a,b']),
  ].map((uid) => uid.toString('hex'));

  expect(new Set(uids).size).toBe(uids.length);
  expect(by.twinUid(digest, 1).toString('hex')).toBe(uids[1]);
});
