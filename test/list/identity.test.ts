// Who a record is: what upstream calls different stays different, what says the same is the same, however it is printed and
// in whatever order it is read, and no name in the config or value in a record can be chosen so that two contents share
// an identity.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Identified, Identifier, type IdentitySettings } from '../../src/list/identity.ts';
import { identityWords } from '../../src/list/repeats.ts';
import { type RecordList, scanBody } from '../../src/tools/record-list.ts';

const names = { source: 'audit', company: 'c-1', stream: 'audit/c-1' };

function identifier(more: Partial<IdentitySettings> = {}): Identifier {
  return new Identifier({ ...names, ...more });
}

function listOf(body: Uint8Array, id: string, ignore: readonly string[] = []): RecordList {
  const { records } = scanBody(body, 'data', id, ignore);
  if (records === null) throw new Error('the page has its list');
  return records;
}

interface Way {
  readonly by?: Identifier;
  readonly id?: string;
  readonly ignore?: readonly string[];
}

/** Identifies the records of a page that is written like this. */
function identify(
  texts: readonly string[],
  { by = identifier(), id = 'id', ignore }: Way = {},
): Identified {
  const body = Buffer.from(`{"data": [${texts.join(',\n')}]}`);
  return by.identify(listOf(body, id, ignore));
}

function uidsOf(texts: readonly string[], way: Way = {}): readonly string[] {
  const by = way.by ?? identifier();
  const identified = identify(texts, { ...way, by });
  return texts.map((_, i) => {
    const uid = identified.named[i] === 1 ? by.uid(identified, i) : by.twinUid(identified, i, 1);
    return Buffer.from(uid, 'latin1').toString('hex');
  });
}

/** The key of a record, whole or its half that says which one it is. */
function keyOf({ words }: Identified, index: number, count = 4): string {
  return words.slice(index * identityWords, index * identityWords + count).join();
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

  const texts = ids.map((id) => `{"id":${id}}`);
  const identified = identify(texts);

  expect(new Set(uidsOf(texts)).size).toBe(ids.length);
  expect(new Set(ids.map((_, i) => keyOf(identified, i, 2))).size).toBe(ids.length);
});

test('Identifier gives a record the same uid on any page, at any position, in any company of its records', () => {
  const page = ['{"id":"a"}', '{"id":17}', '{"no":"id"}'];

  const together = uidsOf(page);
  const alone = page.map((text) => uidsOf([text])[0]);
  const turned = uidsOf([...page].reverse());

  expect(alone).toEqual(together);
  expect(turned).toEqual([...together].reverse());
});

test('Identifier gives one uid to one content, however it is printed', () => {
  const printed = [
    '{"id":"a/1","x":{"p":[1,2],"q":"\u00e9"}}',
    '{ "x" : {"q":"\\u00e9", "p":[1, 2]}, "id":"a\\/1" }',
    '{"\\u0069d":"a/1","x":{"p":[1,2],"q":"\u00e9"}}',
  ];
  const identified = identify(printed);

  expect(new Set(uidsOf(printed)).size).toBe(1);
  expect(new Set(printed.map((_, i) => keyOf(identified, i))).size).toBe(1);
});

test('A14: Identifier gives each content under one id a uid of its own, and all the same half of a key', () => {
  const versions = [
    ...['{"id":"a","x":1}', '{"id":"a","x":2}', '{"id":"a","x":"1"}', '{"id":"a","x":1.0}'],
    ...['{"id":"a"}', '{"id":"a","x":[1,2]}', '{"id":"a","x":[2,1]}', '{"id":"a","x":1,"x":2}'],
    '{"id":"a","x":2,"x":1}',
  ];
  const identified = identify(versions);

  expect(new Set(uidsOf(versions)).size).toBe(versions.length);
  expect(new Set(versions.map((_, i) => keyOf(identified, i))).size).toBe(versions.length);
  expect(new Set(versions.map((_, i) => keyOf(identified, i, 2))).size).toBe(1);
});

