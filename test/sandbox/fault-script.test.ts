// The fault script's language: its syntax, and the error and location for each mistake.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FaultScriptError, parseFaultScript } from '../../src/sandbox/sandbox.ts';
import { AUDIT, ask, LOGS, stillSandbox } from './client.ts';

const EXAMPLE = new URL('../../config/sandbox-faults.yaml', import.meta.url);
const PAGE = new URL('../../docs/sandbox.md', import.meta.url);

function mistakes(text: string): string[] {
  try {
    parseFaultScript(text, 'f.yaml');
  } catch (error) {
    if (error instanceof FaultScriptError) return error.message.split('\n');
    throw error;
  }
  return [];
}

describe('parseFaultScript', () => {
  it('reads the example, which runs', async () => {
    const script = parseFaultScript(readFileSync(EXAMPLE, 'utf8'));
    await using sandbox = await stillSandbox({ faults: script });

    const replies = [await ask(sandbox, AUDIT), await ask(sandbox, LOGS)];

    expect(replies.map((reply) => reply.status)).toEqual([200, 200]);
    expect(sandbox.control.faultCounts()).toHaveLength(script.rules?.length ?? 0);
  });

  it('knows the script in docs/sandbox.md, which names every fault', () => {
    const text = readFileSync(PAGE, 'utf8');
    const [, script = ''] = /```yaml faults\n([\s\S]*?)```/.exec(text) ?? [];
    const [reported = ''] = mistakes('rules: [{ path: /a, fault: explode }]');
    const kinds = reported.split('its kind: ')[1]?.split(', ') ?? [];

    expect(parseFaultScript(script).rules).toHaveLength(1);
    expect(kinds.length).toBeGreaterThan(30);
    expect(kinds.filter((kind) => !new RegExp(`\\b${kind}\\b`).test(text))).toEqual([]);
  });

  it('reads every short and long form of a fault', () => {
    const script = parseFaultScript(`
      rules:
        - { path: /a, fault: 503 }
        - { path: /a, fault: truncated }
        - { path: /a, fault: { kind: status, status: 429, retry_after: 2592000, retry_as: date } }
        - { path: /a, fault: { kind: expires_in, value: "3600" } }
    `);

    expect(script.rules?.map((rule) => rule.fault)).toEqual([
      503,
      'truncated',
      { kind: 'status', status: 429, retry_after: 2_592_000, retry_as: 'date' },
      { kind: 'expires_in', value: '3600' },
    ]);
  });

  it('an empty text is a script without faults', () => {
    expect(parseFaultScript('')).toEqual({});
  });

  it('reports all mistakes at once, each with line and column', () => {
    const text = [
      'rules:',
      '  - path: /v1/audit/events',
      '    fualt: html',
      '  - path: audit',
      '    times: 0',
      '    fault: explode',
      '  - path: /a',
      '    fault: { kind: slow, speed: 3 }',
      'lists:',
      '  - path: /a',
      '    order: sideways',
      '    late: { positions: 3 }',
      'limits: 3',
    ].join('\n');

    const reported = mistakes(text);
    const rest = mistakes(text.replace('limits: 3', ''));

    expect(reported).toEqual(['f.yaml:13:9: limits must be a list']);
    expect(rest).toEqual([
      'f.yaml:2:5: fault is missing',
      'f.yaml:3:5: unknown key fualt; known are path, only, after, times, every, probability, fault',
      'f.yaml:4:11: path must be a path that begins with / or *',
      'f.yaml:5:12: times must be a whole number, 1 or more',
      expect.stringMatching(/^f\.yaml:6:12: must be a status, or a fault with its kind: status, /),
      'f.yaml:8:12: over_ms is missing',
      'f.yaml:8:26: unknown key speed; known are kind, over_ms',
      'f.yaml:11:12: order must be one of oldest_first, newest_first, mixed',
      'f.yaml:12:11: every is missing',
    ]);
  });

  it('reports the location of a YAML syntax error', () => {
    expect(mistakes('rules: [{ path: /a,\n')[0]).toMatch(/^f\.yaml:\d+:\d+: /);
    expect(mistakes('rules: *nowhere')[0]).toContain('Unresolved alias');
  });

  it('fails on any text only with its own error', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `rules: [${json}]`),
        ),
        (text) => {
          expect(Array.isArray(mistakes(text))).toBe(true);
        },
      ),
    );
  });
});
