// Reports why a test needed another try: the default reporter names it, without its errors.

import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase } from 'vitest/node';

/** A reporter of vitest, beside the default one. */
export default class RetryReporter implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    if (state !== 'passed') return;
    for (const { message, stack = '', diff = '' } of errors) {
      const place = /\n *at ([^\n]*\/test\/[^\n]*)/.exec(stack)?.[1] ?? '';
      console.log(`tried again: ${test.fullName}: ${message} (${place})\n${changedIn(diff)}`);
    }
  }
}

/** Only the lines of a comparison that differ. */
function changedIn(diff: string): string {
  const lines = stripVTControlCharacters(diff).split('\n');
  return lines.filter((line) => /^[-+] /.test(line)).join('\n');
}