test('Identifier leaves out ignored fields, of records with and without an id', () => {
  const ignore = ['age', 'meta.seen'];
  const [named, namedLater] = uidsOf(
    ['{"id":"a","age":1,"meta":{"seen":1}}', '{"id":"a","age":2,"meta":{"seen":2}}'],
    { ignore },
  );
  const [plain, plainLater] = uidsOf(['{"n":1,"age":1}', '{"n":1,"age":2}'], { ignore });
  const untouched = '{"n":1}';

  expect(namedLater).toBe(named);
  expect(plainLater).toBe(plain);
  expect(uidsOf([untouched], { ignore })).toEqual(uidsOf([untouched]));
});

test('Identifier keeps uids as they are: a receiver recognises repeats by them', () => {
  expect(uidsOf(['{"id":"a","x":1}', '{"n":1}'])).toEqual([
    'd7963d15721b31d257b3c94ac2a15b1eee231f57b35cd070b897bf5b64a1ba50',
    'fae60da008c1006dd83a38a4a80b6326b4ce2b6548077f9d4ffd2081ca86ffec',
  ]);
});

test.each(['{}', '{"id":null}', '{"id":""}', '{"id":true}', '{"id":{"a":1}}', '"text"', '7', '[]'])(
  'A12: Identifier goes by the bytes where a record has no id: %s',
  (text) => {
    const { named } = identify([text]);
    const [one, other] = uidsOf([text, `{"more":${text}}`]);

    expect([...named]).toEqual([0]);
    expect(one).not.toBe(other);
  },
);

test('Identifier does not mistake a record without id for one whose id is that record’s text', () => {
  const plain = identifier();
  const [byId] = uidsOf(['{"id":"{}"}'], { by: plain });
  const [byBytes] = uidsOf(['{}'], { by: plain });

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
        uidsOf([JSON.stringify({ id: `-${value}` })], { by: identifier(rest) })[0];

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
  const uids = pairs.map((each) => uidsOf(['{"id":"x"}'], { by: identifier(each) })[0]);
  expect(new Set(uids).size).toBe(3);
});

test('Identifier knows the records that count where a page holds its list twice', () => {
  const by = identifier();
  const record = '{"id":"a","x":1}';
  const once = identify([record], { by });

  const twice = by.identify(
    listOf(Buffer.from(`{"data":[{"id":"b"},{"id":"c"}],"data":[${record}]}`), 'id'),
  );

  expect(twice.words).toEqual(once.words);
});

test('Identifier reads the id at a nested path, from nested bytes', () => {
  const texts = [
    '{"meta":{"id":9007199254740993}}',
    '{"meta":{"id":9007199254740992}}',
    '{"meta":{"id":9007199254740992},"x":1}',
    '{"id":"x"}',
  ];

  const identified = identify(texts, { id: 'meta.id' });

  expect([...identified.named]).toEqual([1, 1, 1, 0]);
  expect(keyOf(identified, 1, 2)).toBe(keyOf(identified, 2, 2));
  expect(keyOf(identified, 0, 2)).not.toBe(keyOf(identified, 1, 2));
  expect(new Set(uidsOf(texts, { id: 'meta.id' })).size).toBe(4);
});

test('Identifier makes uids of twins and own records that differ from all others', () => {
  const by = identifier();
  const identified = identify(['{"id":"a"}', '{"n":1}'], { by });

  const uids = [
    by.uid(identified, 0),
    by.twinUid(identified, 1, 1),
    by.twinUid(identified, 1, 2),
    by.ownUid(['a', 'b']).toString('latin1'),
    by.ownUid(['a\0b']).toString('latin1'),
    by.ownUid(['a,b']).toString('latin1'),
  ];

  expect(new Set(uids).size).toBe(uids.length);
  expect(by.twinUid(identified, 1, 1)).toBe(uids[1]);
});
