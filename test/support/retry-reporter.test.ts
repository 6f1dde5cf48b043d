// The reporter of tests that needed another try: the default one names the test without its errors.

import { expect, test } from 'vitest';
import type { TestCase } from 'vitest/node';
import config from '../../vitest.config.ts';
import RetryReporter from './retry-reporter.ts';

/** The lines that the reporter prints about a test. */
function reported(result: Partial<ReturnType<TestCase['result']>>): readonly unknown[] {
  const lines: unknown[] = [];
  const { log } = console;
  const about = { fullName: 'a sink > sends', result: () => result } as unknown as TestCase;
  console.log = (line) => lines.push(line);
  try {
    new RetryReporter().onTestCaseResult(about);
  } finally {
    console.log = log;
  }
  return lines;
}

const error = {
  message: 'expected 1 to be 2',
  stack:
    'Error\n    at Proxy.x (/x/node_modules/y.js:1:1)\n    at /x/test/send/sender.test.ts:7:3\n',
  diff: '\u001b[32m- Expected\u001b[39m\n+ Received\n\n- 2\n+ 1\n  3',
};

test('a test that passed at another try is reported with its error, location and difference', () => {
  expect(reported({ state: 'passed', errors: [error] })).toEqual([
    'tried again: a sink > sends: expected 1 to be 2 (/x/test/send/sender.test.ts:7:3)\n- Expected\n+ Received\n- 2\n+ 1',
  ]);
});

test('the errors within an error are named', () => {
  const inner = [{ ...error, message: 'NOT_LEADER' }];
  const outer = { message: 'Produce failed', errors: inner, cause: { ...error, message: 'reset' } };

  expect(reported({ state: 'passed', errors: [outer] })).toEqual([
    'tried again: a sink > sends: Produce failed: reset: NOT_LEADER ()\n',
  ]);
});

test('a test that passed at once or failed is left to the default reporter', () => {
  expect(reported({ state: 'passed', errors: [] })).toEqual([]);
  expect(reported({ state: 'failed', errors: [error] })).toEqual([]);
});

test('every run has this reporter', () => {
  expect(config.test?.reporters).toContain('./test/support/retry-reporter.ts');
});
