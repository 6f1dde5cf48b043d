// The system's code of an error, also of those that libuv cannot name, and the next step after an unforeseen one.

import { constants } from 'node:os';
import { expect, test } from 'vitest';
import { asExportError, errorCodeOf } from '../../src/contracts/index.ts';

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

test('a part that can no longer be loaded is a matter of the installation, and all else of sluice', async () => {
  const missing = ['.', 'no-such-part.ts'].join('/');
  const error: unknown = await import(missing).catch((reason: unknown) => reason);

  expect(asExportError(error, 'reloading the config').next).toContain('restart it');
  expect(asExportError(new Error('x'), 'reloading the config').next).toContain('report it');
});

test.each([
  [
    'ERR_INVALID_PACKAGE_CONFIG',
    'Cannot read package config /a/package.json: too many open files.',
  ],
  ['ERR_WORKER_INIT_FAILED', 'Worker initialization failure: EMFILE'],
])('%s reports the limit of open files in its message', (code, message) => {
  const failed = Object.assign(new Error(message), { code });

  expect(asExportError(failed, 'running').next).toContain('ulimit -n');
});

test.each(['EMFILE', 'ENFILE'])('%s is a matter of the limit of open files', (code) => {
  const { next } = asExportError(failure(code, -constants.errno.EMFILE), 'running');

  expect(next).toContain('Raise the limit of open files');
  expect(next).not.toContain('report it');
});
