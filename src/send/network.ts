// The network of an address: /24 of IPv4, /48 of IPv6. It is written as an address, so that a field
// of addresses stays one in every receiver.

import { isIPv4, isIPv6 } from 'node:net';

/** Such as `192.0.2.0` or `2001:db8:1::`; null: the text is no address. */
export function networkOf(text: string): string | null {
  if (isIPv4(text)) return v4(text);
  const bare = text.replace(/%.*$/, '');
  if (!isIPv6(bare)) return null;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (mapped !== undefined) return v4(mapped);
  // The URL parser writes each address in one form (RFC 5952).
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1);
  const [head = '', tail] = short.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...first, ...Array<string>(8 - first.length - last.length).fill('0'), ...last];
  // ::ffff:0:0/96 are IPv4 addresses, of which /48 would leave nothing.
  if (groups.slice(0, 5).every((group) => group === '0') && groups[5] === 'ffff') {
    const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
    return `${high >> 8}.${high & 255}.${low >> 8}.0`;
  }
  const network = [...groups.slice(0, 3), '0', '0', '0', '0', '0'].join(':');
  return new URL(`http://[${network}]`).hostname.slice(1, -1);
}

function v4(text: string): string {
  return `${text.split('.').slice(0, 3).join('.')}.0`;
}
