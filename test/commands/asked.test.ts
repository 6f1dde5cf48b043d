// The requests of the program to an upstream: the configured endpoints and a token, and nothing else that the documents
// mention.

import { expect, test } from 'vitest';
import { runSluice } from '../support/cli.ts';
import { aSetup, auditPath } from './a-setup.ts';

test('A23 A24: neither openapi.json nor an export configuration is needed or requested', async () => {
  const { config, sandbox } = await aSetup();

  const { exitCode } = await runSluice(['run', '-c', config, '--once']);

  expect(exitCode).toBe(0);
  expect(Object.keys(sandbox.control.requests()).sort()).toEqual([auditPath, '/v1/oauth/token']);
});
