// The address of a syslog sink: `udp://`, `tcp://`, `tls://`, `relp://` or `relps://` and
// `host:port`. Parsed once from the config, so that later code works with parts and not with text.
// No port is assumed: 514, 6514 and 2514 are conventions that many sites do not follow, and a wrong
// guess would show only when events are due.

import { parseHostPort } from '../../../src/contracts/config.ts';

/** The transports, with their usual ports. */
const usualPorts = { udp: 514, tcp: 514, tls: 6514, relp: 2514, relps: 2514 } as const;

type Transport = keyof typeof usualPorts;

/** A receiver. `text` is the address as configured, for messages. */
export interface Address {
  readonly transport: Transport;
  readonly host: string;
  readonly port: number;
  readonly text: string;
}

/** Whether it uses TLS. */
export function isSecure({ transport }: Address): boolean {
  return transport === 'tls' || transport === 'relps';
}

/** Whether the receiver acknowledges each message (RELP). */
export function isAnswered({ transport }: Address): boolean {
  return transport === 'relp' || transport === 'relps';
}

/** The address, or its flaw as a sentence for the config's author. */
export function parseAddress(text: string): Address | string {
  const match = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(text);
  if (!match) {
    return 'expected udp://host:port, tcp://host:port, tls://host:port, relp://host:port or relps://host:port';
  }
  const scheme = match[1] ?? '';
  if (!isTransport(scheme)) {
    return `expected udp://, tcp://, tls://, relp:// or relps://, not ${scheme}://`;
  }
  const target = parseHostPort(match[2] ?? '');
  if (target) return { transport: scheme, ...target, text };
  const usual = usualPorts[scheme];
  return `expected a host and a port from 1 to 65535, such as ${scheme}://siem.example:${usual} or ${scheme}://[2001:db8::1]:${usual}`;
}

function isTransport(scheme: string): scheme is Transport {
  return Object.hasOwn(usualPorts, scheme);
}
