// The address of the status server, and whether it is safe: on loopback it may be open; elsewhere readers need a token,
// because the page shows sources, sinks and their failures.

import { type HostPort, isLoopback, parseHostPort } from '../contracts/config.ts';

/** Parses `host:port`, with port 0 for any free one; null if the text is no address. */
export function parseListen(text: string): HostPort | null {
  const anyPort = text.endsWith(':0');
  const address = parseHostPort(anyPort ? text.replace(/0$/, '1') : text);
  return address === null || !anyPort ? address : { ...address, port: 0 };
}

/** True if a token is required: the address is valid and not loopback. */
export function needsToken(text: string): boolean {
  const address = parseListen(text);
  return address !== null && !isLoopback(address.host);
}
