import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readable } from '../../src/terminal/readable.ts';
import { anEvent } from '../support/an-event.ts';
import { anyText } from '../support/any-text.ts';

test('readable shows time, severity, origin, actor and action', () => {
  const event = anEvent({
    stream: 'audit',
    ocsf: {
      time: Date.UTC(2026, 2, 4, 5, 6, 7),
      severity: 'High',
      actor: { user: { email_addr: 'anna@example.com' } },
      metadata: { event_code: 'policy.update' },
      message: 'policy pol-9 changed',
    },
  });

  const line = readable.encode(event);

  expect(line).toMatch(
    /^2026-03-04 05:06:07 {2}High +audit +anna@example\.com: policy\.update \(policy pol-9 changed\)$/,
  );
});

test('readable is one printable line for any message, name and time', () => {
  const hostile = anyText({ maxLength: 300 });

  fc.assert(
    fc.property(hostile, hostile, fc.double(), (message, name, time) => {
      const line = String(
        readable.encode(anEvent({ ocsf: { message, time, actor: { user: { name } } } })),
      );
      expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
      expect(line.length).toBeLessThan(260);
    }),
  );
});
