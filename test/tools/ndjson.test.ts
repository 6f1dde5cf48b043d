// Lines of JSON: a record is a whole line with the bytes that upstream sent, and a body of which any line is none is not
// taken at all.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutRecords, scanLines } from '../../src/tools/record-list.ts';

const scan = (text: string) => scanLines(Buffer.from(text), 'id');
const aRecord = fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 2 }));

function rawOf(text: string): readonly string[] {
  const { records } = scan(text);
  const length = records?.length ?? 0;
  return Array.from({ length }, (_, i) => Buffer.from(records?.raw(i) ?? []).toString());
}

test('scanLines returns each line as upstream sent it, and they are stored as an array', () => {
  const breaks = fc.constantFrom('\n', '\r\n', '\n\n', ' \n\t\n');
  fc.assert(
    fc.property(fc.array(aRecord), breaks, fc.boolean(), (values, between, isEnded) => {
      const lines = values.map((value) => JSON.stringify(value));
      const text = `${lines.join(between)}${isEnded ? between : ''}`;

      const { body, records } = scan(text);

      expect(rawOf(text)).toEqual(lines);
      expect(JSON.parse(Buffer.from(body).toString())).toEqual(JSON.parse(`[${lines}]`));
      expect(cutRecords(body, '').length).toBe(records?.length);
    }),
  );
});

test('scanLines takes no body that was cut within a line', () => {
  const lines = ['{"id":"a","n":{"x":[1,2]}}', '{"id":"b","t":"}\\n{"}', '{"id":"c"}'];
  const text = lines.join('\n');
  const whole = new Set(lines.map((_, i) => lines.slice(0, i + 1).join('\n').length));

  for (let at = 1; at < text.length; at += 1) {
    const cut = text.slice(0, at);
    if (whole.has(cut.trimEnd().length)) expect(rawOf(cut)).toEqual(cut.trimEnd().split('\n'));
    else expect(() => scan(cut)).toThrow(SyntaxError);
  }
});

test.each([
  ['two records on a line', '{"id":1} {"id":2}\n'],
  ['two records on a line, as in an array', '{"id":1},{"id":2}\n'],
  ['a record that only two lines make', '{"id":1\n"b":2}\n'],
  ['lines of which as many are records as there are', '{"a":1\n"b":2},{"c":3}\n'],
  ['a record over several lines', '{\n"id":1\n}\n'],
  ['an array', '[{"id":1}]\n'],
  ['a number', '1\n'],
  ['no object anywhere', 'null\n"overloaded"\n'],
  ['an array over two lines beside a record', '{"id":1}\n[1\n2]\n'],
  ['the end of an array', '{"id":1}]\n[{"id":2}\n'],
  ['HTML', '<html>\n'],
  ['a line of something else', '{"id":1}\nerror: overloaded\n'],
  ['a comma at the end', '{"id":1},\n{"id":2}\n'],
  ['a line break within a string', '{"id":"a\nb"}\n'],
])('scanLines does not take %s', (_, text) => {
  expect(() => scan(text)).toThrow(SyntaxError);
});

test('the line that is no record is named', () => {
  expect(() => scan('{"id":1}\n\n{"id":2}\noops\n')).toThrow(expect.objectContaining({ line: 4 }));
});

test('a line that is no object is a record beside others that are', () => {
  const lines = ['null', '{"id":"a"}', '"text"', '-1.5', '[{"id":"b"},2]', 'true'];

  expect(rawOf(lines.join('\n'))).toEqual(lines);
});

test('scanLines accepts characters that only look like line breaks, a mark at the start, and nothing', () => {
  expect(rawOf('{"id":"a\u2028\u0085b"}\n{"id":"\\n"}')).toEqual([
    '{"id":"a\u2028\u0085b"}',
    '{"id":"\\n"}',
  ]);
  expect(rawOf('\ufeff{"id":1}\n')).toEqual(['{"id":1}']);
  expect(rawOf('')).toEqual([]);
  expect(rawOf('\n \n')).toEqual([]);
});
