// What typed attributes take, against the platform's own checks and against the schema's own patterns.

import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  integerOf,
  isEmail,
  isHostname,
  isIp,
  isMac,
  memo,
  sameWord,
} from '../../src/normalise/values.ts';
import { hasShared, loadSchema, sharedNote } from './ocsf.ts';

const addresses = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV6().map((address) => `${address}%eth0`),
  fc.stringMatching(/^[0-9a-f:.]{2,20}$/),
);

describe('isIp', () => {
  it('agrees with node:net up to the 40 characters that OCSF allows', () => {
    fc.assert(
      fc.property(addresses, (text) => {
        expect(isIp(text)).toBe(text.length <= 40 && isIP(text) !== 0);
      }),
    );
  });

  it.each([
    '256.1.1.1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.4 ',
    '1,2,3,4',
    '',
    '::1::',
    'fe80',
  ])('refuses %j', (text) => {
    expect(isIp(text)).toBe(false);
  });
});

describe.skipIf(!hasShared)(`typed texts against the schema's patterns${sharedNote}`, () => {
  const types = hasShared ? loadSchema().types : {};
  const pattern = (name: string): RegExp => new RegExp(types[name]?.regex ?? '$^');

  it('isIp, isEmail and isMac never accept values that the schema refuses', () => {
    const texts = fc.oneof(
      addresses,
      fc.emailAddress(),
      fc.stringMatching(/^\S+@\S+\.\S+$/),
      fc.string(),
    );

    fc.assert(
      fc.property(texts, (text) => {
        if (isIp(text)) expect(text).toMatch(pattern('ip_t'));
        if (isEmail(text)) expect(text).toMatch(pattern('email_t'));
        if (isMac(text)) expect(text).toMatch(pattern('mac_t'));
      }),
    );
  });

  it('isEmail accepts the schema’s values, up to 320 characters', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.emailAddress(), fc.stringMatching(/^\S{1,9}@\S{1,9}\.\S{1,9}$/)),
        (text) => {
          expect(isEmail(text)).toBe(pattern('email_t').test(text));
        },
      ),
    );
    expect(isEmail(`${'a'.repeat(400)}@example.com`)).toBe(false);
  });
});

describe('isHostname', () => {
  it('takes names and refuses texts', () => {
    expect(['a', 'web-1.example.com', '_ldap._tcp'].map(isHostname)).toEqual([true, true, true]);
    expect(['', 'a b', 'a\nb', 'x'.repeat(254), 'ü.de'].map(isHostname)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});

describe('integerOf', () => {
  it('takes integers and their exact decimal text, nothing that loses a digit', () => {
    expect([443, '443', '-7', '0'].map(integerOf)).toEqual([443, 443, -7, 0]);
    const refused = [
      '0443',
      '4.0',
      '1e3',
      ' 1',
      '',
      '9007199254740993',
      1.5,
      2 ** 53,
      true,
      null,
      'x',
    ];
    expect(refused.map(integerOf)).toEqual(refused.map(() => undefined));
  });
});

describe('sameWord', () => {
  it('ignores the case of ASCII characters and nothing else', () => {
    expect([sameWord('HIGH', 'High'), sameWord('', ''), sameWord('a1', 'A1')]).toEqual([
      true,
      true,
      true,
    ]);
    expect([sameWord('high', 'highs'), sameWord('@', '`'), sameWord('[', '{')]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('memo', () => {
  it('answers as the function does, however often and for however many texts', () => {
    const length = memo((text) => text.length, 4);

    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 200 })), (texts) => {
        expect([...texts, ...texts].map(length)).toEqual(
          [...texts, ...texts].map((text) => text.length),
        );
      }),
    );
  });
});
