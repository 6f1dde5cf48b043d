// All token sources of the program, one per credential however many upstreams use it.

import { asExportError, type Clock, headerValue } from '../contracts/index.ts';
import { fingerprintOf, refreshSecrets } from '../tools/index.ts';
import { OAuthSource, type TokenSource, type TokenTools } from './access-token.ts';
import { Suspicion } from './suspicion.ts';
import type { Credential } from './token-request.ts';

/** The registry of token sources. */
export interface Tokens {
  /** The source of a credential: the same for the same client, secret, scope and address. */
  source(credential: Credential): TokenSource;
}

/** Opens the registry, one per program: all streams of a credential share a token. */
export function openTokens(tools: TokenTools): Tokens {
  const sources = new Map<string, TokenSource>();
  return {
    source(credential) {
      // A different secret makes a different credential, also under one client id.
      const name = fingerprintOf(credential);
      const known = sources.get(name);
      if (known) return known;
      const source =
        credential.kind === 'api_key'
          ? staticToken(credential, tools.clock)
          : new OAuthSource(credential, tools);
      sources.set(name, source);
      return source;
    },
  };
}

function staticToken(
  credential: Extract<Credential, { kind: 'api_key' }>,
  clock: Clock,
): TokenSource {
  const { key } = credential;
  const fingerprint = () => fingerprintOf(credential);
  const refresh = () => refreshSecrets(credential);
  const suspicion = new Suspicion({ clock, fingerprint, refresh });
  const reading = new Suspicion({ clock, fingerprint, refresh });
  return {
    suspicion,
    async token(signal) {
      signal.throwIfAborted();
      try {
        const token = headerValue(key, 'the API key');
        reading.accept();
        return { outcome: 'ok', token };
      } catch (error) {
        return reading.refuse(asExportError(error, 'reading the API key'), '');
      }
    },
    invalidate: () => false,
    accepted: () => undefined,
    granted: () => null,
  };
}
