// What a comparison knows a record by.

import { expect, test } from 'vitest';
import { knownRecords } from '../../src/fetch/served.ts';

test('ids are distinguished by every digit, and a text is no number', () => {
  const ids = ['9007199254740992', '9007199254740993', '"9007199254740993"', 'null', '1.0'];
  const body = Buffer.from(
    `{"data":[${ids.map((id) => `{"id":${id},"at":"2026-01-02T03:04:05Z"}`)}]}`,
  );
  const page = { body, items: 'data', kept: null, uids: Buffer.alloc(32 * ids.length) };

  const records = knownRecords(page, { id: 'id', time: ['at'] });

  expect(records.map(({ id }) => id)).toEqual([ids[0], ids[1], ids[2], null, ids[4]]);
  expect(records[0]?.at).toBe(Date.UTC(2026, 0, 2, 3, 4, 5));
});
