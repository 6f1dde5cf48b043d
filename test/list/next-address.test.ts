// The address of a next page leads only to the origin of the request.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { followable, nextLinks, rebased } from '../../src/list/next-address.ts';

const asked = 'https://api.example.com:8443/v1/list?limit=10';
const origin = new URL(asked).origin;

describe('followable', () => {
  test.each([
    ['https://api.example.com:8443/v1/list?cursor=a%2Fb', '/v1/list?cursor=a%2Fb'],
    ['HTTPS://API.EXAMPLE.COM:8443/v1/list?p=2', '/v1/list?p=2'],
    ['//api.example.com:8443/v1/list?p=2', '/v1/list?p=2'],
    ['/v2/other?p=2#part', '/v2/other?p=2'],
    ['?cursor=x', '/v1/list?cursor=x'],
    ['more?cursor=x', '/v1/more?cursor=x'],
    ['../up', '/up'],
    ['https:list?p=2', '/v1/list?p=2'],
    // Fullwidth characters are the same host to every client.
    ['https://ａｐｉ.example.com:8443/x', '/x'],
  ])('takes %s as %s', (address, target) => {
    expect(followable(address, asked)).toBe(target);
  });

  test.each([
    'https://elsewhere.example/v1/list',
    'https://api.example.com/v1/list',
    'https://api.example.com:443/v1/list',
    'https://api.example.com:8444/v1/list',
    'http://api.example.com:8443/v1/list',
    '//elsewhere.example/v1',
    '\\\\elsewhere.example\\v1',
    '/\\elsewhere.example/v1',
    'https:\\\\elsewhere.example',
    '/\t/elsewhere.example/v1',
    '\n//elsewhere.example',
    'https://api.example.com:8443@elsewhere.example/v1',
    'https://user:secret@api.example.com:8443/v1',
    'https://user@api.example.com:8443/v1',
    'https://api.example.com:8443.elsewhere.example/v1',
    'https://api.example.com.:8443/v1',
    'https://аpi.example.com:8443/v1',
    'https://xn--pi-7cd.example.com:8443/v1',
    'https://api。example。com。elsewhere.example:8443',
    'blob:https://api.example.com:8443/v1',
    'javascript:alert(1)',
    'data:application/json,{}',
    'file:///etc/passwd',
    'ws://api.example.com:8443/v1',
    'https://',
    'https://[::1',
  ])('does not take %s', (address) => {
    expect(followable(address, asked)).toBeNull();
  });

  test('never leads to another origin, whatever it is given', () => {
    const parts = fc.array(
      fc.constantFrom(
        ...[
          'https:',
          'http:',
          '//',
          '\\',
          '/',
          '@',
          ':',
          '8443',
          'api.example.com',
          'evil.example',
        ],
        ...['?', '#', '\t', '\n', '..', '%2f', ' ', 'x'],
      ),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(parts, (pieces) => {
        const target = followable(pieces.join(''), asked);

        if (target !== null) {
          expect(target.startsWith('/')).toBe(true);
          expect(new URL(`${origin}${target}`).origin).toBe(origin);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('rebased', () => {
  test.each([
    ['http://internal:8080/v1/x?cursor=2', '/v1/x?cursor=2'],
    ['//internal/v1/x?cursor=2', '/v1/x?cursor=2'],
    ['/v1/x?cursor=2#part', '/v1/x?cursor=2'],
    ['http://internal:8080', '/'],
  ])('takes %s as %s', (address, target) => {
    expect(rebased(address, asked)).toBe(target);
  });

  test.each([
    'http://user:secret@internal/v1/x',
    'ftp://internal/v1/x',
    'data:application/json,{}',
    'https://',
  ])('does not take %s', (address) => {
    expect(rebased(address, asked)).toBeNull();
  });

  test('leads to the configured origin, whatever it is given', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webUrl()), (address) => {
        const target = rebased(address, asked);

        if (target !== null) expect(new URL(`${origin}${target}`).origin).toBe(origin);
      }),
    );
  });
});

describe('nextLinks', () => {
  test.each([
    ['<https://a/2>; rel="next"', ['https://a/2']],
    ['<https://a/1>; rel="prev", <https://a/3>; rel="next"', ['https://a/3']],
    ['<https://a/3>; rel="last next"', ['https://a/3']],
    ['<https://a/3>;rel=next', ['https://a/3']],
    ['<https://a/3>; REL="NEXT"', ['https://a/3']],
    ['<https://a/3>; title="one, two"; rel="next"', ['https://a/3']],
    ['<https://a/3>; title="a \\"; rel=prev"; rel="next"', ['https://a/3']],
    ['<https://a/?x=1,2>; rel="next"', ['https://a/?x=1,2']],
    ['</list?p=2>; rel="next"; rel="prev"', ['/list?p=2']],
    ['<https://a/3>; rel="prev"; rel="next"', []],
    ['<https://a/3>; title="x; rel=next"', []],
    ['<https://a/3>; rel="nextish"', []],
    ['<https://a/3>; rel="next"; anchor="#other"', []],
    ['<https://a/3', []],
    ['rel="next"', []],
    ['', []],
  ])('of %s are %j', (header, targets) => {
    expect(nextLinks(header)).toEqual(targets);
  });

  test('is quick with a header made to be slow', () => {
    const header = `${'<a>; title="'.repeat(20_000)}${' ;'.repeat(20_000)}`;
    const begun = process.cpuUsage();

    nextLinks(header);

    // Of this process, whatever else runs on the machine; an expression that goes back and forth takes minutes.
    expect(process.cpuUsage(begun).user).toBeLessThan(2_000_000);
  });
});
