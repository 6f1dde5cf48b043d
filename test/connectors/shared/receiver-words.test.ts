// What a receiver says comes out in one line, whatever it is written in, and never with what it was sent in our headers.

import { expect, test } from 'vitest';
import { blotted, receiverWords } from '../../../connectors/shared/receiver-words.ts';
import type { HttpResponse } from '../../../src/contracts/tools.ts';

const answer = (body: string, type = 'application/json'): HttpResponse => ({
  status: 400,
  headers: { 'content-type': type },
  body: Buffer.from(body),
});

test.each([
  [
    '{"error":{"root_cause":[{"type":"x"}],"reason":"failed to parse field [port]"}}',
    'failed to parse field [port]',
  ],
  ['{"text":"Invalid data format","code":6,"invalid-event-number":3}', 'Invalid data format'],
  ['{"errors":[{"message":"column time is missing"}]}', 'column time is missing'],
  ['{"title":"Bad","detail":"field ip is no address"}', 'field ip is no address'],
  ['["no such index"]', 'no such index'],
  ['{"ok":false}', '{"ok":false}'],
  ['', ''],
])('of %s it returns %s', (body, said) => {
  expect(receiverWords(answer(body))).toBe(said);
});

test('of a page it returns the title, of text the start, in one harmless line', () => {
  const page = '<html><head><title>400 Bad Request</title></head><body>long</body></html>';

  expect(receiverWords(answer(page, 'text/html'))).toBe('400 Bad Request');
  expect(receiverWords(answer('no\r\n  such\u001b[31m \u202eline\u009b', 'text/plain'))).toBe(
    'no such [31m line',
  );
  expect(receiverWords(answer('x'.repeat(9_000), 'text/plain'))).toBe(`${'x'.repeat(300)}…`);
});

test.each([
  ['as it is', 'k&="é\\s-long'],
  ['in JSON', JSON.stringify('k&="é\\s-long')],
  ['in an address', encodeURIComponent('k&="é\\s-long')],
  ['decoded', 'splunk-user splunk-password'],
  ['as the address', '/services/t0ken parameter'],
])('a secret that is sent back %s is blotted out', (_, sent) => {
  const url = 'https://ingest.example/services/t0ken?key=parameter';
  const headers = {
    'x-key': 'k&="é\\s-long',
    authorization: `Basic ${Buffer.from('splunk-user:splunk-password').toString('base64')}`,
  };

  const said = receiverWords(blotted(answer(`got ${sent}`, 'text/plain'), url, headers));

  expect(said).toMatch(/^got [*" ]+$/);
});
