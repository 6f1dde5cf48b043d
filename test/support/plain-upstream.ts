// Streams of the real sources over the real upstream client, joined to a sandbox: for tests of fetch and of sources.
// Only time is the test's, where it wants it to be.

import { z } from 'zod';
import type { SourceDefinition, SourceSettings } from '../../src/contracts/definition.ts';
import type { Stream } from '../../src/contracts/source.ts';
import type { Log } from '../../src/contracts/tools.ts';
import type { Upstream } from '../../src/contracts/upstream.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { systemClock } from '../../src/tools/clock.ts';
import { openHttpClient } from '../../src/tools/http-client.ts';
import { EndsByUpstream } from '../../src/upstream/announced-ends.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { upstreamFields } from '../../src/upstream/settings.ts';
import { openThrottles } from '../../src/upstream/throttles.ts';
import { openTokens } from '../../src/upstream/tokens.ts';
import { afterThisTest } from './temp.ts';

/** An upstream of the config at an address, with the sandbox's credentials; closed with the test. */
export function upstreamAt(
  api: 'unified' | 'services',
  sandbox: Pick<Sandbox, 'unifiedBaseUrl' | 'servicesBaseUrl' | 'credentials'>,
  companies: readonly string[] = ['c-1', 'c-2'],
): Upstream {
  const { clientId, clientSecret, unifiedScope, servicesScope } = sandbox.credentials;
  const own = api === 'unified' ? [] : [...companies];
  const parsed = z.strictObject(upstreamFields).parse({
    api,
    base_url: api === 'unified' ? sandbox.unifiedBaseUrl : sandbox.servicesBaseUrl,
    allow_http: true,
    auth: {
      client_id: clientId,
      client_secret: clientSecret,
      scope: api === 'unified' ? unifiedScope : servicesScope,
    },
  });
  const settings = { ...parsed, companies: own };
  const http = openHttpClient();
  afterThisTest(() => http.close());
  const clock = systemClock();
  const random = () => 0;
  const client = new UpstreamClient('sandbox', settings, {
    clock,
    log: noLog,
    http,
    throttles: openThrottles({ clock, random }),
    tokens: openTokens({ clock, http, log: noLog, random }),
    ends: new EndsByUpstream(clock),
  });
  return {
    name: 'sandbox',
    api,
    baseUrl: settings.base_url,
    companies: settings.companies,
    get: (request, signal) => client.get(request, signal),
  };
}

/** A source's settings as the config gives them: defaults filled in. */
export function settingsOf(
  definition: SourceDefinition,
  given: Readonly<Record<string, unknown>> = {},
): SourceSettings {
  const parsed = z.strictObject(definition.fields).parse(given);
  return { ...parsed, type: definition.type, upstream: 'sandbox' };
}

/** The streams of a source named `src`. */
export function streamsOf(
  definition: SourceDefinition,
  upstream: Upstream,
  given: Readonly<Record<string, unknown>> = {},
): readonly Stream[] {
  return definition.streams(settingsOf(definition, given), { name: 'src', upstream });
}

/** Lines without a reader. */
export const noLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => noLog,
};
