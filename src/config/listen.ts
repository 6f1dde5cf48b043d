// Where the status is served, and whether that is safe: on loopback it may be open, anywhere else
// readers bring a token, since the page tells of sources, sinks and their failures.

import { type HostPort, parseHostPort } from '../contracts/settings.ts';
import { isLoopback } from '../watch/access.ts';

/** Parses `host:port`, with port 0 for any free one; null when it is not one. */
export function parseListen(text: string): HostPort | null {
  const anyPort = text.endsWith(':0');
  const address = parseHostPort(anyPort ? text.replace(/0$/, '1') : text);
  return address === null || !anyPort ? address : { ...address, port: 0 };
}

/** True where a token has to be set: the address is in order and not loopback. */
export function needsToken(text: string): boolean {
  const address = parseListen(text);
  return address !== null && !isLoopback(address.host);
}
