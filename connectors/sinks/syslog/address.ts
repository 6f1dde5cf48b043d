// Where a syslog sink sends: `udp://host:port`, `tcp://host:port` or `tls://host:port`. Read once
// from the config, so that what follows works with parts and not with text. No port is assumed: 514
// and 6514 are conventions that many sites do not follow, and a wrong guess would be found out only
// when events are due.

import { parseHostPort } from '../../../src/contracts/settings.ts';

/** How messages travel. */
type Transport = 'udp' | 'tcp' | 'tls';

/** A receiver. `text` is the address as configured, for messages. */
export interface Address {
  readonly transport: Transport;
  readonly host: string;
  readonly port: number;
  readonly text: string;
}

/** The address, or what is wrong with it as a sentence for the author of the config. */
export function parseAddress(text: string): Address | string {
  const match = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(text);
  if (!match) return 'expected udp://host:port, tcp://host:port or tls://host:port';
  const transport = transportOf(match[1] ?? '');
  if (transport === null) return `expected udp://, tcp:// or tls://, not ${match[1]}://`;
  const target = parseHostPort(match[2] ?? '');
  if (target) return { transport, ...target, text };
  const usual = transport === 'tls' ? 6514 : 514;
  return `expected a host and a port from 1 to 65535, such as ${transport}://siem.example:${usual} or ${transport}://[2001:db8::1]:${usual}`;
}

function transportOf(scheme: string): Transport | null {
  return scheme === 'udp' || scheme === 'tcp' || scheme === 'tls' ? scheme : null;
}
