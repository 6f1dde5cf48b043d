// The system's code of an error, also of those that libuv cannot name.

import { constants } from 'node:os';
import { expect, test } from 'vitest';
import { errorCodeOf } from '../../src/contracts/index.ts';

const failure = (code: string, errno: number) => Object.assign(new Error('x'), { code, errno });

test.each([
  ['UNKNOWN', -constants.errno.EDQUOT, 'EDQUOT'],
  ['UNKNOWN', -4094, 'UNKNOWN'],
  ['ENOSPC', -constants.errno.ENOSPC, 'ENOSPC'],
  ['ERR_BUFFER_TOO_LARGE', 0, 'ERR_BUFFER_TOO_LARGE'],
])('the code of %s with errno %i is %s', (code, errno, expected) => {
  expect(errorCodeOf(failure(code, errno))).toBe(expected);
});

test('anything without a code has none', () => {
  expect([errorCodeOf(new Error('x')), errorCodeOf(null)]).toEqual(['', '']);
});
