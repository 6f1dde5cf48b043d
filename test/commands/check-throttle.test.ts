// `check` about own ceilings: one that applies to no request is reported, since nothing else would show it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runHere } from '../support/cli.ts';
import { tempDir } from '../support/temp.ts';

test.each([
  ['/audit/events', false],
  ['/v1/audit/events', true],
  ['/audit/events/x', false],
  ['/audit', true],
] as const)('a throttle for %s', async (path, isReported) => {
  const file = join(tempDir(), 'c.yaml');
  writeFileSync(
    file,
    `upstreams:
  edge: { api: unified, ends: never, base_url: "https://api.example/v1", auth: { api_key: k }, throttle: [{ path: ${path}, requests: 9, per: 1m }] }
sources: { audit: { type: audit_events, upstream: edge, every: 30s } }
sinks: { screen: { type: stdout } }
`,
  );
  const { stdout, exitCode } = await runHere(['check', '-c', file]);
  expect([exitCode, stdout.includes(`no source reads ${path}`)]).toEqual([0, isReported]);
});
