// A sandbox, a directory, and a config that joins them: what the command tests run the real program on.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.ts';
import { uidsIn } from '../support/a-journey.ts';
import { afterThisTest, tempDir } from '../support/temp.ts';

/** What a test is about; the rest is made up. */
export interface SetupWishes {
  readonly sandbox?: SandboxOptions;
  /** The `sinks` block's lines; default: a JSON file. */
  readonly sinks?: readonly string[];
  /** More lines of the `sources` block. */
  readonly sources?: readonly string[];
  /** `state.dir` as it is written; default: an absolute one. */
  readonly stateDir?: string;
  /** More lines at the end. */
  readonly more?: readonly string[];
  /** When its upstream ends; null: not set. Undefined: never, so that no test depends on today. */
  readonly ends?: string | null;
}

/** Where everything is. */
export interface Setup {
  readonly dir: string;
  readonly stateDir: string;
  readonly config: string;
  readonly sandbox: Sandbox;
  /** Uids of the events in the file sink, in order. */
  delivered(): readonly string[];
}

/** Starts a sandbox that does not grow by itself, and writes a config that reads its audit events. */
export async function aSetup({
  sandbox: options,
  sinks,
  stateDir,
  sources = [],
  more = [],
  ends = 'never',
}: SetupWishes = {}): Promise<Setup> {
  const dir = tempDir('commands-');
  const sandbox = await startSandbox({ rate: 0, firewallEveryS: 0, events: 250, ...options });
  afterThisTest(() => sandbox.close());
  const config = join(dir, 'sluice.yaml');
  const lines = [
    `state: { dir: ${stateDir ?? join(dir, 'state')} }`,
    'upstreams:',
    '  edge:',
    '    api: unified',
    ...(ends === null ? [] : [`    ends: ${ends}`]),
    `    base_url: ${sandbox.unifiedBaseUrl}`,
    '    allow_http: true',
    '    auth: { client_id: sandbox-client, client_secret: sandbox-secret, scope: events:read }',
    'sources:',
    '  audit: { type: audit_events, upstream: edge, every: 100ms }',
    ...sources,
    'sinks:',
    ...(sinks ?? [`  disk: { type: file, path: ${join(dir, 'events.ndjson')}, format: json }`]),
    ...more,
  ];
  writeFileSync(config, `${lines.join('\n')}\n`);
  return {
    dir,
    stateDir: join(dir, 'state'),
    config,
    sandbox,
    delivered: () => uidsIn(join(dir, 'events.ndjson')),
  };
}

/** Where the sandbox serves its audit events. */
export const auditPath = '/v1/audit/events';
