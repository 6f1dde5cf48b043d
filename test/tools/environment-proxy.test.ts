// `proxy: env`: which proxy the environment names, and what NO_PROXY excludes, as curl reads it.

import { expect, test } from 'vitest';
import { environmentProxy } from '../../src/tools/environment-proxy.ts';

const proxied = {
  HTTPS_PROXY: 'http://secure.example:3128',
  HTTP_PROXY: 'http://plain.example:3128',
};

test.each([
  ['https://a.example/', {}, null, null],
  ['https://a.example/', { HTTPS_PROXY: '' }, null, null],
  ['https://a.example/', proxied, 'http://secure.example:3128', 'HTTPS_PROXY'],
  ['http://a.example/', proxied, 'http://plain.example:3128', 'HTTP_PROXY'],
  ['https://a.example/', { ...proxied, https_proxy: 'http://l:1' }, 'http://l:1', 'https_proxy'],
  ['https://a.example/', { HTTPS_PROXY: 'p.example:1' }, 'http://p.example:1', 'HTTPS_PROXY'],
  [
    'https://a.example/',
    { HTTPS_PROXY: 'me:pw@p.example:1' },
    'http://me:pw@p.example:1',
    'HTTPS_PROXY',
  ],
])('%s with %j goes through %s', (url, env, address, variable) => {
  const expected = address === null ? null : { address, variable };

  expect(environmentProxy(url, env)).toEqual(expected);
});

test.each([
  ['a.example', 'https://a.example/', true],
  ['.a.example', 'https://a.example/', true],
  ['a.example', 'https://b.a.example/', true],
  ['.a.example', 'https://b.a.example/', true],
  ['a.example', 'https://ba.example/', false],
  ['a.example.', 'https://a.example/', true],
  ['a.example', 'https://a.example./', true],
  ['A.Example', 'https://a.example/', true],
  ['x, a.example', 'https://a.example/', true],
  ['x a.example', 'https://a.example/', true],
  ['*', 'https://a.example/', true],
  ['x,*', 'https://a.example/', true],
  ['*.a.example', 'https://b.a.example/', false],
  ['a.example:443', 'https://a.example/', true],
  ['a.example:8443', 'https://a.example/', false],
  ['a.example:8443', 'https://a.example:8443/', true],
  ['example', 'https://a.example/', true],
  ['', 'https://a.example/', false],
  [',', 'https://a.example/', false],
  ['.', 'https://a.example/', false],
  ['10.0.0.1', 'https://10.0.0.1/', true],
  ['0.0.1', 'https://10.0.0.1/', false],
  ['10.0.0.0/8', 'https://10.9.9.9/', true],
  ['10.0.0.0/8', 'https://11.0.0.1/', false],
  ['10.0.0.0/33', 'https://10.0.0.1/', false],
  ['10.0.0.0/x', 'https://10.0.0.1/', false],
  ['10.0.0.1:443', 'https://10.0.0.1/', true],
  ['10.0.0.0/8:443', 'https://10.0.0.1/', true],
  ['::1', 'https://[::1]/', true],
  ['[::1]', 'https://[::1]/', true],
  ['[::1]:443', 'https://[::1]/', true],
  ['[::1]:1', 'https://[::1]/', false],
  ['0:0:0:0:0:0:0:1', 'https://[::1]/', true],
  ['fd00::/8', 'https://[fd12::1]/', true],
  ['fd00::/8', 'https://[fe80::1]/', false],
  ['10.0.0.0/8', 'https://[::1]/', false],
  ['localhost', 'https://127.0.0.1/', false],
])('NO_PROXY %j excludes %s: %s', (list, url, isExcluded) => {
  for (const name of ['NO_PROXY', 'no_proxy']) {
    expect(environmentProxy(url, { ...proxied, [name]: list }) === null).toBe(isExcluded);
  }
});

test.each(['socks5://p.example:1', 'http://me:hunter2@', 'http://me:hun%ter2@p.example'])(
  'a wrong variable is an error without its text: %s',
  (HTTPS_PROXY) => {
    const failure = (() => {
      try {
        environmentProxy('https://a.example/', { HTTPS_PROXY });
        return '';
      } catch (error) {
        return JSON.stringify(error) + String(error);
      }
    })();

    expect(failure).toContain('the environment variable HTTPS_PROXY: ');
    expect(failure).not.toContain('hun');
  },
);
