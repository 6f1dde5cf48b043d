// The one upstream that most journeys read: a sandbox's unified API, its secret in the environment.

import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { afterThisTest } from './temp.ts';

/**
 * A sandbox with a number of audit events that grows only on request, until the test ends; the `upstreams` block for
 * it, the entry in that block by itself, and the environment for them.
 */
export async function anEdge(events: number, name = 'edge') {
  const sandbox = await startSandbox({ events, logs: 0, rate: 0, firewallEveryS: 0 });
  afterThisTest(() => sandbox.close());
  const { clientId, clientSecret } = sandbox.credentials;
  const secret = `${name.toUpperCase()}_SECRET`;
  const entry = `  ${name}:
    api: unified
    ends: never
    base_url: ${sandbox.unifiedBaseUrl}
    allow_http: true
    auth: { client_id: ${clientId}, client_secret: "\${env:${secret}}", scope: events:read }`;
  const env: Readonly<Record<string, string>> = { [secret]: clientSecret };
  return { sandbox, entry, upstreams: `upstreams:\n${entry}`, env };
}
