// The tools of the program, opened once and shared by all: the clock, the HTTP client with its
// connections, the throttles by credential and path, and the tokens. Two config blocks with one
// credential share its limits and its token only because there is one of each.

import type { Log, Tools } from '../contracts/index.ts';
import { lockFile } from '../hold/index.ts';
import { type OwnHttpClient, openHttpClient } from '../tools/http-client.ts';
import { systemClock } from '../tools/index.ts';
import {
  EndsByUpstream,
  openThrottles,
  openTokens,
  type Permit,
  type Throttles,
  type Tokens,
} from '../upstream/index.ts';

/** Everything that upstreams, sources and sinks are made with. */
export interface BootTools extends Tools, AsyncDisposable {
  readonly http: OwnHttpClient;
  readonly throttles: Throttles;
  readonly tokens: Tokens;
  readonly ends: EndsByUpstream;
  /** For all throttles. Given, unless another process may own the state. */
  readonly permit: Permit;
  /** From 0 up to 1, for jitter. */
  readonly random: () => number;
}

/** Opens the tools. `http.close()` has to end them: a token's renewal holds the process. */
export function openTools(log: Log): BootTools {
  const clock = systemClock();
  const random = Math.random;
  const http = openHttpClient();
  const permit = { isGiven: () => true };
  return {
    clock,
    log,
    http,
    random,
    permit,
    lockFile,
    throttles: openThrottles({ clock, random, permit }),
    tokens: openTokens({ clock, http, log, random }),
    ends: new EndsByUpstream(clock),
    [Symbol.asyncDispose]: () => http.close(),
  };
}
