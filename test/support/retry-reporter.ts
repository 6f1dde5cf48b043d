// Reports why a test needed another try: the default reporter names it, without its errors.

import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase } from 'vitest/node';

/** A reporter of vitest, beside the default one. */
export default class RetryReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    if (state !== 'passed') return;
    for (const error of errors) {
      const { stack = '', diff = '' } = error;
      const place = /\n *at ([^\n]*\/test\/[^\n]*)/.exec(stack)?.[1] ?? '';
      const why = messagesOf(error).join(': ');
      console.log(`tried again: ${test.fullName}: ${why} (${place})\n${changedIn(diff)}`);
    }
  }
}

type TestError = NonNullable<ReturnType<TestCase['result']>['errors']>[number];

/** The message of an error, and those of its causes: a client of Kafka names the broker's code only there. */
function messagesOf({ message, cause, errors }: Partial<TestError>): readonly string[] {
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [message ?? '', ...inner.flatMap((one) => (one ? messagesOf(one) : []))];
}

/** Only the lines of a comparison that differ. */
function changedIn(diff: string): string {
  const lines = stripVTControlCharacters(diff).split('\n');
  return lines.filter((line) => /^[-+] /.test(line)).join('\n');
}
